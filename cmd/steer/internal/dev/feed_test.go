// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/cmd/steer/internal/rights"
	"github.com/steer-dev/steer/cmd/steer/internal/screen"
	"github.com/steer-dev/steer/trace"
)

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
	if got, want := f.rows(author), (screen.Row{Controller: "guestbook", Queue: 5, OK: 2, Errors: 1, Median: 3 * time.Millisecond, Cause: "spec.replicas by kubectl"}); len(got) != 1 || got[0] != want {
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
	v, err := newLive(screen.Screen{Project: "guestbook"})
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
	for key, want := range map[byte]screen.View{'l': screen.Log, '\r': screen.Object} {
		v.key(key)
		if got := v.snapshot().View; got != want {
			t.Errorf("after %q: view %d, want %d", key, got, want)
		}
		v.key(key)
		if got := v.snapshot().View; got != screen.Overview {
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
