// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"strings"
	"testing"
	"time"
)

// waitsIn is a reconciler that waits.
func waitsIn(r *Recorder, name string, noted chan<- struct{}, end <-chan struct{}) {
	var a Active
	r.Begin(&a, Start{Controller: "webs", Object: Object{Kind: "Web", Namespace: "default", Name: name}, Began: time.Now(), Goroutine: Goroutine()})
	a.Note(Access{Verb: Get, Object: Object{Kind: "Secret", Namespace: "default", Name: "x"}})
	noted <- struct{}{}
	<-end
	a.End(End{Outcome: Done})
	noted <- struct{}{}
}

func TestWhatRunsIsSeenWithItsStackUntilItEnds(t *testing.T) {
	t.Parallel()
	r := NewRecorder(Options{})
	noted := make(chan struct{})
	ends := map[string]chan struct{}{}
	for _, name := range []string{"a", "b", "c"} {
		ends[name] = make(chan struct{})
		go waitsIn(r, name, noted, ends[name])
		<-noted
	}
	names := func() (all string) {
		for _, record := range r.Running() {
			all += record.Name
			if record.Outcome != Running || len(record.Reads) != 1 || !strings.Contains(record.Stack, "waitsIn") || strings.Contains(record.Stack, "\n\n") {
				t.Errorf("got %+v", record)
			}
			if line := record.String(); !strings.HasPrefix(line, "webs default/") || !strings.Contains(line, "-> running for ") {
				t.Errorf("the line is %q", line)
			}
		}
		return all
	}
	for _, step := range []struct{ end, left string }{{"", "abc"}, {"b", "ac"}, {"c", "a"}, {"a", ""}} {
		if step.end != "" {
			close(ends[step.end])
			<-noted
		}
		if got := names(); got != step.left {
			t.Errorf("after the end of %q %q run, want %q", step.end, got, step.left)
		}
	}
	if got := NewRecorder(Options{Budget: -1}); got.Running() != nil || (*Recorder)(nil).Running() != nil {
		t.Error("a recorder that is off has something that runs")
	}
}

func TestWhereIsTheLineOfTheReconciler(t *testing.T) {
	t.Parallel()
	const end = "\ngithub.com/steer-dev/steer/controller.(*controller[...]).attempt(0xc0)\n\t/steer/controller/controller.go:280 +0x1f\ncreated by x\n\t/steer/y.go:1 +0x2"
	for want, frames := range map[string]string{
		"/project/lib/wait.go:9": "time.Sleep(0x1)\n\t/go/src/runtime/time.go:1 +0x2\nnet/http.(*Client).do(0x1)\n\t/go/src/net/http/client.go:9 +0x1\n" +
			"example.com/project/lib.Wait(...)\n\t/project/lib/wait.go:9\nexample.com/project.(*R).Reconcile(0x1)\n\t/project/r.go:3 +0x1",
		"/project/main.go:7": "time.Sleep(0x1)\n\t/go/src/runtime/time.go:1 +0x2\nmain.(*R).Reconcile(0x1)\n\t/project/main.go:7 +0x33",
		"/project/r.go:5":    "github.com/steer-dev/steer/client.(*C).Get()\n\t/steer/client/client.go:4 +0x1\nshop/internal.(*R).Reconcile(0x1)\n\t/project/r.go:5 +0x33",
	} {
		record := Record{Stack: "goroutine 7 [sleep]:\n" + frames + end}
		if got := record.Where(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if got := (&Record{}).Where(); got != "" {
		t.Errorf("without a stack: %q", got)
	}
}
