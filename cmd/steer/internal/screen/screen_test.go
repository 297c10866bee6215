// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func exampleScreen() *Screen {
	return &Screen{
		Project: "guestbook", Server: "Kubernetes 1.36", Kubeconfig: ".steer/kubeconfig", Status: "build 1.4s",
		Rows: []Row{
			{"guestbook", 0, 41, 2, 3 * time.Millisecond, "spec.replicas by kubectl"},
			{"secret-copies", 12, 0, 0, 0, ""},
		},
		Problems: []string{"default/demo: may not create services; add the marker at guestbook_controller.go:31"},
		Log:      []string{"first\x1b[2J", "second", "third"},
		About:    "Guestbook default/demo", Reconciles: []string{"10:00:00 guestbook default/demo: done"},
	}
}

func TestScreenShowsControllersAndProblems(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change        func(s *Screen)
		width, height int
		color         bool
		want          string
	}{
		"overview": {nil, 100, 20, false, `
guestbook  Kubernetes 1.36  .steer/kubeconfig  build 1.4s
CONTROLLER     QUEUE  OK  ERR  P50  LAST CAUSE
guestbook          0  41    2  3ms  spec.replicas by kubectl
secret-copies     12   0    0
x default/demo: may not create services; add the marker at guestbook_controller.go:31
[enter] object  [l]ogs  [r]estart  [d]ebug  [q]uit`},
		"a narrow terminal": {nil, 24, 20, false, `
guestbook  Kubernetes 1…
CONTROLLER     QUEUE  O…
guestbook          0  4…
secret-copies     12   …
x default/demo: may not
  create services; add
  the marker at
  guestbook_controller.g
  o:31
[enter] object  [l]ogs …`},
		"a low terminal keeps the keys": {nil, 100, 5, false, `
guestbook  Kubernetes 1.36  .steer/kubeconfig  build 1.4s
CONTROLLER     QUEUE  OK  ERR  P50  LAST CAUSE
guestbook          0  41    2  3ms  spec.replicas by kubectl
secret-copies     12   0    0
[enter] object  [l]ogs  [r]estart  [d]ebug  [q]uit`},
		"logs are the newest, and do not control the terminal": {func(s *Screen) { s.View = Log }, 100, 5, false, `
guestbook  Kubernetes 1.36  .steer/kubeconfig  build 1.4s
first[2J
second
third
[enter] object  [l] back  [r]estart  [d]ebug  [q]uit`},
		"an object": {func(s *Screen) { s.View, s.Debugging = Object, true }, 100, 5, false, `
guestbook  Kubernetes 1.36  .steer/kubeconfig  build 1.4s
Guestbook default/demo
10:00:00 guestbook default/demo: done
[enter] back  [l]ogs  [r]estart  [d]ebug off  [q]uit`},
		"a reconcile is shown to its end": {func(s *Screen) { s.View = Object }, 24, 20, false, `
guestbook  Kubernetes 1…
Guestbook default/demo
10:00:00 guestbook
  default/demo: done
[enter] back  [l]ogs  […`},
		"colours": {func(s *Screen) { s.Rows = nil }, 100, 20, true, "\n" +
			"\x1b[1mguestbook  Kubernetes 1.36  .steer/kubeconfig  build 1.4s\x1b[0m\n" +
			"\x1b[1mCONTROLLER  QUEUE  OK  ERR  P50  LAST CAUSE\x1b[0m\n" +
			"\x1b[31mx default/demo: may not create services; add the marker at guestbook_controller.go:31\x1b[0m\n" +
			"\x1b[2m[enter] object  [l]ogs  [r]estart  [d]ebug  [q]uit\x1b[0m"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := exampleScreen()
			if test.change != nil {
				test.change(s)
			}
			lines := s.Render(test.width, test.height, test.color)
			if got := strings.Join(lines, "\n"); got != test.want[1:] {
				t.Errorf("got:\n%s\nwant:\n%s", got, test.want[1:])
			}
			for _, line := range lines {
				if !test.color && utf8.RuneCountInString(line) > test.width {
					t.Errorf("wider than the terminal: %q", line)
				}
			}
		})
	}
}

func FuzzScreenFitsIntoTheTerminal(f *testing.F) {
	f.Add("guestbook", 10, 3)
	f.Fuzz(func(t *testing.T, text string, width, height int) {
		width, height = min(max(width, 1), 500), min(max(height, 1), 200)
		s := exampleScreen()
		s.Problems, s.Rows[0].Cause = []string{text, text}, text
		lines := s.Render(width, height, false)
		if len(lines) > height {
			t.Errorf("%d lines, the terminal has %d", len(lines), height)
		}
		for _, line := range lines {
			if utf8.RuneCountInString(line) > width || strings.ContainsAny(line, "\x1b\n\r") {
				t.Errorf("%q does not fit into %d columns", line, width)
			}
		}
	})
}
