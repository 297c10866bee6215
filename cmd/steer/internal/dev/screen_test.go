// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/cmd/steer/internal/rights"
	"github.com/steer-dev/steer/trace"
)

func exampleScreen() *screen {
	return &screen{
		Project: "guestbook", Server: "Kubernetes 1.36", Kubeconfig: ".steer/kubeconfig", Status: "build 1.4s",
		Rows: []row{
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
		change        func(s *screen)
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
		"logs are the newest, and do not control the terminal": {func(s *screen) { s.View = logView }, 100, 5, false, `
guestbook  Kubernetes 1.36  .steer/kubeconfig  build 1.4s
first[2J
second
third
[enter] object  [l] back  [r]estart  [d]ebug  [q]uit`},
		"an object": {func(s *screen) { s.View, s.Debugging = objectView, true }, 100, 5, false, `
guestbook  Kubernetes 1.36  .steer/kubeconfig  build 1.4s
Guestbook default/demo
10:00:00 guestbook default/demo: done
[enter] back  [l]ogs  [r]estart  [d]ebug off  [q]uit`},
		"a reconcile is shown to its end": {func(s *screen) { s.View = objectView }, 24, 20, false, `
guestbook  Kubernetes 1…
Guestbook default/demo
10:00:00 guestbook
  default/demo: done
[enter] back  [l]ogs  […`},
		"colours": {func(s *screen) { s.Rows = nil }, 100, 20, true, "\n" +
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
			lines := s.render(test.width, test.height, test.color)
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
		lines := s.render(width, height, false)
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

func TestFeedCountsByController(t *testing.T) {
	t.Parallel()
	f := &feed{changed: func() {}}
	demo := trace.Object{Kind: "Guestbook", Namespace: "default", Name: "demo"}
	for i, outcome := range []trace.Outcome{trace.Done, trace.Failed, trace.Requeued, trace.Conflicted} {
		r := trace.Record{Controller: "guestbook", Object: demo, Outcome: outcome, Took: time.Duration(i+1) * time.Millisecond}
		if outcome == trace.Failed {
			r.Error = "no such host"
			f.add(r)
			if got := f.failures(); len(got) != 1 || got[0] != "default/demo: no such host" {
				t.Errorf("failures: %q", got)
			}
			continue
		}
		r.Causes = []trace.Cause{{Type: trace.Updated, Object: demo, Changed: "spec.replicas"}}
		f.add(r)
	}
	if got := f.failures(); len(got) != 0 {
		t.Errorf("failures after a success: %q", got)
	}
	metrics := "# HELP workqueue_depth a\nworkqueue_depth{controller=\"guestbook\",name=\"guestbook\",priority=\"0\"} 2\n" +
		"workqueue_depth{controller=\"guestbook\",name=\"guestbook\",priority=\"-100\"} 3\nworkqueue_depth_other{name=\"x\"} 1\n"
	if err := f.readQueues(strings.NewReader(metrics)); err != nil {
		t.Fatal(err)
	}
	author := func(c trace.Cause) string { return map[string]string{"spec.replicas": "kubectl"}[c.Changed] }
	if got, want := f.rows(author), (row{"guestbook", 5, 2, 1, 3 * time.Millisecond, "spec.replicas by kubectl"}); len(got) != 1 || got[0] != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if about, lines := f.latest(); about != "Guestbook default/demo" || len(lines) != 4 {
		t.Errorf("got %s, %q", about, lines)
	}
}

func TestAdviceNamesTheMarkerOnce(t *testing.T) {
	t.Parallel()
	var said []string
	a := &advice{
		place: func(kind string) string { return "controller/" + kind + ".go:31" },
		say:   func(_ rights.Right, line string) { said = append(said, line) },
	}
	a.begin()
	w := a.writer()
	for _, part := range []string{
		`level=ERROR controllerKind=Guestbook error="services is forbidden: User \"a\" cannot create res`,
		"ource \\\"services\\\" in API group \\\"\\\" in the namespace \\\"default\\\"\"\n",
		"level=INFO msg=Serving\n" + `error="services is forbidden: User \"a\" cannot create resource \"services\" in API group \"\""` + "\n",
	} {
		if _, err := w.Write([]byte(part)); err != nil {
			t.Fatal(err)
		}
	}
	want := `may not create services; add the marker at controller/Guestbook.go:31: // +kubebuilder:rbac:groups="",resources=services,verbs=create`
	if len(said) != 1 || said[0] != want {
		t.Errorf("got %q, want %q", said, want)
	}
}

func TestAuthorIsTheLastManagerOfTheField(t *testing.T) {
	t.Parallel()
	entry := func(manager, fields string, second int) metav1.ManagedFieldsEntry {
		at := metav1.NewTime(time.Unix(int64(second), 0))
		return metav1.ManagedFieldsEntry{Manager: manager, Time: &at, FieldsV1: metav1.NewFieldsV1(fields)}
	}
	entries := []metav1.ManagedFieldsEntry{
		entry("kubectl", `{"f:spec":{"f:replicas":{},"f:items":{"k:{\"name\":\"a\"}":{"f:port":{}}}}}`, 2),
		entry("first", `{"f:spec":{"f:replicas":{},"f:size":{}}}`, 1),
		entry("operator", `{"f:status":{"f:replicas":{}}}`, 3),
	}
	for field, want := range map[string]string{
		"spec.replicas": "kubectl", "spec.size": "first", "spec.items[0].port": "kubectl", "status.replicas": "operator", "spec.other": "",
	} {
		if got := managerOf(entries, field); got != want {
			t.Errorf("%s: got %q, want %q", field, got, want)
		}
	}
}

func TestLiveShowsWhatARightIsLackedFor(t *testing.T) {
	t.Parallel()
	v, err := newLive(screen{Project: "guestbook"})
	if err != nil {
		t.Fatal(err)
	}
	v.lack(rights.Right{Resource: "services", Verb: "create"}, "may not create services; add the marker at a.go:31")
	v.lack(rights.Right{Resource: "pods", Verb: "list"}, "may not list pods; add the marker at a.go:31")
	v.feed.add(trace.Record{
		Controller: "guestbook", Object: trace.Object{Kind: "Guestbook", Namespace: "default", Name: "demo"}, Outcome: trace.Failed,
		Error: `services is forbidden: User "a" cannot create resource "services" in API group "" in the namespace "default"`,
	})
	want := "default/demo: may not create services; add the marker at a.go:31\nthe operator may not list pods; add the marker at a.go:31"
	if got := strings.Join(v.snapshot().Problems, "\n"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	v.fail([]string{"a.go:3: undefined: x"})
	for key, want := range map[byte]view{'l': logView, '\r': objectView} {
		v.key(key)
		if got := v.snapshot().View; got != want {
			t.Errorf("after %q: view %d, want %d", key, got, want)
		}
		v.key(key)
		if got := v.snapshot().View; got != overview {
			t.Errorf("after %q twice: view %d", key, got)
		}
	}
	if got := v.snapshot().Problems; len(got) != 3 || got[0] != "a.go:3: undefined: x" {
		t.Errorf("got %q", got)
	}
	v.began()
	if got := v.snapshot().Problems; len(got) != 1 { // that of the record, until the next operator is followed
		t.Errorf("after a start: %q", got)
	}
}
