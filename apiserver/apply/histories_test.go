// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestManagedFieldsAgreeWithTheLibrary applies random writes and compares each outcome,
// times and errors included, with that of the library, which has no fast paths.
func TestManagedFieldsAgreeWithTheLibrary(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWriters(t)
		for seed := range uint64(60) {
			w.history(t, rand.New(rand.NewPCG(seed, 2)))
		}
		for did, least := range map[string]int{"update": 80, "apply": 70, "conflict": 70} {
			if n := w.all[did]; n < 50 || 100*w.fast[did] < least*n {
				t.Errorf("%s: %d of %d took the fast path, want %d %%", did, w.fast[did], n, least)
			}
		}
	})
}

// FuzzHistories: objects and managedFields after random applies and updates, conflicts and
// removals included, are those of the library.
func FuzzHistories(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("\x80\x80applies of three managers, and what they no longer apply"))
	w := newWriters(f)
	f.Fuzz(func(t *testing.T, choices []byte) {
		synctest.Test(t, func(t *testing.T) {
			w.history(t, rand.New(&bytesSource{rest: choices}))
		})
	})
}

// writers are the endpoints of a kind, and others that only lend their library.
type writers struct {
	main, status, plain, plainStatus *FieldManager
	// all counts the writes by what they did, fast those that took the fast path.
	all, fast map[string]int
}

func newWriters(t testing.TB) *writers {
	w := &writers{all: map[string]int{}, fast: map[string]int{}}
	w.main, w.status = endpoints(t)
	w.plain, w.plainStatus = endpoints(t)
	return w
}

// history plays random writes to one object and compares each outcome with that of the library.
func (w *writers) history(t *testing.T, r *rand.Rand) {
	t.Helper()
	live := empty()
	applied := map[string]*unstructured.Unstructured{} // last, by manager
	for step := range 12 {
		time.Sleep(time.Duration(r.IntN(3)) * time.Second)
		name := fmt.Sprintf("m%d", r.IntN(3))
		endpoint, reference := w.main, w.plain
		if r.IntN(5) == 0 {
			endpoint, reference = w.status, w.plainStatus
		}
		if r.IntN(3) > 0 {
			configuration := nextConfiguration(r, applied[name])
			out, ok := w.apply(t, endpoint, reference, live, configuration, name, r.IntN(3) == 0)
			if ok {
				live, applied[name] = stored(out), configuration
			}
			continue
		}
		next := changed(r, live)
		library, err := reference.bind(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		want := next.DeepCopy()
		if setManagedFieldsByLibrary(library, live.DeepCopy(), next.DeepCopy(), want, name) != nil {
			want.SetManagedFields(nil)
		}
		w.all["update"]++
		if endpoint.updateFast(underWay(live), underWay(next), name) {
			w.fast["update"]++
		}
		got, err := endpoint.Update(t.Context(), underWay(live), underWay(next), name)
		if err != nil {
			t.Fatal(err)
		}
		if diff := gocmp.Diff(content(want), content(got)); diff != "" {
			t.Fatalf("step %d: update (-library +ours):\n%s", step, diff)
		}
		live = stored(want)
	}
}

// apply compares one apply with that of the library and returns the object, if it succeeds.
func (w *writers) apply(t *testing.T, endpoint, reference *FieldManager, live, configuration *unstructured.Unstructured, name string, force bool) (Object, bool) {
	t.Helper()
	library, err := reference.bind(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	out, wantErr := library.Apply(live.DeepCopy(), configuration.DeepCopy(), name, force)
	did := "apply"
	if apierrors.IsConflict(wantErr) {
		did = "conflict"
	}
	if wantErr == nil || did == "conflict" {
		w.all[did]++
	}
	if _, fast, _ := endpoint.applyFast(underWay(live), underWay(configuration), name, force); fast {
		w.fast[did]++
	}
	was := underWay(live)
	got, err := endpoint.Apply(t.Context(), was, underWay(configuration), name, force)
	if diff := gocmp.Diff(failure(wantErr), failure(err)); diff != "" {
		t.Fatalf("apply of %v by %s to %v: error (-library +ours):\n%s", configuration.Object, name, live.Object, diff)
	}
	if diff := gocmp.Diff(live.Object, decoded(was).(*unstructured.Unstructured).Object); diff != "" {
		t.Fatalf("apply of %v by %s changed the live object (-before +after):\n%s", configuration.Object, name, diff)
	}
	if err == nil {
		if diff := gocmp.Diff(content(out.(Object)), content(got)); diff != "" {
			t.Fatalf("apply of %v by %s to %v (-library +ours):\n%s", configuration.Object, name, live.Object, diff)
		}
	}
	if wantErr != nil {
		return nil, false
	}
	return out.(Object), true
}

// failure is an error as clients see it; neither the causes of conflicts have an order, nor the
// errors of a configuration.
func failure(err error) any {
	var status *apierrors.StatusError
	if err == nil || !errors.As(err, &status) {
		// Where the library stops at a configuration with several errors depends on the order of a map.
		if invalid := "failed to create typed patch object"; strings.Contains(fmt.Sprint(err), invalid) {
			return invalid
		}
		return slices.Sorted(strings.Lines(fmt.Sprintln(err)))
	}
	out := status.ErrStatus.DeepCopy()
	if out.Details != nil {
		slices.SortFunc(out.Details.Causes, func(a, b metav1.StatusCause) int {
			return cmp.Or(cmp.Compare(a.Message, b.Message), cmp.Compare(a.Field, b.Field))
		})
	}
	return out
}

// content returns the JSON of an object as it would be stored.
func content(obj Object) map[string]any {
	u := decoded(obj.DeepCopyObject().(Object)).(*unstructured.Unstructured)
	u.SetManagedFields(u.GetManagedFields())
	return u.Object
}

// changed returns a copy with a few changes.
func changed(r *rand.Rand, live *unstructured.Unstructured) *unstructured.Unstructured {
	random := randomWidget(r)
	next := live.DeepCopy()
	for _, key := range []string{"spec", "status"} {
		switch r.IntN(4) {
		case 0:
			if value, ok := random.Object[key]; ok {
				next.Object[key] = value
			}
		case 1:
			from, ok := random.Object[key].(map[string]any)
			into, has := next.Object[key].(map[string]any)
			if ok && has {
				name := []string{"replicas", "colour", "plain", "ready", "free"}[r.IntN(5)]
				if value, ok := from[name]; ok {
					into[name] = value
				}
			}
		}
	}
	if r.IntN(12) == 0 {
		next.SetManagedFields(nil)
	}
	next.SetUID(live.GetUID())
	return next
}

// nextConfiguration is what a manager applies after it applied something: mostly that with a part
// changed or left out, rarely something that is refused.
func nextConfiguration(r *rand.Rand, last *unstructured.Unstructured) *unstructured.Unstructured {
	next := randomWidget(r)
	spec, _ := next.Object["spec"].(map[string]any)
	if last != nil && r.IntN(4) > 0 {
		next = last.DeepCopy()
		change(r, next.Object)
		spec, _ = next.Object["spec"].(map[string]any)
	}
	if spec != nil && r.IntN(4) == 0 {
		spec["template"] = map[string]any{
			"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"labels": map[string]any{"a": string(rune('a' + r.IntN(3)))}},
			"spec": map[string]any{"list": []any{int64(r.IntN(2)), true}, "x": map[string]any{"y": string(rune('a' + r.IntN(3)))}},
		}
	}
	switch r.IntN(40) {
	case 0:
		next.Object["unknown"] = "a"
	case 1:
		next.Object["spec"] = "a"
	case 2:
		next.Object["spec"] = map[string]any{"tags": []any{"a", "a"}, "ports": []any{map[string]any{"name": "a"}, map[string]any{"name": "a"}}}
	case 3:
		next.Object["spec"] = map[string]any{"ports": []any{map[string]any{"port": int64(1)}}, "free": map[string]any{"x": 1.5}}
	case 4:
		next.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "a"}})
	case 5:
		next.Object["metadata"] = map[string]any{"name": "w", "ownerReferences": []any{map[string]any{"uid": "1", "name": "a"}, map[string]any{"uid": "2", "name": "b"}}}
	}
	return next
}

// change changes, removes or moves one part of an object somewhere.
func change(r *rand.Rand, object map[string]any) {
	names := make([]string, 0, len(object))
	for name := range object {
		if name != "apiVersion" && name != "kind" {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return
	}
	slices.Sort(names)
	name := names[r.IntN(len(names))]
	switch value := object[name].(type) {
	case map[string]any:
		if len(value) > 0 && r.IntN(4) > 0 {
			change(r, value)
			return
		}
	case []any:
		if len(value) > 0 && r.IntN(4) > 0 {
			at := r.IntN(len(value))
			if item, ok := value[at].(map[string]any); ok && r.IntN(2) == 0 {
				change(r, item)
				return
			}
			if r.IntN(2) == 0 {
				value[0], value[at] = value[at], value[0]
				return
			}
			object[name] = slices.Delete(value, at, at+1)
			return
		}
	case int64:
		object[name] = int64(r.IntN(3))
		return
	case string:
		if r.IntN(2) == 0 {
			object[name] = string(rune('a' + r.IntN(4)))
			return
		}
	}
	delete(object, name)
}
