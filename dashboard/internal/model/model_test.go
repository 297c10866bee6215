// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/steer-dev/steer/dashboard/internal/model"
	"github.com/steer-dev/steer/trace"
)

var begin = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// records makes attempts, one a second.
type records struct{ made []trace.Record }

func object(kind, name string) trace.Object {
	return trace.Object{Group: "example.com", Kind: kind, Namespace: "default", Name: name}
}

func (r *records) add(controller string, of trace.Object, change func(*trace.Record)) trace.ID {
	n := len(r.made)
	record := trace.Record{
		ID: trace.ID{Recorder: 7, Number: uint64(n + 1)}, Controller: controller, Object: of,
		Began: begin.Add(time.Duration(n) * time.Second), Took: 10 * time.Millisecond, Outcome: trace.Done,
	}
	if change != nil {
		change(&record)
	}
	r.made = append(r.made, record)
	return record.ID
}

func (r *records) model(keep int) (*model.Model, model.Now) {
	m := model.New(keep)
	for i := range r.made {
		m.Add(&r.made[i])
	}
	return m, model.Now{At: begin.Add(time.Duration(len(r.made)) * time.Second)}
}

func failing(outcome trace.Outcome, retries int, text string) func(*trace.Record) {
	return func(r *trace.Record) { r.Outcome, r.Retries, r.Error, r.After = outcome, retries, text, time.Minute }
}

// written is an attempt that a version caused, and that writes the next one.
func written(by trace.Object, changed, from, to string) func(*trace.Record) {
	return func(r *trace.Record) {
		r.Causes = []trace.Cause{{Type: trace.Updated, Object: by, Revision: from, Changed: changed}}
		r.Writes = []trace.Access{{Verb: trace.Update, Object: by, Revision: to}}
	}
}

func TestProblemsAreWhatDoesNotMendItself(t *testing.T) {
	t.Parallel()
	web := object("Web", "a")
	for name, c := range map[string]struct {
		attempts []func(*trace.Record)
		want     model.State
		says     string
	}{
		"done":                {[]func(*trace.Record){nil}, model.Fine, ""},
		"a conflict":          {[]func(*trace.Record){failing(trace.Conflicted, 0, "")}, model.Fine, ""},
		"one failure":         {[]func(*trace.Record){failing(trace.Failed, 0, "no")}, model.Retried, "it failed and is tried again"},
		"two failures":        {[]func(*trace.Record){failing(trace.Failed, 0, "no"), failing(trace.Panicked, 1, "no")}, model.Retried, "2 times in a row"},
		"a conflict between":  {[]func(*trace.Record){failing(trace.Failed, 0, "no"), failing(trace.Conflicted, 1, ""), failing(trace.Failed, 2, "no")}, model.Retried, "3 times in a row"},
		"many failures":       {[]func(*trace.Record){failing(trace.Failed, 4, "no")}, model.NeedsPerson, "failed 5 times in a row"},
		"mended":              {[]func(*trace.Record){failing(trace.Failed, 9, "no"), nil}, model.Fine, ""},
		"terminal":            {[]func(*trace.Record){failing(trace.Terminal, 0, "no")}, model.NeedsPerson, "no retry can mend it"},
		"given up":            {[]func(*trace.Record){failing(trace.GaveUp, 9, "no")}, model.NeedsPerson, "dropped until something changes"},
		"denied by a webhook": {[]func(*trace.Record){failing(trace.Denied, 0, "no")}, model.Fine, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var all records
			for _, change := range c.attempts {
				all.add("webs", web, change)
			}
			m, now := all.model(100)
			problems := m.Problems(now)
			if c.want == model.Fine {
				if len(problems) != 0 {
					t.Errorf("it has the problem %q", problems[0].What)
				}
				return
			}
			if len(problems) != 1 || problems[0].State != c.want || !strings.Contains(problems[0].What, c.says) {
				t.Errorf("its problems are %+v, want state %d that says %q", problems, c.want, c.says)
			}
		})
	}
}

func TestALoopIsNamedByItsField(t *testing.T) {
	t.Parallel()
	web := object("Web", "a")
	var all records
	for i := range 8 { // two controllers, each caused by the other's write
		all.add([]string{"one", "two"}[i%2], web, written(web, "spec.size", fmt.Sprint(100+i), fmt.Sprint(101+i)))
	}
	m, now := all.model(100)
	if problems := m.Problems(now); len(problems) != 0 {
		t.Errorf("after 4 turns each it is called a loop already: %+v", problems)
	}
	for i := 8; i < 12; i++ {
		all.add([]string{"one", "two"}[i%2], web, written(web, "spec.size", fmt.Sprint(100+i), fmt.Sprint(101+i)))
	}
	m, now = all.model(100)
	problems := m.Problems(now)
	if len(problems) != 2 || problems[0].State != model.NeedsPerson || !strings.Contains(problems[0].What, "changes of spec.size") {
		t.Fatalf("the problems are %+v, want a loop of each controller by spec.size", problems)
	}
	if all := m.Records(); !problems[0].Since.Equal(all[1].Began) || !problems[1].Since.Equal(all[2].Began) {
		t.Errorf("the loops began at %s and %s, want the first attempt that a write of the other caused, so that they keep their order", problems[0].Since, problems[1].Since)
	}
	now.At = now.At.Add(time.Hour)
	if problems := m.Problems(now); len(problems) != 0 {
		t.Errorf("an hour later it is still called a loop: %+v", problems)
	}
	all.add("one", web, written(web, "spec.size", "999", "1000")) // a change from outside
	m, now = all.model(100)
	if problems := m.Problems(now); len(problems) != 1 || problems[0].Controller != "two" {
		t.Errorf("after a change from outside the problems are %+v, want that of the other controller alone", problems)
	}
}

func TestARolloutIsNoLoop(t *testing.T) {
	t.Parallel()
	web := object("Web", "a")
	var all records
	for i := range 20 { // each step writes another field
		all.add("webs", web, written(web, fmt.Sprintf("status.step%d", i), fmt.Sprint(100+i), fmt.Sprint(101+i)))
	}
	if m, now := all.model(100); len(m.Problems(now)) != 0 {
		t.Errorf("it is called a loop: %+v", m.Problems(now))
	}
}

func TestAttemptsThatRunForLongAreStuck(t *testing.T) {
	t.Parallel()
	m, now := new(records).model(10)
	now.Running = []trace.Record{
		{Controller: "webs", Object: object("Web", "quick"), Took: time.Second, Outcome: trace.Running},
		{Controller: "webs", Object: object("Web", "slow"), Took: 2 * time.Minute, Outcome: trace.Running},
	}
	if p := m.Problems(now); len(p) != 1 || p[0].Name() != "Web default/slow" || p[0].State != model.NeedsPerson || !strings.Contains(p[0].What, "2m00s") {
		t.Errorf("the problems are %+v", p)
	}
}

func TestAttemptsLeadToTheWriteThatCausedThem(t *testing.T) {
	t.Parallel()
	web, pod := object("Web", "a"), object("Pod", "p")
	var all records
	first := all.add("pods", pod, func(r *trace.Record) {
		r.Writes = []trace.Access{{Verb: trace.Patch, Object: pod, Revision: "41"}, {Verb: trace.Patch, Object: pod, Revision: "42", Error: "refused"}}
	})
	second := all.add("webs", web, func(r *trace.Record) {
		r.Causes = []trace.Cause{{Type: trace.Updated, Object: pod, Revision: "44", First: "41"}, {Type: trace.Updated, Object: pod, Revision: "42"}}
	})
	m, now := all.model(100)
	a, _, ok := m.Attempt(second)
	if !ok || a.Why[0].By == nil || a.Why[0].By.ID != first || a.Why[1].By != nil {
		t.Errorf("the causes are %+v, want the first by %s and the other by none", a.Why, first)
	}
	_, caused, ok := m.Attempt(first)
	if !ok || len(caused) != 1 || caused[0].ID != second {
		t.Errorf("the first attempt caused %+v, want %s", caused, second)
	}
	about := m.Object(now, model.Subject{Object: pod}, 0, 10)
	if about.Foreign || about.Total != 1 {
		t.Errorf("of the Pod there are %d attempts, foreign: %v", about.Total, about.Foreign)
	}
	if _, _, ok := m.Attempt(trace.ID{Recorder: 1, Number: 1}); ok {
		t.Error("an attempt of another recorder is found")
	}
}

func TestObjectsOfNoControllerShowWhoWroteThem(t *testing.T) {
	t.Parallel()
	var all records
	all.add("webs", object("Web", "a"), func(r *trace.Record) {
		r.Writes = []trace.Access{{Verb: trace.Create, Object: object("Job", "j"), Revision: "5"}}
	})
	all.add("webs", object("Web", "b"), nil)
	m, now := all.model(10)
	if v := m.Object(now, model.Subject{Object: object("Job", "j")}, 0, 10); !v.Foreign || v.Total != 1 || v.Attempts[0].Object.Name != "a" {
		t.Errorf("the view is %+v", v)
	}
}

func TestTheOldestRecordsGoWithWhatIsKnownOfThem(t *testing.T) {
	t.Parallel()
	var all records
	for i := range 1000 {
		all.add("webs", object("Web", fmt.Sprint(i)), func(r *trace.Record) {
			r.Writes = []trace.Access{{Verb: trace.Update, Object: r.Object, Revision: fmt.Sprint(i + 1)}}
		})
	}
	m, now := all.model(100)
	rows, total := m.Rows(now, "", 0, 1000)
	if m.Added() != 1000 || m.Len() > 126 || m.Len() < 100 || total != m.Len() || len(rows) != total {
		t.Errorf("of %d records %d are kept, of %d objects", m.Added(), m.Len(), total)
	}
	if _, _, ok := m.Attempt(all.made[0].ID); ok {
		t.Error("the first attempt is still there")
	}
	if a, _, ok := m.Attempt(all.made[999].ID); !ok || a.Number != 999 {
		t.Errorf("the last attempt has number %d", a.Number)
	}
	if v := m.Object(now, model.Subject{Object: object("Web", "999")}, 0, 10); v.Total != 1 {
		t.Errorf("the last object has %d attempts", v.Total)
	}
	again := m.Added()
	m.Add(&all.made[999])
	if m.Added() != again {
		t.Error("a record that is there is added again")
	}
}

func TestAttemptsArePagedWithoutGapOrRepetition(t *testing.T) {
	t.Parallel()
	web := object("Web", "a")
	var all records
	for i := range 250 {
		all.add("webs", web, nil)
		all.add([]string{"webs", "others"}[i%2], object("Web", "b"), nil)
	}
	m, now := all.model(1000)
	seen, before := 0, 0
	for last := 1 << 30; ; {
		v := m.Object(now, model.Subject{Object: web}, before, 60)
		if v.Total != 250 || v.Newest != (before == 0) {
			t.Fatalf("before %d there are %d, the newest: %v", before, v.Total, v.Newest)
		}
		for _, a := range v.Attempts {
			if a.Number >= last {
				t.Fatalf("attempt %d follows %d", a.Number, last)
			}
			last = a.Number
			seen++
		}
		if before = v.Older; before == 0 {
			break
		}
	}
	if seen != 250 {
		t.Errorf("the pages have %d attempts, want 250", seen)
	}
}

func TestCausesAreCountedToSayWhyItRunsSoOften(t *testing.T) {
	t.Parallel()
	web := object("Web", "a")
	var all records
	for i := range 7 {
		kind := trace.Delayed
		if i == 0 {
			kind = trace.Created
		}
		all.add("webs", web, func(r *trace.Record) {
			r.Began, r.Causes = begin.Add(time.Duration(i)*10*time.Second), []trace.Cause{{Type: kind}}
		})
	}
	m, now := all.model(100)
	v := m.Object(now, model.Subject{Object: web}, 0, 3)
	if v.Every != 10*time.Second || len(v.Often) != 2 || v.Often[0].Type != trace.Delayed || v.Often[0].Attempts != 6 || v.Often[1].Attempts != 1 {
		t.Errorf("every %s because of %+v, want every 10s, 6 delayed and 1 created", v.Every, v.Often)
	}
}

func TestQueueIsInTheOrderOfTime(t *testing.T) {
	t.Parallel()
	var all records
	for i, after := range []time.Duration{time.Hour, time.Minute, 0} {
		all.add("webs", object("Web", fmt.Sprint("due-", i)), func(r *trace.Record) { r.Outcome, r.After = trace.Requeued, after })
	}
	all.add("webs", object("Web", "failing"), failing(trace.Failed, 3, "no"))
	m, now := all.model(100)
	q := m.Queue(now)
	if len(q.Due) != 2 || q.Due[0].Object.Name != "due-1" || q.Due[1].Object.Name != "due-0" || !q.Due[0].At.Equal(begin.Add(time.Second+10*time.Millisecond+time.Minute)) {
		t.Errorf("due are %+v", q.Due)
	}
	if len(q.BackingOff) != 1 || q.BackingOff[0].Attempt != 5 || q.BackingOff[0].Error != "no" {
		t.Errorf("backing off are %+v", q.BackingOff)
	}
	if q.Known {
		t.Error("what waits is known without having been asked for")
	}
	now.Queued = []trace.Queued{
		{Controller: "jobs", AllDue: 7, Due: []trace.Waiting{{Request: "nightly", At: begin}}},
		{Controller: "webs", AllReady: 2, Ready: []trace.Waiting{{Object: object("Web", "failing"), At: begin, Failures: 4}, {Object: object("Web", "new"), At: begin.Add(-time.Second)}}},
	}
	q = m.Queue(now)
	if !q.Known || q.AllReady != 2 || q.AllDue != 7 || q.AllBackingOff != 0 || len(q.Due) != 1 || q.Due[0].Name() != "nightly" {
		t.Errorf("the queue is %+v", q)
	}
	if len(q.Ready) != 2 || q.Ready[0].Object.Name != "new" || !q.Ready[0].Last.IsZero() || q.Ready[1].Attempt != 5 || q.Ready[1].Error != "no" || q.Ready[1].Outcome != trace.Failed {
		t.Errorf("ready are %+v", q.Ready)
	}
}

func TestPulseCountsTheWindow(t *testing.T) {
	t.Parallel()
	var all records
	for i := range 400 { // the window has the last 300
		change := func(r *trace.Record) { r.Took = time.Duration(i) * time.Millisecond }
		if i >= 390 {
			change = failing(trace.Failed, 0, "no")
		}
		all.add("webs", object("Web", fmt.Sprint(i%4)), change)
	}
	m, now := all.model(1000)
	live := m.Pulse(now, false)
	c := live.Controllers[0]
	sum := 0.0
	for _, n := range c.Rate {
		sum += n
	}
	if c.Attempts < 290 || c.Attempts > 301 || int(sum) != c.Attempts || c.Failures != 10 || c.Objects != 4 || c.Waiting != -1 || c.Slowest != 389*time.Millisecond {
		t.Errorf("the last five minutes have %+v", c)
	}
	whole := m.Pulse(now, true)
	if whole.Controllers[0].Attempts != 400 || !whole.From.Equal(begin) {
		t.Errorf("the recording has %d attempts from %s", whole.Controllers[0].Attempts, whole.From)
	}
}

func TestCountsReachFurtherBackThanRecords(t *testing.T) {
	t.Parallel()
	var all records
	for i := range 250 {
		all.add("webs", object("Web", fmt.Sprint(i%4)), nil)
	}
	m, now := all.model(10)
	if c := m.Pulse(now, false).Controllers[0]; c.Attempts != 250 || m.Len() > 15 {
		t.Errorf("with %d records of 250 the last five minutes have %d attempts", m.Len(), c.Attempts)
	}
	now.At = now.At.Add(time.Hour)
	if c := m.Pulse(now, false).Controllers[0]; c.Attempts != 0 {
		t.Errorf("an hour later they have %d", c.Attempts)
	}
}

func TestBriefDurations(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 1234567 * time.Nanosecond: "1.2ms", 345 * time.Microsecond: "350µs", 12 * time.Second: "12s", 90 * time.Second: "1m30s",
		10 * time.Minute: "10m00s", 3*time.Hour + 10*time.Minute: "3h10m", 72 * time.Hour: "3d",
	} {
		if got := model.Brief(d); got != want {
			t.Errorf("%d is %q, want %q", d, got, want)
		}
	}
}
