// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// record writes one complete record.
func record(r *Recorder, name string, accesses ...Access) {
	var causes Causes
	causes.Add(Cause{Type: Updated, Object: Object{Kind: "Pod", Namespace: "default", Name: "web-1"}, Revision: "44", Changed: "status.phase"})
	var a Active
	r.Begin(&a, Start{
		Controller: "replicas", Object: Object{Group: "example.com", Kind: "Replicas", Namespace: "default", Name: name},
		Began: time.Unix(1, 0), Waited: time.Millisecond, Causes: &causes,
	})
	for _, access := range accesses {
		a.Note(access)
	}
	a.End(End{Outcome: Done, Took: 2 * time.Millisecond})
}

func kept(r *Recorder) (all []Record) {
	for rec := range r.Records() {
		all = append(all, rec)
	}
	return all
}

func TestASeedMakesTheSameIds(t *testing.T) {
	t.Parallel()
	ids := map[ID]int{}
	for _, seed := range []uint64{1, 1, 2, 0, 0} {
		r := NewRecorder(Options{Seed: seed})
		record(r, "a")
		ids[kept(r)[0].ID]++
	}
	if len(ids) != 4 {
		t.Errorf("ids of the seeds 1, 1, 2 and of two without a seed: %v", ids)
	}
}

func TestARecordTellsCauseReadsWritesAndOutcome(t *testing.T) {
	t.Parallel()
	r := NewRecorder(Options{})
	pod := Object{Kind: "Pod", Namespace: "default", Name: "web-2"}
	var causes Causes
	causes.Add(Cause{Type: Created, Object: pod, Revision: "7"})
	causes.Add(Cause{Type: Delayed})
	var a Active
	r.Begin(&a, Start{Controller: "c", Object: Object{Kind: "Set", Name: "x"}, Began: time.Unix(5, 6), Waited: 3, Retries: 2, Causes: &causes})
	read := Access{Verb: List, Object: Object{Kind: "Pod", Namespace: "default"}, Revision: "9", Items: 2, Cached: true}
	write := Access{Verb: Patch, Object: pod, Subresource: "status", Revision: "10", Error: "boom"}
	a.Note(read)
	a.Note(write)
	a.End(End{Outcome: Failed, Took: 4, After: 5, Err: errors.New("no luck")})
	a.Note(read) // too late

	want := []Record{{
		ID: a.ID(), Controller: "c", Object: Object{Kind: "Set", Name: "x"}, Began: time.Unix(5, 6), Waited: 3, Retries: 2,
		Causes: []Cause{{Type: Created, Object: pod, Revision: "7", Count: 1}, {Type: Delayed, Count: 1}}, Adds: 2,
		Reads: []Access{read}, Writes: []Access{write}, Outcome: Failed, Took: 4, After: 5, Error: "no luck",
	}}
	if diff := cmp.Diff(want, kept(r)); diff != "" {
		t.Fatal(diff)
	}
	if got := kept(r)[0].String(); got != "c x: created Pod default/web-2@7, delayed -> list Pod@9[2] -> patch Pod/status default/web-2@10 failed -> failed, again in 5ns in 0s: no luck" {
		t.Error(got)
	}
}

func TestTheBudgetHoldsAndTheNewestStay(t *testing.T) {
	t.Parallel()
	r := NewRecorder(Options{Budget: 4 * segmentSize})
	const n = 5000
	for i := range n {
		record(r, fmt.Sprint(i))
	}
	size := 0
	for _, s := range r.segments {
		size += cap(s)
	}
	if size > 4*segmentSize {
		t.Errorf("%d bytes held, the budget is %d", size, 4*segmentSize)
	}
	all := kept(r)
	if len(all) < 500 || all[len(all)-1].Name != fmt.Sprint(n-1) {
		t.Fatalf("kept %d records, the last is %q", len(all), all[len(all)-1].Name)
	}
	for i := 1; i < len(all); i++ {
		if all[i].ID != (ID{all[i-1].ID.Recorder, all[i-1].ID.Number + 1}) {
			t.Fatalf("record %v follows %v", all[i].ID, all[i-1].ID)
		}
	}
}

func TestAFullRecordCountsWhatItOmits(t *testing.T) {
	t.Parallel()
	r := NewRecorder(Options{})
	accesses := make([]Access, 2000)
	for i := range accesses {
		accesses[i] = Access{Verb: Get, Object: Object{Kind: "Pod", Name: fmt.Sprint(i)}}
	}
	record(r, "x", accesses...)
	got := kept(r)[0]
	if got.Omitted == 0 || got.Omitted+len(got.Reads) != 2000 {
		t.Errorf("%d reads and %d omitted", len(got.Reads), got.Omitted)
	}
}

func TestSecretsStayOut(t *testing.T) {
	t.Parallel()
	r := NewRecorder(Options{})
	secret := Object{Kind: "Secret", Namespace: "default", Name: "login"}
	var causes Causes
	causes.Add(Cause{Type: Updated, Object: secret, Changed: "data[hunter2],data[other],metadata.labels[hunter2]"})
	var a Active
	r.Begin(&a, Start{Controller: "c", Causes: &causes})
	a.Note(Access{Verb: Update, Object: secret, Error: `data.key: Invalid value: "hunter2"`})
	a.Note(Access{Verb: Patch, Object: secret, Changed: MergeFields([]byte(`{"data":{"hunter2":"x"},"metadata":{"annotations":{"hunter2":"x"}}}`))})
	a.End(End{Outcome: Failed, Err: errors.New(`write: Invalid value: "hunter2"`)})

	var out bytes.Buffer
	if err := WriteJSON(&out, r.Records()); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), "hunter2") || bytes.Contains(r.segments[0], []byte("hunter2")) {
		t.Errorf("the record quotes a Secret: %s", out.String())
	}
	if got := kept(r)[0]; got.Causes[0].Changed != "data,metadata" || got.Writes[1].Changed != "data,metadata" || got.Writes[0].Name != "login" {
		t.Errorf("too much is gone: %v", got)
	}
}

func TestJSONLinesRoundTrip(t *testing.T) {
	t.Parallel()
	r := NewRecorder(Options{})
	record(r, "a", Access{Verb: Get, Object: Object{Kind: "Pod"}})
	record(r, "b", Access{Verb: Apply, Object: Object{Group: "apps", Kind: "Deployment"}})
	var out bytes.Buffer
	if err := WriteJSON(&out, r.Records()); err != nil {
		t.Fatal(err)
	}
	var got []Record
	for dec := json.NewDecoder(&out); dec.More(); {
		var rec Record
		if err := dec.Decode(&rec); err != nil {
			t.Fatal(err)
		}
		got = append(got, rec)
	}
	if diff := cmp.Diff(kept(r), got); diff != "" {
		t.Error(diff)
	}
}

func TestFollowersSeeEveryRecordOrHowManyTheyMissed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := NewRecorder(Options{Budget: 2 * segmentSize})
		record(r, "before")
		ctx, cancel := context.WithCancel(t.Context())
		var seen, missed int
		var wg sync.WaitGroup
		follow := r.Follow(ctx)
		wg.Go(func() {
			for rec := range follow {
				if rec.Name == "before" {
					t.Error("a record from before the call")
				}
				seen, missed = seen+1, missed+rec.Missed
			}
		})
		record(r, "one")
		synctest.Wait()
		if seen != 1 {
			t.Errorf("saw %d records, not 1", seen)
		}
		for range 3000 {
			record(r, "many")
		}
		synctest.Wait()
		if seen+missed != 3001 {
			t.Errorf("saw %d and missed %d of 3001", seen, missed)
		}
		cancel()
		wg.Wait()

		slow := r.Follow(t.Context())
		for range 3000 {
			record(r, "more")
		}
		total := 0
		for rec := range slow {
			if total += 1 + rec.Missed; total == 3000 {
				break
			}
			if total > 3000 {
				t.Fatalf("counted %d of 3000", total)
			}
		}
	})
}

func TestCausesKeepTheFirstThenTheLatestAndCountAll(t *testing.T) {
	t.Parallel()
	var s Causes
	for i := range 20 {
		s.Add(Cause{Type: Updated, Object: Object{Name: fmt.Sprint(i)}})
	}
	s.Add(Cause{Type: Updated, Object: Object{Name: "0"}, Revision: "9", Changed: "b,a"})
	s.Add(Cause{Type: Updated, Object: Object{Name: "0"}, Changed: "a,c"})
	var got []string
	for c := range s.All() {
		got = append(got, c.String())
	}
	want := []string{"updated 0@9 (b,a,c) x3", "updated 13", "updated 14", "updated 15", "updated 16", "updated 17", "updated 18", "updated 19"}
	if diff := cmp.Diff(want, got); diff != "" || s.Total() != 22 {
		t.Errorf("total %d: %s", s.Total(), diff)
	}
	s.Reset()
	for c := range s.All() {
		t.Errorf("%v after Reset", c)
	}
}

func TestAMergedCauseKeepsTheFirstAndTheNewestRevision(t *testing.T) {
	t.Parallel()
	var s Causes
	pod := Object{Kind: "Pod", Namespace: "default", Name: "web-1"}
	for _, revision := range []string{"41", "42", "42", "", "44"} {
		s.Add(Cause{Type: Updated, Object: pod, Revision: revision})
	}
	s.Add(Cause{Type: Deleted, Object: pod, Revision: "45"})
	r := NewRecorder(Options{})
	var a Active
	r.Begin(&a, Start{Causes: &s})
	a.End(End{Outcome: Done})
	want := []Cause{
		{Type: Updated, Object: pod, Revision: "44", First: "41", Count: 5},
		{Type: Deleted, Object: pod, Revision: "45", Count: 1},
	}
	if diff := cmp.Diff(want, kept(r)[0].Causes); diff != "" {
		t.Error(diff)
	}
	if got := kept(r)[0].Causes[0].String(); got != "updated Pod default/web-1@41..44 x5" {
		t.Error(got)
	}
}

func TestANilRecorderAndANilRecordAreSilent(t *testing.T) {
	t.Parallel()
	var r *Recorder
	var a Active
	r.Begin(&a, Start{})
	a.Note(Access{})
	a.End(End{})
	FromContext(t.Context()).Note(Access{})
	if a.Recording() || FromContext(t.Context()).Recording() {
		t.Error("without a recorder, something is kept")
	}
	for range r.Records() {
		t.Error("a record")
	}
	off := NewRecorder(Options{Budget: -1})
	off.Begin(&a, Start{})
	if a.Recording() {
		t.Error("a negative budget keeps what is noted")
	}
	a.End(End{})
	if a.ID().IsZero() || len(kept(off)) != 0 {
		t.Error("a negative budget keeps ids and nothing else")
	}
	var on Active
	NewRecorder(Options{}).Begin(&on, Start{})
	began := on.Recording()
	on.End(End{})
	if !began || on.Recording() {
		t.Errorf("recording %t once it has begun, and %t after its end", began, on.Recording())
	}
}

func TestIDsReadBack(t *testing.T) {
	t.Parallel()
	for text, id := range map[string]ID{
		"00000000000000ab-42":                   {Recorder: 0xab, Number: 42},
		"ffffffffffffffff-18446744073709551615": {Recorder: math.MaxUint64, Number: math.MaxUint64},
	} {
		var back ID
		if err := back.UnmarshalText([]byte(text)); err != nil || back != id || id.String() != text {
			t.Errorf("%s is read as %v and written as %s: %v", text, back, id, err)
		}
	}
	for _, text := range []string{"", "65a1b2c3-0000002a", "00000000000000ab", "00000000000000ab-", "00000000000000ab-x", "+0000000000000ab-1"} {
		if err := new(ID).UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is taken for an id", text)
		}
	}
}

func TestIDsOfRecordersThatBeganAtOneTimeDiffer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		seen := map[ID]bool{}
		for range 100 { // replicas and restarts
			r := NewRecorder(Options{})
			for range 3 {
				var a Active
				r.Begin(&a, Start{})
				a.End(End{})
			}
			for record := range r.Records() {
				seen[record.ID] = true
			}
		}
		if len(seen) != 300 {
			t.Errorf("300 reconciles have %d ids", len(seen))
		}
	})
}

func BenchmarkReconcile(b *testing.B) {
	r := NewRecorder(Options{})
	var causes Causes
	causes.Add(Cause{Type: Updated, Object: Object{Kind: "Pod", Namespace: "default", Name: "web-1"}, Revision: "44", Changed: "status.phase"})
	began := time.Now()
	ctx := NewContext(context.Background(), nil)
	for _, n := range []int{0, 3} {
		b.Run(fmt.Sprintf("accesses=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				var a Active
				r.Begin(&a, Start{Controller: "replicas", Object: Object{Group: "example.com", Kind: "Replicas", Namespace: "default", Name: "web"}, Began: began, Causes: &causes})
				FromContext(ctx).Note(Access{})
				for range n {
					a.Note(Access{Verb: Get, Object: Object{Kind: "Pod", Namespace: "default", Name: "web-1"}, Revision: "44"})
				}
				a.End(End{Outcome: Done})
			}
		})
	}
}
