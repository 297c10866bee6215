// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/controlplane/internal/step/steptest"
	"github.com/steer-dev/steer/storage"
)

// TestListerDecodesEachVersionOnceHoweverManyThereAre: there are more objects than it keeps of
// those that are gone.
func TestListerDecodesEachVersionOnceHoweverManyThereAre(t *testing.T) {
	t.Parallel()
	store := storage.NewMemory(storage.MemoryOptions{})
	lister := NewLister[corev1.Namespace](store, "namespaces")
	const many = 3 * leastSweep
	put := func(name string, labels map[string]string) {
		t.Helper()
		steptest.Put(t, store, storage.Key{Bucket: "namespaces", Name: name}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}})
	}
	name := func(i int) string { return fmt.Sprintf("n%05d", i) }
	for i := range many {
		put(name(i), nil)
	}
	get := func(i int) *corev1.Namespace {
		t.Helper()
		obj, err := lister.Get(name(i))
		if err != nil || obj == nil || obj.Name != name(i) {
			t.Fatalf("get %s: %v, %v", name(i), obj, err)
		}
		return obj
	}
	var first []*corev1.Namespace
	for i := range many {
		first = append(first, get(i))
	}
	for i := range many {
		if get(i) != first[i] {
			t.Fatalf("%s is decoded again", name(i))
		}
	}
	all, err := lister.All("n0000")
	if err != nil || len(all) != 10 || all[9] != first[9] {
		t.Errorf("%d objects, %v with the prefix, want the 10 that are known", len(all), err)
	}
	put(name(9), map[string]string{"a": "b"})
	if obj := get(9); obj == first[9] || obj.Labels["a"] != "b" {
		t.Errorf("%v after a change", obj.Labels)
	}
	if all, err = lister.All("n0000"); err != nil || all[9].Labels["a"] != "b" || all[8] != first[8] {
		t.Errorf("%v: the list after a change: %v", err, all[9].Labels)
	}
}

func TestListerForgetsObjectsThatAreGone(t *testing.T) {
	t.Parallel()
	store := storage.NewMemory(storage.MemoryOptions{})
	lister := NewLister[corev1.Namespace](store, "namespaces")
	for i := range 5 * leastSweep {
		key := storage.Key{Bucket: "namespaces", Name: fmt.Sprint("n", i)}
		steptest.Put(t, store, key, &corev1.Namespace{})
		if _, err := lister.Get(key.Name); err != nil {
			t.Fatal(err)
		}
		steptest.Put(t, store, key, nil)
		if _, err := lister.All(key.Name + "/"); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(lister.known); n > leastSweep+1 {
		t.Errorf("%d objects are known of which none is there", n)
	}
	now, err := lister.lists.Get()
	if err != nil || len(now.byPrefix) > mostPrefixes {
		t.Errorf("%d lists, %v", len(now.byPrefix), err)
	}
}
