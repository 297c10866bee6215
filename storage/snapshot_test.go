// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/steer-dev/steer/storage"
)

// filled returns a store with n records in three buckets and some history.
func filled(t testing.TB, n int) *storage.Memory {
	t.Helper()
	s := storage.NewMemory(storage.MemoryOptions{})
	for i := range n {
		k := storage.Key{Bucket: fmt.Sprint("b", i%3), Name: fmt.Sprintf("ns%d/%d", i%7, i)}
		w := storage.Write{Key: k, Value: fmt.Appendf(nil, `{"rv":"","n":%d,"pad":%q}`, i, strings.Repeat("x", i%300)), Stamp: 7}
		if i%5 == 0 {
			w.Stamp = 0
		}
		if _, err := s.Commit(context.Background(), w); err != nil {
			t.Fatal(err)
		}
		if i%4 == 0 {
			w.Expect = storage.AnyRevision
			if _, err := s.Commit(context.Background(), w); err != nil {
				t.Fatal(err)
			}
		}
	}
	return s
}

func newest(t testing.TB, s storage.Viewer) storage.View {
	t.Helper()
	v, err := s.View(context.Background(), 0)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// dump lists the records of a view.
func dump(v storage.View) []string {
	lines := []string{fmt.Sprint("revision ", v.Revision())}
	for b := range v.Buckets() {
		for r := range v.Ascend(b, "", "") {
			lines = append(lines, fmt.Sprint(r.Key, " ", r.Created, " ", r.Modified, " ", r.Stamp, " ", string(r.Value)))
		}
	}
	return lines
}

func save(t testing.TB, v storage.View) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := storage.Save(context.Background(), &b, v); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestSnapshotBringsEverythingBack(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 4000} {
		v := newest(t, filled(t, n))
		data := save(t, v)
		loaded, err := storage.Load(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(dump(v), dump(loaded)); diff != "" {
			t.Fatalf("(-saved +loaded)\n%s", diff)
		}
		if !bytes.Equal(data, save(t, loaded)) {
			t.Fatal("equal views gave different bytes")
		}
		s := storage.NewMemory(storage.MemoryOptions{From: loaded})
		if rev := put(t, s, "b", "next", "v"); rev != v.Revision()+1 {
			t.Fatalf("the store goes on with revision %d", rev)
		}
	}
}

func TestDamagedSnapshotsAreRefused(t *testing.T) {
	t.Parallel()
	data := save(t, newest(t, filled(t, 20)))
	for i := range data {
		damaged := bytes.Clone(data)
		damaged[i] ^= 0x10
		if _, err := storage.Load(bytes.NewReader(damaged)); err == nil {
			t.Fatalf("a flipped bit at offset %d of %d went unnoticed", i, len(data))
		}
		if _, err := storage.Load(bytes.NewReader(data[:i])); !errors.Is(err, storage.ErrCorrupt) {
			t.Fatalf("cut to %d of %d bytes: got error %v, want ErrCorrupt", i, len(data), err)
		}
	}
}

func TestSavingStopsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := storage.Save(ctx, &bytes.Buffer{}, newest(t, filled(t, 10))); !errors.Is(err, context.Canceled) {
		t.Fatalf("got error %v, want Canceled", err)
	}
}

func FuzzLoad(f *testing.F) {
	f.Add(save(f, newest(f, filled(f, 3))))
	f.Add([]byte("steersnp"))
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := storage.Load(bytes.NewReader(data))
		if err == nil && v.Count("b", "", "") < 0 {
			t.Fatal("a view without sense")
		}
	})
}

func TestViewOfRecordsHasThem(t *testing.T) {
	t.Parallel()
	m := storage.NewMemory(storage.MemoryOptions{})
	t.Cleanup(func() { _ = m.Close() })
	var want []*storage.Record
	for i := range 12 { // the revision gets a second digit
		w := storage.Write{Key: storage.Key{Bucket: "b", Name: string(rune('a' + i))}, Value: []byte(`{"v":""}`), Stamp: 6}
		rec, err := m.Commit(t.Context(), w)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(rec.Unstamped()); got != `{"v":""}` {
			t.Errorf("%s without its revision is %s", rec.Value, got)
		}
		want = append(want, rec)
	}
	v := storage.NewView(20, slices.Values(want))
	if got := slices.Collect(v.Ascend("b", "", "")); !slices.Equal(got, want) || v.Revision() != 20 || v.Get(want[3].Key) != want[3] {
		t.Errorf("revision %d with %v", v.Revision(), got)
	}
}
