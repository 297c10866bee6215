// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package derived_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/steer-dev/steer/controlplane/internal/derived"
	"github.com/steer-dev/steer/controlplane/internal/step/steptest"
	"github.com/steer-dev/steer/storage"
)

func newStore() *storage.Memory { return storage.NewMemory(storage.MemoryOptions{}) }

func put(t *testing.T, s storage.Store, bucket, name string, value any) {
	t.Helper()
	steptest.Put(t, s, storage.Key{Bucket: bucket, Name: name}, value)
}

// names joins the names in a bucket.
func names(view storage.View, bucket string) string {
	var out []string
	for rec := range view.Ascend(bucket, "", "") {
		out = append(out, rec.Key.Name)
	}
	return strings.Join(out, " ")
}

func TestValueIsComputedOnceForEachContentOfItsBuckets(t *testing.T) {
	t.Parallel()
	store := newStore()
	var befores []string
	v := derived.New(store, func(view storage.View, before string) (string, error) {
		befores = append(befores, before)
		return names(view, "a") + "|" + names(view, "b"), nil
	}, "a", "b")
	get := func(want string, computed int) {
		t.Helper()
		if got, err := v.Get(); got != want || err != nil || len(befores) != computed {
			t.Errorf("%q, %v after %d times, want %q after %d", got, err, len(befores), want, computed)
		}
	}
	get("|", 1)
	get("|", 1)
	put(t, store, "a", "x", 1)
	get("x|", 2)
	put(t, store, "other", "x", 1)
	get("x|", 2)
	put(t, store, "b", "y", 1)
	put(t, store, "a", "x", nil)
	get("|y", 3)
	if got := strings.Join(befores, " then "); got != " then | then x|" {
		t.Errorf("the values before: %s", got)
	}
}

func TestValueIsComputedAgainAfterAnError(t *testing.T) {
	t.Parallel()
	fails := errors.New("fails")
	now := fails
	v := derived.New(newStore(), func(storage.View, int) (int, error) { return 7, now }, "a")
	if _, err := v.Get(); !errors.Is(err, fails) {
		t.Errorf("%v, want the error", err)
	}
	now = nil
	if got, err := v.Get(); got != 7 || err != nil {
		t.Errorf("%d, %v after the error", got, err)
	}
}

// TestValueIncludesEveryWriteThatIsAnswered while others write and read.
func TestValueIncludesEveryWriteThatIsAnswered(t *testing.T) {
	t.Parallel()
	store := newStore()
	v := derived.New(store, func(view storage.View, _ string) (string, error) { return " " + names(view, "a") + " ", nil }, "a")
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			for i := range 50 {
				name := fmt.Sprintf("g%d-%d", g, i)
				w := storage.Write{Key: storage.Key{Bucket: "a", Name: name}, Value: []byte("1"), Expect: storage.AnyRevision}
				if _, err := store.Commit(context.Background(), w); err != nil {
					t.Error(err)
					return
				}
				if got, err := v.Get(); err != nil || !strings.Contains(got, " "+name+" ") {
					t.Errorf("%s is not in %q: %v", name, got, err)
					return
				}
			}
		})
	}
	all.Wait()
}

// stalls is a store whose first view is given once release is closed.
type stalls struct {
	storage.Viewer
	views   atomic.Int32
	release chan struct{}
}

func (s *stalls) Latest() storage.View {
	if s.views.Add(1) == 1 {
		<-s.release
	}
	return s.Viewer.Latest()
}

func TestValueHoldsNoLockWhileTheStoreIsRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &stalls{Viewer: newStore(), release: make(chan struct{})}
		computed := 0
		v := derived.New(store, func(storage.View, int) (int, error) {
			computed++
			return computed, nil
		}, "a")
		first := make(chan int)
		get := func() int {
			got, err := v.Get()
			if err != nil {
				t.Error(err)
			}
			return got
		}
		go func() { first <- get() }()
		synctest.Wait()
		if got := get(); got != 1 {
			t.Errorf("%d while another call reads the store", got)
		}
		close(store.release)
		if got := <-first; got != 1 || computed != 1 {
			t.Errorf("%d, computed %d times: what another call has computed is not computed again", got, computed)
		}
	})
}

func TestVersionsAreReadOnceHoweverManyThereAre(t *testing.T) {
	t.Parallel()
	store := newStore()
	const many = 3000
	for i := range many {
		put(t, store, "a", fmt.Sprintf("n%04d", i), 0)
	}
	read := 0
	versions := derived.NewVersions("a", func(rec *storage.Record, before string) (string, error) {
		read++
		if string(rec.Value) == "-1" {
			return "", errors.New("no object")
		}
		return before + string(rec.Value), nil
	})
	check := func(first string, all, reads int) {
		t.Helper()
		read = 0
		got, err := versions.Read(store.Latest())
		if err != nil || len(got) != all || got[0] != first || read != reads {
			t.Errorf("%d objects, %v, %d reads, want %d and %d", len(got), err, read, all, reads)
		}
	}
	check("0", many, many)
	check("0", many, 0)
	put(t, store, "a", "n0000", 1)
	check("01", many, 1)
	put(t, store, "a", "n0000", nil)
	check("0", many-1, 0)
	put(t, store, "a", "n0000", 2)
	check("2", many, 1) // what was deleted is forgotten
	put(t, store, "a", "n0003", -1)
	if _, err := versions.Read(store.Latest()); err == nil || err.Error() != "read a n0003: no object" {
		t.Errorf("%v of an object that cannot be read", err)
	}
}
