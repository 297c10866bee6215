// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"runtime"
	"testing"
	"weak"

	"github.com/steer-dev/steer/apiserver/internal/wire"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/storage"
)

// newRecord returns a record with a value of its own.
func newRecord(size int) *storage.Record {
	return &storage.Record{Key: storage.Key{Bucket: "b", Name: "n"}, Value: make([]byte, size), Modified: 7}
}

// remember has a form of a record remembered that shares its value and has own bytes
// beside it. It reports whether it had to be made.
func remember(t *testing.T, f *forms, rec *storage.Record, v *resource.Version, own int) (made bool) {
	t.Helper()
	_, err := f.rope(rec, v, formProto, func() (wire.Rope, int, error) {
		made = true
		return wire.Rope{Head: make([]byte, own), Rest: [][]byte{rec.Value}}, own, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// TestFormsGoWithTheirRecord holds that an encoding keeps neither a record that the
// store has forgotten nor its value.
func TestFormsGoWithTheirRecord(t *testing.T) {
	t.Parallel()
	f, v := newForms(1<<20), &resource.Version{}
	rec := newRecord(1000)
	record, value := weak.Make(rec), weak.Make(&rec.Value[0])
	remember(t, f, rec, v, 1000)
	if remember(t, f, rec, v, 1000) {
		t.Error("a form of a record that is there is made again")
	}
	runtime.KeepAlive(rec)
	runtime.GC()
	if record.Value() != nil || value.Value() != nil {
		t.Error("a form keeps a record that is gone in memory")
	}
	runtime.KeepAlive(f)
}

// TestFormsBudgetIsForRecordsThatAreThere holds that encodings that went with their
// records take no room from others, and leave nothing behind.
func TestFormsBudgetIsForRecordsThatAreThere(t *testing.T) {
	t.Parallel()
	const size, limit = 1000, 100_000
	f, v := newForms(limit), &resource.Version{}
	there := newRecord(size)
	remember(t, f, there, v, size)
	for range 100 {
		for range 20 {
			remember(t, f, newRecord(size), v, size)
		}
		runtime.GC()
	}
	if remember(t, f, there, v, size) {
		t.Error("forms of records that are gone have taken the room of one that is there")
	}
	if len(f.queue) > 100 {
		t.Errorf("%d forms are in the queue, and one is there", len(f.queue))
	}
}

// TestFormsOfRecordsThatAreThereKeepTheirBudget holds that the oldest go first.
func TestFormsOfRecordsThatAreThereKeepTheirBudget(t *testing.T) {
	t.Parallel()
	const size, limit = 1000, 20_000
	f, v := newForms(limit), &resource.Version{}
	records := make([]*storage.Record, 100)
	for i := range records {
		records[i] = newRecord(size)
		remember(t, f, records[i], v, size)
	}
	made := 0
	for i := range records {
		if project(records[i]).find(v, formProto) != nil {
			continue
		}
		if made++; made <= i {
			t.Fatalf("the form of record %d is gone, an older one is there", i)
		}
	}
	if kept := len(records) - made; kept == 0 || kept*size > limit {
		t.Errorf("%d forms of %d bytes are remembered within %d bytes", kept, size, limit)
	}
}

// TestFormsAreRememberedOnce holds that two callers that make the same form at once
// leave one.
func TestFormsAreRememberedOnce(t *testing.T) {
	t.Parallel()
	f, v, rec := newForms(1<<20), &resource.Version{}, newRecord(10)
	_, err := f.rope(rec, v, formProto, func() (wire.Rope, int, error) {
		remember(t, f, rec, v, 10)
		return wire.Rope{Head: make([]byte, 10)}, 10, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(f.queue) != 1 {
		t.Errorf("one form is remembered %d times", len(f.queue))
	}
}
