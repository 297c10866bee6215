// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/steer-dev/steer/internal/lifecycletest"
	"github.com/steer-dev/steer/trace"
)

var quiet = slog.New(slog.DiscardHandler)

// note makes a record of a set, which a pod caused and which writes a config map.
func note(r *trace.Recorder, n int) {
	var causes trace.Causes
	causes.Add(trace.Cause{Type: trace.Updated, Object: pod(n), Revision: fmt.Sprint(n), Changed: "status.phase"})
	var a trace.Active
	r.Begin(&a, trace.Start{Controller: "sets", Object: set(n), Began: time.Unix(int64(n), 0), Causes: &causes})
	a.Note(trace.Access{Verb: trace.Get, Object: set(n), Revision: "1", Cached: true})
	a.Note(trace.Access{Verb: trace.Apply, Object: trace.Object{Kind: "ConfigMap", Namespace: "default", Name: "shared"}, Revision: fmt.Sprint(n + 1), Changed: "data.a"})
	a.End(trace.End{Outcome: trace.Done, Took: time.Millisecond})
}

func pod(n int) trace.Object {
	return trace.Object{Kind: "Pod", Namespace: "default", Name: fmt.Sprint("pod-", n)}
}
func set(n int) trace.Object {
	return trace.Object{Group: "example.com", Kind: "Set", Namespace: "default", Name: fmt.Sprint("set-", n%100)}
}

// write records n reconciles through a writer that is stopped then.
func write(t testing.TB, o Options, from, n int) {
	t.Helper()
	recorder := trace.NewRecorder(trace.Options{Budget: 64 << 20})
	for i := range n {
		note(recorder, from+i)
	}
	w := NewWriter(recorder, o)
	if err := w.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := w.Stop(); err != nil {
		t.Fatal(err)
	}
}

// read returns what a reader yields.
func read(t *testing.T, dir string, about *trace.Object) (records []trace.Record, errs []error) {
	t.Helper()
	r, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	seq := r.Records()
	if about != nil {
		seq = r.Of(*about)
	}
	for record, err := range seq {
		if err != nil {
			errs = append(errs, err)
			continue
		}
		records = append(records, record)
	}
	return records, errs
}

func TestRecordsAreReadAsTheyWereWritten(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "made", "by", "the writer")
	recorder := trace.NewRecorder(trace.Options{})
	w := NewWriter(recorder, Options{Dir: dir, SegmentBytes: 1, Log: quiet})
	note(recorder, 0) // before the start
	if err := w.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i := range 3000 {
		note(recorder, i+1)
	}
	if err := w.Stop(); err != nil {
		t.Fatal(err)
	}
	var want []trace.Record
	for record := range recorder.Records() {
		want = append(want, record)
	}
	got, errs := read(t, dir, nil)
	if len(errs) > 0 || w.Dropped() > 0 {
		t.Errorf("dropped %d: %v", w.Dropped(), errs)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	files, _ := directory{dir}.Sizes()
	if segments := segmentsOf(files); len(segments) < 3 || len(files) != 2*len(segments) {
		t.Errorf("files: %v", slices.Sorted(maps.Keys(files)))
	}
	for name := range files {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v %v", name, info.Mode(), err)
		}
	}
}

func TestAnObjectIsFoundWithAndWithoutAnIndex(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, Options{Dir: dir, SegmentBytes: 1, Log: quiet}, 0, 3000)
	shared := trace.Object{Kind: "ConfigMap", Namespace: "default", Name: "shared"}
	pod, set, none := pod(1234), set(42), trace.Object{Kind: "Pod", Namespace: "default", Name: "other"}
	want := map[trace.Object]int{shared: 3000, pod: 1, set: 30, none: 0}
	check := func(when string) {
		t.Helper()
		for object, n := range want {
			if got, errs := read(t, dir, &object); len(got) != n || len(errs) > 0 {
				t.Errorf("%s: %d records about %v, not %d: %v", when, len(got), object, n, errs)
			}
		}
	}
	check("with indexes")
	indexes, err := filepath.Glob(filepath.Join(dir, "*"+indexEnd))
	if err != nil || len(indexes) < 3 {
		t.Fatal(indexes, err)
	}
	b, err := os.ReadFile(indexes[0])
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/2] ^= 1
	if err := errors.Join(os.WriteFile(indexes[0], b, 0o600), os.Truncate(indexes[1], 30), os.Remove(indexes[2])); err != nil {
		t.Fatal(err)
	}
	check("with indexes that are damaged or missing")
}

// TestWhatAKilledProcessLeavesIsReadToItsLastWholeRecord cuts a segment at every byte.
func TestWhatAKilledProcessLeavesIsReadToItsLastWholeRecord(t *testing.T) {
	t.Parallel()
	from, dir := t.TempDir(), t.TempDir()
	write(t, Options{Dir: from, Log: quiet}, 0, 5)
	files, _ := directory{from}.Sizes()
	name := segmentsOf(files)[0]
	whole, err := os.ReadFile(filepath.Join(from, name+segmentEnd))
	if err != nil {
		t.Fatal(err)
	}
	all, _ := read(t, from, nil)
	seen := map[int]bool{}
	for n := range whole {
		if err := os.WriteFile(filepath.Join(dir, name+segmentEnd), whole[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		got, errs := read(t, dir, nil)
		if diff := cmp.Diff(all[:len(got)], got); diff != "" && len(got) > 0 {
			t.Fatalf("of %d bytes: %s", n, diff)
		}
		var damaged *DamagedError
		switch {
		case len(errs) == 0: // between two records
			if seen[len(got)] {
				t.Errorf("%d bytes have %d records and no damage, as fewer bytes", n, len(got))
			}
			seen[len(got)] = true
		case len(errs) != 1 || !errors.As(errs[0], &damaged) || damaged.Offset > int64(n) || damaged.File != name+segmentEnd:
			t.Errorf("of %d bytes: %v", n, errs)
		}
	}
	if len(seen) != 5 { // behind the header, and behind each but the last
		t.Errorf("whole at %v", seen)
	}
}

func TestADamagedSegmentDoesNotHideTheOthers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, Options{Dir: dir, Log: quiet}, 0, 10)
	write(t, Options{Dir: dir, Log: quiet}, 100, 10)
	files, _ := directory{dir}.Sizes()
	names := segmentsOf(files)
	b, err := os.ReadFile(filepath.Join(dir, names[0]+segmentEnd))
	if err != nil || len(names) != 2 {
		t.Fatal(names, err)
	}
	b[len(b)-3] ^= 1
	if err := os.WriteFile(filepath.Join(dir, names[0]+segmentEnd), b, 0o600); err != nil {
		t.Fatal(err)
	}
	records, errs := read(t, dir, nil)
	if len(records) != 19 || len(errs) != 1 || !strings.Contains(errs[0].Error(), "checksum") {
		t.Errorf("%d records, %v", len(records), errs)
	}
	b[len(magic)]++ // a version of the future
	if err := os.WriteFile(filepath.Join(dir, names[0]+segmentEnd), b, 0o600); err != nil {
		t.Fatal(err)
	}
	if records, errs := read(t, dir, nil); len(records) != 10 || len(errs) != 1 || !errors.Is(errs[0], ErrVersion) {
		t.Errorf("%d records, %v", len(records), errs)
	}
	if _, err := Open(filepath.Join(dir, "missing")); err == nil || !strings.Contains(err.Error(), "--record-dir") {
		t.Error(err)
	}
}

func TestTheOldestSegmentsGoAndForeignFilesStay(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "notes.txt"), make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	const most = 1 << 20
	for i := range 4 { // four starts
		write(t, Options{Dir: dir, Bytes: most, Log: quiet}, i*3000, 3000)
		files, err := directory{dir}.Sizes()
		if err != nil {
			t.Fatal(err)
		}
		if files["notes.txt"] != 1<<20 {
			t.Error("a file that is not the writer's is gone")
		}
		delete(files, "notes.txt")
		total := int64(0)
		for _, size := range files {
			total += size
		}
		if total > most {
			t.Errorf("%d bytes, at most %d", total, most)
		}
	}
	records, errs := read(t, dir, nil)
	if len(errs) > 0 || len(records) < 1000 || records[len(records)-1].Causes[0].Revision != "11999" {
		t.Errorf("%d records: %v", len(records), errs)
	}
}

// faulty is a disk in memory whose writes wait for a gate, or fail.
type faulty struct {
	gate  chan struct{} // nil: open
	mu    sync.Mutex
	err   error
	files map[string][]byte
}

func (d *faulty) Create(name string) (io.WriteCloser, error) { return &faultyFile{d, name}, nil }
func (d *faulty) Remove(string) error                        { return nil }
func (d *faulty) Sizes() (map[string]int64, error)           { return nil, nil }

func (d *faulty) fail(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.err = err
}

type faultyFile struct {
	d    *faulty
	name string
}

func (f *faultyFile) Close() error { return nil }

func (f *faultyFile) Write(b []byte) (int, error) {
	if f.d.gate != nil {
		<-f.d.gate
	}
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if f.d.err != nil {
		return 0, f.d.err
	}
	f.d.files[f.name] = append(f.d.files[f.name], b...)
	return len(b), nil
}

// count reads the records of the disk, and how many are missed before them.
func (d *faulty) count(t *testing.T) (records, missed int) {
	t.Helper()
	dir := t.TempDir()
	for name, b := range d.files {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	all, errs := read(t, dir, nil)
	for _, r := range all {
		missed += r.Missed
	}
	if len(errs) > 0 {
		t.Error(errs)
	}
	return len(all), missed
}

func TestASlowDiskDropsRecordsAndNoReconcileWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		disk := &faulty{gate: make(chan struct{}), files: map[string][]byte{}}
		recorder := trace.NewRecorder(trace.Options{Budget: 1}) // 128 KiB
		w := NewWriter(recorder, Options{disk: disk, Log: quiet})
		if err := w.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		note(recorder, 0)
		synctest.Wait() // its write hangs
		for i := range 5000 {
			note(recorder, i+1) // in no time: the bubble's clock would move if it waited
		}
		note(recorder, 5001)
		close(disk.gate)
		if err := w.Stop(); err != nil {
			t.Fatal(err)
		}
		if w.Dropped() == 0 {
			t.Error("nothing was dropped")
		}
		records, missed := disk.count(t)
		if records+missed != 5002 || uint64(missed) != w.Dropped() {
			t.Errorf("%d records and %d missed, %d counted", records, missed, w.Dropped())
		}
	})
}

func TestAFullDiskDropsRecordsUntilThereIsRoom(t *testing.T) {
	t.Parallel()
	disk := &faulty{files: map[string][]byte{}}
	synctest.Test(t, func(t *testing.T) {
		recorder := trace.NewRecorder(trace.Options{})
		w := NewWriter(recorder, Options{disk: disk, Log: quiet})
		if err := w.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		note(recorder, 0)
		time.Sleep(time.Minute) // of the bubble: it is written
		disk.fail(syscall.ENOSPC)
		for i := range 10 {
			note(recorder, i+1)
			time.Sleep(time.Minute) // of the bubble
		}
		disk.fail(nil)
		note(recorder, 11)
		time.Sleep(time.Minute)
		if err := w.Stop(); err != nil {
			t.Fatal(err)
		}
		records, missed := disk.count(t)
		if records != 2 || missed != 10 || w.Dropped() != 10 {
			t.Errorf("%d records and %d missed, %d counted", records, missed, w.Dropped())
		}
	})
}

func TestAWriterWithoutADirectorySaysSo(t *testing.T) {
	t.Parallel()
	if err := NewWriter(nil, Options{}).Start(t.Context()); err == nil {
		t.Error("it starts")
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := NewWriter(nil, Options{Dir: file}).Start(t.Context()); err == nil {
		t.Error("a file is taken for a directory")
	}
}

func TestWriterKeepsTheLifecycle(t *testing.T) {
	t.Parallel()
	lifecycletest.RunStarted(t, func(t *testing.T) lifecycletest.Started {
		recorder := trace.NewRecorder(trace.Options{})
		note(recorder, 1)
		w := NewWriter(recorder, Options{Dir: t.TempDir(), Log: quiet})
		return lifecycletest.Started{Start: w.Start, Stop: w.Stop, ErrStopped: ErrStopped, Outlives: true}
	})
}

// FuzzSegment is of files that anyone may have written: a segment, and its index.
func FuzzSegment(f *testing.F) {
	dir := f.TempDir()
	write(f, Options{Dir: dir, Log: quiet}, 0, 3)
	files, _ := directory{dir}.Sizes()
	name := segmentsOf(files)[0]
	segment, err := os.ReadFile(filepath.Join(dir, name+segmentEnd))
	index, err2 := os.ReadFile(filepath.Join(dir, name+indexEnd))
	if err := errors.Join(err, err2); err != nil {
		f.Fatal(err)
	}
	f.Add(segment, index)
	f.Add(segment[:len(segment)-2], index[:len(index)-2])
	f.Fuzz(func(t *testing.T, segment, index []byte) {
		r := bufio.NewReader(bytes.NewReader(segment))
		if readHeader("x", r) == nil {
			all := frames{name: "x", r: r}
			for ok := true; ok; {
				_, ok, _ = all.next()
			}
			if cap(all.buf) > maxFrame {
				t.Errorf("%d bytes for one record", cap(all.buf))
			}
		}
		if offsets, _ := lookUp(index, int64(len(segment)), set(1)); len(offsets) > len(index)/entrySize {
			t.Errorf("%d offsets", len(offsets))
		}
	})
}

// BenchmarkWrite is what the writer's goroutine does with a record; at 10,000 a second
// 10 µs are 10 % of a core.
func BenchmarkWrite(b *testing.B) {
	recorder := trace.NewRecorder(trace.Options{Budget: 16 << 20})
	for i := range 20000 {
		note(recorder, i)
	}
	at := &segment{disk: directory{b.TempDir()}, most: defaultSegment, all: defaultBytes}
	w := NewWriter(recorder, Options{})
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		if n == 0 {
			if _, err := w.drain(recorder.Cursor(), at); err != nil {
				b.Fatal(err)
			}
			n = 20000
		}
		n--
	}
	if err := at.close(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkOfAmongAMillion looks one object up among 10⁶ records.
func BenchmarkOfAmongAMillion(b *testing.B) {
	dir := b.TempDir()
	for i := range 20 {
		write(b, Options{Dir: dir, Bytes: 2 << 30, Log: quiet}, i*50000, 50000)
	}
	r, err := Open(dir)
	if err != nil {
		b.Fatal(err)
	}
	object := pod(777777)
	for b.Loop() {
		n := 0
		for _, err := range r.Of(object) {
			if err != nil {
				b.Fatal(err)
			}
			n++
		}
		if n != 1 {
			b.Fatal(n)
		}
	}
}
