// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package clone

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	goruntime "runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
)

// kinds are all types of k8s.io/api, and metadata alone.
func kinds() []reflect.Type {
	seen := map[reflect.Type]bool{reflect.TypeFor[metav1.PartialObjectMetadata](): true}
	for _, t := range scheme.Scheme.AllKnownTypes() {
		if strings.HasPrefix(t.PkgPath(), "k8s.io/api/") {
			seen[t] = true
		}
	}
	return slices.SortedFunc(maps.Keys(seen), func(a, b reflect.Type) int {
		return strings.Compare(a.PkgPath()+"."+a.Name(), b.PkgPath()+"."+b.Name())
	})
}

func random(kind reflect.Type, seed uint64, sparse int) runtime.Object {
	obj := reflect.New(kind)
	r := filler{rand.New(rand.NewPCG(seed, 1)), sparse}
	r.fill(obj.Elem(), 0)
	return obj.Interface().(runtime.Object)
}

func TestEveryKindIsCopiedAsItCopiesItself(t *testing.T) {
	t.Parallel()
	all := kinds()
	if len(all) < 200 {
		t.Fatalf("only %d kinds", len(all))
	}
	for i, kind := range all {
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			if planOf(kind).layout == nil {
				t.Fatal("copies itself")
			}
			var from, to []runtime.Object
			for _, sparse := range []int{0, 3, 6, 9, 10} {
				if strings.HasSuffix(kind.Name(), "List") {
					sparse = max(sparse, 3)
				}
				obj := random(kind, uint64(i), sparse)
				from, to = append(from, obj), append(to, reflect.New(kind).Interface().(runtime.Object))
				once := reflect.New(kind).Interface().(runtime.Object)
				Into(once, obj)
				private(t, once, obj)
				private(t, Of(obj), obj)
			}
			All(to, from)
			for i := range from {
				private(t, to[i], from[i])
			}
			apart(t, to)
		})
	}
}

// private says whether got is what DeepCopyObject makes of obj and has no memory in
// common with it, nor parts with each other.
func private(t *testing.T, got, obj runtime.Object) {
	t.Helper()
	want := obj.DeepCopyObject()
	if !reflect.DeepEqual(got, want) || !reflect.DeepEqual(got, obj) {
		t.Fatalf("(-DeepCopyObject +ours)\n%s", cmp.Diff(want, got))
	}
	apart(t, []runtime.Object{got, obj})
	if !reflect.DeepEqual(got, want) { // appending has changed something
		t.Fatalf("(-DeepCopyObject +ours)\n%s", cmp.Diff(want, got))
	}
}

// apart says whether no two parts of the objects lie in the same memory, and appends
// to every list.
func apart(t *testing.T, objects []runtime.Object) {
	t.Helper()
	var w walk
	for _, obj := range objects {
		w.walk(reflect.ValueOf(obj), reflect.TypeOf(obj).String())
	}
	slices.SortFunc(w.found, func(a, b extent) int { return int(a.begin) - int(b.begin) })
	for i := range w.found {
		if i > 0 && w.found[i-1].end > w.found[i].begin {
			t.Fatalf("%s and %s lie in the same memory", w.found[i-1].path, w.found[i].path)
		}
	}
	for _, list := range w.lists {
		reflect.Append(list, reflect.Zero(list.Type().Elem()))
	}
}

// walk finds the memory of a value, other than strings, zones and what lies behind
// interfaces.
type walk struct {
	found []extent
	lists []reflect.Value
}

type extent struct {
	begin, end uintptr
	path       string
}

func (w *walk) add(begin uintptr, size int, path string) {
	if size > 0 {
		w.found = append(w.found, extent{begin, begin + uintptr(size), path})
	}
}

func (w *walk) walk(v reflect.Value, path string) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			w.add(v.Pointer(), int(v.Type().Elem().Size()), path)
			w.walk(v.Elem(), path)
		}
	case reflect.Slice:
		w.add(v.Pointer(), v.Cap()*int(v.Type().Elem().Size()), path)
		if v.CanInterface() {
			w.lists = append(w.lists, v)
		}
		for i := range v.Len() {
			w.walk(v.Index(i), fmt.Sprintf("%s[%d]", path, i))
		}
	case reflect.Map:
		if !v.IsNil() {
			w.add(v.Pointer(), 1, path)
		}
		for entries := v.MapRange(); entries.Next(); {
			w.walk(entries.Value(), fmt.Sprintf("%s[%v]", path, entries.Key()))
		}
	case reflect.Interface:
		w.walk(v.Elem(), path)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[metav1.Time]() || v.Type() == reflect.TypeFor[metav1.MicroTime]() {
			return
		}
		for i := range v.NumField() {
			w.walk(v.Field(i), path+"."+v.Type().Field(i).Name)
		}
	}
}

func TestTypesWithCodeOfTheirOwnCopyThemselves(t *testing.T) {
	t.Parallel()
	// A user's type, one of other modules, and one of apimachinery that is written by hand.
	for _, from := range []runtime.Object{
		&counted{Pod: corev1.Pod{Spec: corev1.PodSpec{NodeName: "a"}}},
		&apiextensionsv1.CustomResourceDefinition{Spec: apiextensionsv1.CustomResourceDefinitionSpec{Group: "a"}},
		&unstructured.Unstructured{Object: map[string]any{"a": []any{"b"}}},
	} {
		if planOf(reflect.TypeOf(from).Elem()).layout != nil {
			t.Errorf("%T does not copy itself", from)
		}
		to := reflect.New(reflect.TypeOf(from).Elem()).Interface().(runtime.Object)
		Into(to, from)
		again := reflect.New(reflect.TypeOf(from).Elem()).Interface().(runtime.Object)
		All([]runtime.Object{again}, []runtime.Object{from})
		for _, got := range []runtime.Object{to, again, Of(from)} {
			if !reflect.DeepEqual(got, from.DeepCopyObject()) {
				t.Error(cmp.Diff(from, got))
			}
		}
	}
}

// counted says in its copies that they are copies.
type counted struct {
	corev1.Pod
	Copied bool
}

func (c *counted) DeepCopyObject() runtime.Object {
	return &counted{Pod: *c.Pod.DeepCopy(), Copied: true}
}

func TestAnEmptyListHasNoRoomOfTheOriginal(t *testing.T) {
	t.Parallel()
	names := []string{"a", "b"}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Finalizers: names[:0]}}
	got := Of(pod)
	if got.Finalizers == nil || cap(got.Finalizers) != 0 {
		t.Errorf("a list of %d, nil: %v", cap(got.Finalizers), got.Finalizers == nil)
	}
	_ = append(got.Finalizers, "c")
	if names[0] != "a" {
		t.Error("appending to the copy has changed the original")
	}
}

func TestQuantitiesBeyondIntegersAreNotShared(t *testing.T) {
	t.Parallel()
	huge := resource.MustParse("123456789012345678901234567890")
	pod := &corev1.Pod{Spec: corev1.PodSpec{
		Overhead: corev1.ResourceList{corev1.ResourceMemory: huge},
		Volumes:  []corev1.Volume{{VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: &huge}}}},
	}}
	got := Of(pod)
	got.Spec.Volumes[0].EmptyDir.SizeLimit.AsDec().SetUnscaled(1)
	in := got.Spec.Overhead[corev1.ResourceMemory]
	in.AsDec().SetUnscaled(2)
	if huge.String() != "123456789012345678901234567890" {
		t.Errorf("the original is %s now", huge.String())
	}
}

func TestManyCopyAtOnce(t *testing.T) {
	t.Parallel()
	pod := random(reflect.TypeFor[corev1.Pod](), 7, 3)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 50 {
				if !reflect.DeepEqual(Of(pod), pod) {
					t.Error("a copy differs")
					return
				}
			}
		})
	}
	group.Wait()
}

// TestCopiesOutliveCollections holds that the collector finds everything in a copy's blocks.
func TestCopiesOutliveCollections(t *testing.T) {
	t.Parallel()
	var copies, wants []runtime.Object
	for i, kind := range kinds() {
		if i%7 != 0 {
			continue
		}
		obj := random(kind, uint64(i), 4)
		copies, wants = append(copies, Of(obj)), append(wants, obj.DeepCopyObject())
		if i%5 == 0 {
			goruntime.GC()
		}
	}
	goruntime.GC()
	for i := range copies {
		if !reflect.DeepEqual(copies[i], wants[i]) {
			t.Fatal(cmp.Diff(wants[i], copies[i]))
		}
	}
}
