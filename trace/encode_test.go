// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestACursorReadsEncodedRecordsAndHowManyItMissed(t *testing.T) {
	t.Parallel()
	r := NewRecorder(Options{Budget: 2 * segmentSize})
	record(r, "first", Access{Verb: Get, Object: Object{Kind: "Pod"}})
	cursor := r.Cursor()
	encoded, missed, _ := cursor.Next()
	got, err := Decode(encoded)
	if diff := cmp.Diff(kept(r)[0], got); diff != "" || err != nil || missed != 0 {
		t.Errorf("missed %d, %v: %s", missed, err, diff)
	}
	encoded, _, more := cursor.Next()
	if encoded != nil {
		t.Fatal("a second record")
	}
	for range 5000 {
		record(r, "more")
	}
	<-more
	total := 0
	for {
		encoded, missed, _ := cursor.Next()
		total += missed
		if encoded == nil {
			break
		}
		total++
	}
	if total != 5000 {
		t.Errorf("counted %d of 5000", total)
	}
	if encoded, _, more := (*Recorder)(nil).Cursor().Next(); encoded != nil || more != nil {
		t.Error("a nil recorder has records")
	}
}

func TestWhatIsNoRecordIsAnError(t *testing.T) {
	t.Parallel()
	r := NewRecorder(Options{})
	record(r, "first", Access{Verb: Update, Object: Object{Kind: "Pod"}, Changed: "spec"})
	encoded, _, _ := r.Cursor().Next()
	encoded = bytes.Clone(encoded)
	for n := range encoded {
		if got, err := Decode(encoded[:n]); err == nil {
			t.Errorf("the first %d of %d bytes are %v", n, len(encoded), got)
		}
	}
	if _, err := Decode(append(encoded, 0)); err == nil {
		t.Error("a record may be longer than it is")
	}
}

// FuzzDecode is of bytes that anyone may have written.
func FuzzDecode(f *testing.F) {
	r := NewRecorder(Options{})
	record(r, "first", Access{Verb: Update, Object: Object{Kind: "Pod"}, Changed: "spec"}, Access{Verb: List, Items: 3})
	encoded, _, _ := r.Cursor().Next()
	f.Add(bytes.Clone(encoded))
	f.Fuzz(func(t *testing.T, encoded []byte) {
		if record, err := Decode(encoded); err == nil {
			_ = record.String()
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	r := NewRecorder(Options{})
	record(r, "first", Access{Verb: Get, Object: Object{Kind: "Pod", Namespace: "default", Name: "a"}}, Access{Verb: Update, Object: Object{Kind: "Pod", Name: "a"}, Changed: "spec"})
	encoded, _, _ := r.Cursor().Next()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Decode(encoded); err != nil {
			b.Fatal(err)
		}
	}
}
