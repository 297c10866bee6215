// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/steer-dev/steer/cmd/steer/internal/rights"
	"github.com/steer-dev/steer/cmd/steer/internal/screen"
	"github.com/steer-dev/steer/trace"
)

// TestLogOfTheScreenKeepsEveryLine of writers that do not wait for each other: the command
// itself, the streams of the operator and the API server beside it.
func TestLogOfTheScreenKeepsEveryLine(t *testing.T) {
	t.Parallel()
	const writers, each = 4, keptLines / 4
	v, err := newLive(screen.Screen{})
	if err != nil {
		t.Fatal(err)
	}
	log := v.log()
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for i := range each {
				fmt.Fprintf(log, "line %d of writer %d\n", i, w)
			}
		})
	}
	all.Wait()
	seen := map[string]int{}
	for _, line := range v.snapshot().Log {
		seen[line]++
	}
	for w := range writers {
		for i := range each {
			if line := fmt.Sprintf("line %d of writer %d", i, w); seen[line] != 1 {
				t.Fatalf("%q is there %d times, want once", line, seen[line])
			}
		}
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

func TestLiveShowsWhatARightIsLackedFor(t *testing.T) {
	t.Parallel()
	v, err := newLive(screen.Screen{Project: "guestbook"})
	if err != nil {
		t.Fatal(err)
	}
	v.lack(rights.Right{Resource: "services", Verb: "create"}, "may not create services; add the marker at a.go:31")
	v.lack(rights.Right{Resource: "pods", Verb: "list"}, "may not list pods; add the marker at a.go:31")
	v.feed.Add(trace.Record{
		Controller: "guestbook", Object: trace.Object{Kind: "Guestbook", Namespace: "default", Name: "demo"}, Outcome: trace.Failed,
		Error: `services is forbidden: User "a" cannot create resource "services" in API group "" in the namespace "default"`,
	})
	want := "default/demo: may not create services; add the marker at a.go:31\nthe operator may not list pods; add the marker at a.go:31"
	if got := strings.Join(v.snapshot().Problems, "\n"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	v.fail([]string{"a.go:3: undefined: x"})
	for _, step := range []struct {
		key  key
		want screen.View
	}{{'l', screen.Log}, {'l', screen.Overview}, {'l', screen.Log}, {keyEscape, screen.Overview}, {'\r', screen.Object}, {'l', screen.Log}, {keyEscape, screen.Overview}} {
		v.key(t.Context(), step.key)
		if got := v.snapshot().View; got != step.want {
			t.Errorf("after key %d: view %d, want %d", step.key, got, step.want)
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

func TestLiveDrawsWhatTheOperatorPrints(t *testing.T) {
	t.Parallel()
	v, err := newLive(screen.Screen{Project: "guestbook", View: screen.Log})
	if err != nil {
		t.Fatal(err)
	}
	log := v.log()
	for i := range keptLines + 3 {
		fmt.Fprintf(log, "line %d\n", i)
	}
	fmt.Fprint(log, "not complete")
	if got := v.snapshot().Log; len(got) != keptLines || got[0] != "line 3" || got[keptLines-1] != fmt.Sprintf("line %d", keptLines+2) {
		t.Errorf("%d lines from %q to %q are kept", len(got), got[0], got[len(got)-1])
	}
	out, err := os.Create(filepath.Join(t.TempDir(), "terminal"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = out.Close() })
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	terminal := &Terminal{In: out, Out: out, NoColor: true}
	v.draw(ended, terminal)
	drawn, err := os.ReadFile(out.Name())
	if err != nil {
		t.Fatal(err)
	}
	// A file has no size: it is drawn as a terminal of 80 by 24.
	shown := v.snapshot()
	want := "\x1b[H" + strings.Join(shown.Render(80, 24, false), "\x1b[K\r\n") + "\x1b[K\x1b[J"
	if diff := cmp.Diff(want, string(drawn)); diff != "" {
		t.Errorf("drawn (-want +got):\n%s", diff)
	}
	if !strings.Contains(want, "guestbook") || !strings.Contains(want, fmt.Sprintf("line %d", keptLines+2)) {
		t.Errorf("drawn: %q", want)
	}
	if _, err := v.show(t.Context(), terminal, nil, nil); err == nil || !strings.Contains(err.Error(), "set the terminal up") {
		t.Errorf("a file as the terminal: %v", err)
	}
}

func TestATerminalWithoutASizeIsDrawnAsOneOf80By24(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		width, height int
		err           error
		want          [2]int
	}{{100, 30, nil, [2]int{100, 30}}, {0, 0, nil, [2]int{80, 24}}, {0, 0, os.ErrInvalid, [2]int{80, 24}}} {
		if width, height := usable(c.width, c.height, c.err); [2]int{width, height} != c.want {
			t.Errorf("%d by %d, %v: drawn as %d by %d", c.width, c.height, c.err, width, height)
		}
	}
}
