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
		Project: "guestbook", Server: "Kubernetes 1.37", Kubeconfig: ".steer/kubeconfig", Status: "build 1.4s",
		Rows: []Row{
			{"guestbook", 0, 41, 2, 3 * time.Millisecond, "spec.replicas by kubectl"},
			{"secret-copies", 12, 0, 0, 0, ""},
		},
		Problems: []string{"default/demo: may not create services; add the marker at guestbook_controller.go:31"},
		Log:      []string{"first\x1b[2J\u009b2J", "second", "third"},
		About:    "Guestbook default/demo", Text: []string{"10:00:00 guestbook default/demo: done"},
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
guestbook  Kubernetes 1.37  .steer/kubeconfig  build 1.4s
CONTROLLER     QUEUE  OK  ERR  P50  LAST CAUSE
guestbook          0  41    2  3ms  spec.replicas by kubectl
secret-copies     12   0    0
x default/demo: may not create services; add the marker at guestbook_controller.go:31
[j/k] select  [enter] open  [l]ogs  [r]estart  [d]ebug  [q]uit`},
		"a page": {func(s *Screen) { s.Page, s.Problems = "http://127.0.0.1:40713/?token=x", nil }, 100, 20, false, `
guestbook  Kubernetes 1.37  .steer/kubeconfig  build 1.4s
page  http://127.0.0.1:40713/?token=x
CONTROLLER     QUEUE  OK  ERR  P50  LAST CAUSE
guestbook          0  41    2  3ms  spec.replicas by kubectl
secret-copies     12   0    0
[j/k] select  [enter] open  [l]ogs  [r]estart  [d]ebug  [q]uit`},
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
[j/k] select  [enter] o…`},
		"a low terminal keeps the keys": {nil, 100, 5, false, `
guestbook  Kubernetes 1.37  .steer/kubeconfig  build 1.4s
CONTROLLER     QUEUE  OK  ERR  P50  LAST CAUSE
guestbook          0  41    2  3ms  spec.replicas by kubectl
secret-copies     12   0    0
[j/k] select  [enter] open  [l]ogs  [r]estart  [d]ebug  [q]uit`},
		"logs are the newest, and do not control the terminal": {func(s *Screen) { s.View = Log }, 100, 5, false, `
guestbook  Kubernetes 1.37  .steer/kubeconfig  build 1.4s
first[2J2J
second
third
[j/k] scroll  [esc] back  [r]estart  [d]ebug  [q]uit`},
		"a line of the log is shown to its end": {func(s *Screen) {
			s.View, s.Log = Log, []string{"first", `level=ERROR msg="Reconciler error" error="panic at /shop/internal/controller/shop_controller.go:31: nil map"`}
		}, 40, 20, false, `
guestbook  Kubernetes 1.37  .steer/kube…
first
level=ERROR msg="Reconciler error"
  error="panic at /shop/internal/control
  ler/shop_controller.go:31: nil map"
[j/k] scroll  [esc] back  [r]estart  [d…`},
		"an object": {func(s *Screen) { s.View = Object }, 100, 5, false, `
guestbook  Kubernetes 1.37  .steer/kubeconfig  build 1.4s
Guestbook default/demo: reconciles
10:00:00 guestbook default/demo: done
[j/k] scroll  re[c]onciles  [h]istory  [w]hy  [t]ree  [esc] back  [l]ogs  [q]uit`},
		"what is asked for": {func(s *Screen) { s.View, s.Tab, s.Reading = Object, Why, true }, 100, 5, false, `
guestbook  Kubernetes 1.37  .steer/kubeconfig  build 1.4s
Guestbook default/demo: why
reading ...
[j/k] scroll  re[c]onciles  [h]istory  [w]hy  [t]ree  [esc] back  [l]ogs  [q]uit`},
		"a reconcile is shown to its end": {func(s *Screen) { s.View = Object }, 24, 20, false, `
guestbook  Kubernetes 1…
Guestbook default/demo:…
10:00:00 guestbook
  default/demo: done
[j/k] scroll  re[c]onci…`},
		"what is indented goes on below itself": {func(s *Screen) {
			s.View, s.Tab, s.Text = Object, Why, []string{"    because updated Shop default/bakery@240"}
		}, 24, 20, false, `
guestbook  Kubernetes 1…
Guestbook default/demo:…
    because updated Shop
      default/bakery@240
[j/k] scroll  re[c]onci…`},
		"a debugger": {func(s *Screen) { s.View, s.Debugging = Log, true }, 100, 3, false, `
guestbook  Kubernetes 1.37  .steer/kubeconfig  build 1.4s
third
[j/k] scroll  [esc] back  [r]estart  [d]ebug off  [q]uit`},
		"objects": {func(s *Screen) {
			s.Cursor, s.Items = 1, []Item{{"Guestbook default/a", 1, "10:00:00", "done"}, {"Guestbook default/demo", 12, "10:00:01", "failed"}}
		}, 100, 20, false, `
guestbook  Kubernetes 1.37  .steer/kubeconfig  build 1.4s
CONTROLLER     QUEUE  OK  ERR  P50  LAST CAUSE
guestbook          0  41    2  3ms  spec.replicas by kubectl
secret-copies     12   0    0
  OBJECT                  RECONCILES  LAST      OUTCOME
  Guestbook default/a              1  10:00:00  done
> Guestbook default/demo          12  10:00:01  failed
x default/demo: may not create services; add the marker at guestbook_controller.go:31
[j/k] select  [enter] open  [l]ogs  [r]estart  [d]ebug  [q]uit`},
		"objects and problems share a low terminal": {func(s *Screen) {
			s.Rows, s.Problems = nil, []string{"old", "new", "newest"}
			s.Cursor, s.Items = 2, []Item{{Object: "a"}, {Object: "b"}, {Object: "c"}, {Object: "d"}}
		}, 100, 7, false, `
guestbook  Kubernetes 1.37  .steer/kubeconfig  build 1.4s
CONTROLLER  QUEUE  OK  ERR  P50  LAST CAUSE
  OBJECT  RECONCILES  LAST  OUTCOME
> c                0
x new
x newest
[j/k] select  [enter] open  [l]ogs  [r]estart  [d]ebug  [q]uit`},
		"colours": {func(s *Screen) { s.Rows = nil }, 100, 20, true, "\n" +
			"\x1b[1mguestbook  Kubernetes 1.37  .steer/kubeconfig  build 1.4s\x1b[0m\n" +
			"\x1b[1mCONTROLLER  QUEUE  OK  ERR  P50  LAST CAUSE\x1b[0m\n" +
			"\x1b[31mx default/demo: may not create services; add the marker at guestbook_controller.go:31\x1b[0m\n" +
			"\x1b[2m[j/k] select  [enter] open  [l]ogs  [r]estart  [d]ebug  [q]uit\x1b[0m"},
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

// TestMoveEndsWhereThereIsNothing for the cursor, from the start of a text, and from the end
// of one with the newest line last.
func TestMoveEndsWhereThereIsNothing(t *testing.T) {
	t.Parallel()
	lines := []string{"1", "2", "3", "4", "5"}
	for name, test := range map[string]struct {
		screen Screen
		moves  []int
		want   string
	}{
		"down":                     {Screen{View: Object, Tab: Why, Text: lines}, []int{1}, "2 3"},
		"down too far and up":      {Screen{View: Object, Tab: Tree, Text: lines}, []int{Whole, 1, -1}, "3 4"},
		"to the start":             {Screen{View: Object, Tab: Tree, Text: lines, Scroll: 2}, []int{-Whole}, "1 2"},
		"of fewer lines":           {Screen{View: Object, Tab: Why, Text: lines[:3], Scroll: 9}, []int{-1}, "1 2"},
		"of no lines":              {Screen{View: Object, Tab: Why}, []int{3}, ""},
		"the newest are last":      {Screen{View: Object, Tab: History, Text: lines}, []int{1}, "4 5"},
		"up from the newest":       {Screen{View: Object, Tab: Reconciles, Text: lines}, []int{-1}, "3 4"},
		"the log from its end":     {Screen{View: Log, Log: append(lines, "6")}, []int{-1, -1}, "2 3 4"},
		"the log to its start":     {Screen{View: Log, Log: lines}, []int{-Whole, 1}, "2 3 4"},
		"the cursor, to the last":  {Screen{Items: []Item{{Object: "a"}, {Object: "b"}}}, []int{Whole}, "> b"},
		"the cursor, to the first": {Screen{Items: []Item{{Object: "a"}, {Object: "b"}}, Cursor: 1}, []int{-5}, "> a"},
		"the cursor over nothing":  {Screen{}, []int{1, -1}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const width, height = 20, 5
			for _, by := range test.moves {
				test.screen.Move(by, width, height)
			}
			shown := test.screen.Render(width, height, false)
			var got []string
			for _, line := range shown[:len(shown)-1] {
				if len(line) == 1 || strings.HasPrefix(line, "> ") {
					got = append(got, strings.Join(strings.Fields(line)[:min(len(strings.Fields(line)), 2)], " "))
				}
			}
			if strings.Join(got, " ") != test.want {
				t.Errorf("shown: %q, want %s", shown, test.want)
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
		s.Items, s.Text = []Item{{Object: text, Outcome: text}, {Object: text}}, []string{text, text}
		for view := Overview; view <= Log; view++ {
			s.View = view
			s.Move(len(text), width, height)
			lines := s.Render(width, height, false)
			if len(lines) > height {
				t.Errorf("%d lines, the terminal has %d", len(lines), height)
			}
			for _, line := range lines {
				if utf8.RuneCountInString(line) > width || strings.ContainsAny(line, "\x1b\n\r") {
					t.Errorf("%q does not fit into %d columns", line, width)
				}
			}
		}
	})
}
