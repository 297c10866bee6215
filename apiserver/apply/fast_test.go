// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/steer-dev/steer/apiserver/openapi/gotypes"
)

// builtIn returns the managers of a built-in kind and of its status.
func builtIn(kind schema.GroupVersionKind, fresh func() Object) (main, status *FieldManager) {
	t := reflect.TypeOf(fresh()).Elem()
	types := FromOpenAPI(func() map[string]*spec.Schema {
		definitions := gotypes.Definitions(gotypes.Kubernetes(), t)
		definitions[gotypes.Name(t)].AddExtension("x-kubernetes-group-version-kind", []any{map[string]any{
			"group": kind.Group, "version": kind.Version, "kind": kind.Kind,
		}})
		return definitions
	})
	resets := func(name string) map[string]*fieldpath.Set {
		return map[string]*fieldpath.Set{kind.GroupVersion().String(): fieldpath.NewSet(fieldpath.MakePathOrDie(name))}
	}
	return New(Endpoint{Kind: kind, Types: types, New: fresh, Resets: resets("status")}),
		New(Endpoint{Kind: kind, Types: types, New: fresh, Resets: resets("spec"), Subresource: "status"})
}

// TestManagedFieldsOfTypedObjectsAgreeWithTheLibrary changes and applies random fields of Pods
// and Deployments under several managers and compares objects and managedFields with those of
// the library.
func TestManagedFieldsOfTypedObjectsAgreeWithTheLibrary(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	all, fast := map[string]int{}, map[string]int{} // of all kinds: few applies of Pods conflict
	t.Cleanup(func() {
		for did, n := range all {
			if 10*fast[did] < 8*n {
				t.Errorf("%s: %d of %d took the fast path, want most", did, fast[did], n)
			}
		}
	})
	for kind, fresh := range map[schema.GroupVersionKind]func() Object{
		corev1.SchemeGroupVersion.WithKind("Pod"):        func() Object { return &corev1.Pod{} },
		corev1.SchemeGroupVersion.WithKind("ConfigMap"):  func() Object { return &corev1.ConfigMap{} },
		corev1.SchemeGroupVersion.WithKind("Service"):    func() Object { return &corev1.Service{} },
		appsv1.SchemeGroupVersion.WithKind("Deployment"): func() Object { return &appsv1.Deployment{} },
	} {
		t.Run(kind.Kind, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				main, status := builtIn(kind, fresh)
				done, short := map[string]int{}, map[string]int{}
				for seed := range uint64(10) {
					typedHistory(t, rand.New(rand.NewPCG(seed, 7)), main, status, kind, fresh, done, short)
				}
				mu.Lock()
				defer mu.Unlock()
				for did, n := range done {
					all[did] += n
					fast[did] += short[did]
				}
			})
		})
	}
}

// FuzzTypedHistories: Deployments and their managedFields after random updates and applies are those of
// the library.
func FuzzTypedHistories(f *testing.F) {
	kind, fresh := appsv1.SchemeGroupVersion.WithKind("Deployment"), func() Object { return &appsv1.Deployment{} }
	types := sync.OnceValues(func() (main, status *FieldManager) { return builtIn(kind, fresh) })
	f.Add([]byte{})
	f.Add([]byte("fields that change, and managers that take turns"))
	f.Fuzz(func(t *testing.T, choices []byte) {
		main, status := types()
		synctest.Test(t, func(t *testing.T) {
			typedHistory(t, rand.New(&bytesSource{rest: choices}), main, status, kind, fresh, map[string]int{}, map[string]int{})
		})
	})
}

func typedHistory(t *testing.T, r *rand.Rand, main, status *FieldManager, kind schema.GroupVersionKind, fresh func() Object, all, fast map[string]int) {
	t.Helper()
	live := fresh()
	live.GetObjectKind().SetGroupVersionKind(kind)
	applied := map[string]Object{} // last, by manager
	for step := range 12 {
		time.Sleep(time.Duration(r.IntN(3)) * time.Second)
		name := fmt.Sprint("m", r.IntN(3))
		if r.IntN(2) == 0 {
			if applied[name] == nil {
				applied[name] = fresh()
				applied[name].GetObjectKind().SetGroupVersionKind(kind)
			}
			for range 1 + r.IntN(4) {
				mutate(r, reflect.ValueOf(applied[name]).Elem(), 0)
			}
			endpoint := main
			if r.IntN(4) == 0 {
				endpoint = status
			}
			if out := typedApply(t, r, endpoint, live, applied[name], name, all, fast); out != nil {
				live = fresh()
				if err := json.Unmarshal([]byte(recorded(t, out)), live); err != nil {
					t.Fatal(err)
				}
				live.SetUID("1")
			}
			continue
		}
		next := live.DeepCopyObject().(Object)
		for range 1 + r.IntN(4) {
			mutate(r, reflect.ValueOf(next).Elem(), 0)
		}
		endpoint := main
		if step > 0 && r.IntN(3) == 0 {
			endpoint = status
		}
		next.SetUID(live.GetUID())
		next.SetManagedFields(live.GetManagedFields())
		if r.IntN(6) == 0 {
			next.SetManagedFields(nil)
		}
		library, err := endpoint.bind(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		want := next.DeepCopyObject().(Object)
		if setManagedFieldsByLibrary(library, live.DeepCopyObject().(Object), next.DeepCopyObject().(Object), want, name) != nil {
			want.SetManagedFields(nil)
		}
		all["update"]++
		if endpoint.updateFast(live, next.DeepCopyObject().(Object), name) {
			fast["update"]++
		}
		before := recorded(t, live)
		got, err := endpoint.Update(t.Context(), live, next.DeepCopyObject().(Object), name)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(strings.Split(recorded(t, want), ","), strings.Split(recorded(t, got), ",")); diff != "" {
			t.Fatalf("step %d by %s, from %s (-library +ours):\n%s", step, name, before, diff)
		}
		if recorded(t, live) != before {
			t.Fatal("the live object was changed")
		}
		live = fresh()
		if err := json.Unmarshal([]byte(recorded(t, got)), live); err != nil {
			t.Fatal(err)
		}
		live.SetUID("1")
	}
}

// typedApply applies a part of an object, as text has it, and compares the outcome with that of
// the library; nil if it fails.
func typedApply(t *testing.T, r *rand.Rand, endpoint *FieldManager, live, of Object, name string, all, fast map[string]int) Object {
	t.Helper()
	configuration := &unstructured.Unstructured{}
	if err := json.Unmarshal([]byte(recorded(t, of)), &configuration.Object); err != nil {
		t.Fatal(err)
	}
	integers(configuration.Object)
	if r.IntN(3) > 0 { // most configurations have no nulls
		withoutNulls(configuration.Object)
	}
	if r.IntN(3) == 0 {
		change(r, configuration.Object)
	}
	force := r.IntN(2) == 0
	library, err := endpoint.bind(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var want Object
	out, wantErr := library.Apply(live.DeepCopyObject(), configuration.DeepCopy(), name, force)
	if wantErr == nil {
		want, wantErr = endpoint.typed(out, underWay(configuration))
	}
	did := "apply"
	if apierrors.IsConflict(wantErr) {
		did = "conflict"
	}
	if wantErr == nil || did == "conflict" {
		all[did]++
		if _, short, _ := endpoint.applyFast(live, underWay(configuration), name, force); short {
			fast[did]++
		}
	}
	before := recorded(t, live)
	got, err := endpoint.Apply(t.Context(), live, underWay(configuration), name, force)
	if diff := cmp.Diff(failure(wantErr), failure(err)); diff != "" {
		t.Fatalf("apply of %v by %s to %s: error (-library +ours):\n%s", configuration.Object, name, before, diff)
	}
	if after := recorded(t, live); after != before {
		t.Fatalf("the live object was changed from %s to %s", before, after)
	}
	if err != nil {
		return nil
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("apply of %v by %s to %s (-library +ours):\n%s", configuration.Object, name, before, diff)
	}
	return got
}

// integers turns numbers into those of API objects.
func integers(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for name := range v {
			v[name] = integers(v[name])
		}
	case []any:
		for i := range v {
			v[i] = integers(v[i])
		}
	case float64:
		return int64(v)
	}
	return value
}

// withoutNulls removes members that are null.
func withoutNulls(object map[string]any) {
	for name, value := range object {
		switch v := value.(type) {
		case nil:
			delete(object, name)
		case map[string]any:
			withoutNulls(v)
		case []any:
			for _, item := range v {
				if inner, ok := item.(map[string]any); ok {
					withoutNulls(inner)
				}
			}
		}
	}
}

// mutate changes one random field somewhere in a value.
func mutate(r *rand.Rand, v reflect.Value, depth int) {
	switch target := v.Addr().Interface().(type) {
	case *metav1.Time:
		*target = metav1.Unix(int64(r.IntN(3))*1000, 0)
		return
	case *metav1.MicroTime:
		return
	case *resource.Quantity:
		*target = resource.MustParse([]string{"1", "1000m", "2Gi", "0.5"}[r.IntN(4)])
		return
	case *intstr.IntOrString:
		*target = []intstr.IntOrString{intstr.FromInt32(int32(r.IntN(3))), intstr.FromString("25%")}[r.IntN(2)]
		return
	case *[]metav1.ManagedFieldsEntry, *metav1.FieldsV1, *metav1.TypeMeta:
		return
	}
	word := func() string { return []string{"", "a", "b", "c.d/e"}[r.IntN(4)] }
	switch v.Kind() {
	case reflect.Struct:
		if n := v.NumField(); n > 0 && depth < 12 {
			mutate(r, v.Field(r.IntN(n)), depth+1)
		}
	case reflect.Pointer:
		if r.IntN(5) == 0 {
			v.SetZero()
			return
		}
		inner := reflect.New(v.Type().Elem())
		if !v.IsNil() {
			inner.Elem().Set(v.Elem())
		}
		mutate(r, inner.Elem(), depth+1)
		v.Set(inner)
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes([]byte(word()))
			return
		}
		items := reflect.MakeSlice(v.Type(), 0, v.Len()+1)
		items = reflect.AppendSlice(items, v)
		switch {
		case v.Len() > 0 && r.IntN(4) == 0:
			items = items.Slice(1, items.Len())
		case v.Len() > 0 && r.IntN(2) == 0:
			mutate(r, items.Index(r.IntN(items.Len())), depth+1)
		case v.Len() < 3:
			item := reflect.New(v.Type().Elem()).Elem()
			for range 6 {
				mutate(r, item, depth+1)
			}
			items = reflect.Append(items, item)
		}
		v.Set(items)
	case reflect.Map:
		out := reflect.MakeMap(v.Type())
		for pairs := v.MapRange(); pairs.Next(); {
			out.SetMapIndex(pairs.Key(), pairs.Value())
		}
		value := reflect.New(v.Type().Elem()).Elem()
		mutate(r, value, depth+1)
		if key := reflect.ValueOf(word()).Convert(v.Type().Key()); key.Len() > 0 {
			out.SetMapIndex(key, value)
		}
		v.Set(out)
	case reflect.String:
		v.SetString(word())
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	case reflect.Int32, reflect.Int64, reflect.Int:
		v.SetInt(int64(r.IntN(3)))
	}
}

// recorded returns an object as it is stored.
func recorded(t *testing.T, obj Object) string {
	t.Helper()
	raw, err := json.Marshal(obj)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
