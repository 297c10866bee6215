// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/steer-dev/steer/apiserver/internal/genname"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/storage"
)

// sequence is an identity that counts: names repeat as often as stuck says.
type sequence struct{ uids, names, stuck int }

func (s *sequence) UID() types.UID {
	s.uids++
	return types.UID(fmt.Sprint("uid-", s.uids))
}

func (s *sequence) Suffix(int) string {
	s.names++
	return fmt.Sprint(max(0, s.names-s.stuck))
}

// rules is a strategy without rules, except that data may not have the key "invalid".
type rules struct{}

func (rules) Default(resource.Object) ([]string, error)                           { return nil, nil }
func (rules) Prepare(context.Context, resource.Object, resource.Object)           {}
func (rules) Warnings(context.Context, resource.Object, resource.Object) []string { return nil }
func (rules) Validate(_ context.Context, obj, _ resource.Object) field.ErrorList {
	if _, ok := obj.(*corev1.ConfigMap).Data["invalid"]; ok {
		return field.ErrorList{field.Forbidden(field.NewPath("data").Key("invalid"), "")}
	}
	return nil
}

// fixture is a registry of ConfigMaps in memory.
type fixture struct {
	*testing.T
	*Registry
	store    *storage.Memory
	identity *sequence
	in       *Served
}

func newFixture(t *testing.T, deletion resource.DeletionRules) *fixture {
	t.Helper()
	f := &fixture{T: t, store: storage.NewMemory(storage.MemoryOptions{}), identity: &sequence{}}
	t.Cleanup(func() { _ = f.store.Close() })
	f.Registry = New(Options{Store: f.store, Identity: f.identity})
	f.in = f.Serve(&resource.Resource{
		Names:    resource.Names{Plural: "configmaps", Singular: "configmap", Kind: "ConfigMap", ListKind: "ConfigMapList", Namespaced: true},
		Storage:  resource.Storage{Bucket: "configmaps", Version: "v1"},
		Versions: []resource.Version{{Name: "v1", New: func() resource.Object { return &corev1.ConfigMap{} }, Strategy: rules{}}},
		Deletion: deletion,
	})
	return f
}

func (f *fixture) write(verb, name string, o WriteOptions) *Operation {
	return f.NewOperation(&resource.Request{Verb: verb, Resource: f.in.Resource, Version: &f.in.Versions[0], Namespace: "default", Name: name}, f.in, nil, o)
}

func (f *fixture) create(name string, edit ...func(*corev1.ConfigMap)) *corev1.ConfigMap {
	f.Helper()
	obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, e := range edit {
		e(obj)
	}
	rec, err := f.write("create", "", WriteOptions{}).Create(f.Context(), obj)
	if err != nil {
		f.Fatal(err)
	}
	return f.decode(rec)
}

func (f *fixture) decode(rec *storage.Record) *corev1.ConfigMap {
	f.Helper()
	obj, err := f.Object(f.Context(), f.in, &f.in.Versions[0], rec)
	if err != nil {
		f.Fatal(err)
	}
	return obj.(*corev1.ConfigMap)
}

// set returns a change of one key.
func set(key, value string) func(context.Context, resource.Object, *storage.Record) (resource.Object, error) {
	return func(_ context.Context, old resource.Object, _ *storage.Record) (resource.Object, error) {
		obj := old.DeepCopyObject().(*corev1.ConfigMap)
		if obj.Data == nil {
			obj.Data = map[string]string{}
		}
		obj.Data[key] = value
		return obj, nil
	}
}

func TestCreateSetsSystemFields(t *testing.T) {
	t.Parallel()
	f := newFixture(t, resource.DeletionRules{})
	grace := int64(3)
	got := f.create("a", func(c *corev1.ConfigMap) {
		c.UID, c.DeletionTimestamp, c.DeletionGracePeriodSeconds = "mine", &metav1.Time{Time: time.Unix(1, 0)}, &grace
	})
	if got.UID != "uid-1" || got.Namespace != "default" || got.ResourceVersion != "1" || got.CreationTimestamp.IsZero() || got.DeletionTimestamp != nil || got.DeletionGracePeriodSeconds != nil {
		t.Errorf("created as %+v", got.ObjectMeta)
	}
}

func TestCreateTriesGeneratedNamesUntilOneIsFree(t *testing.T) {
	t.Parallel()
	f := newFixture(t, resource.DeletionRules{})
	generate := func(c *corev1.ConfigMap) { c.GenerateName = "gen-" }
	f.identity.stuck = 4 // the suffixes are 0, 0, 0, 0, 1
	if a, b := f.create("", generate), f.create("", generate); a.Name != "gen-0" || b.Name != "gen-1" {
		t.Errorf("generated %s and %s", a.Name, b.Name)
	}
	f.identity.names, f.identity.stuck = 0, 1000
	_, err := f.write("create", "", WriteOptions{}).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "gen-"}})
	if !apierrors.IsAlreadyExists(err) || f.identity.names != genname.MaxAttempts {
		t.Errorf("after %d attempts: %v", f.identity.names, err)
	}
}

func TestCreateOfATakenNameIsAConflict(t *testing.T) {
	t.Parallel()
	f := newFixture(t, resource.DeletionRules{})
	f.create("a")
	for _, dryRun := range [][]string{nil, {metav1.DryRunAll}} {
		_, err := f.write("create", "", WriteOptions{DryRun: dryRun}).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}})
		if !apierrors.IsAlreadyExists(err) {
			t.Errorf("dryRun %v: %v", dryRun, err)
		}
	}
}

func TestReplaceIsEvaluatedAgainAfterAConflictingWrite(t *testing.T) {
	t.Parallel()
	f := newFixture(t, resource.DeletionRules{})
	f.create("a")
	calls := 0
	rec, created, err := f.write("patch", "a", WriteOptions{}).Replace(t.Context(), func(ctx context.Context, old resource.Object, rec *storage.Record) (resource.Object, error) {
		if calls++; calls == 1 {
			if _, _, err := f.write("patch", "a", WriteOptions{}).Replace(ctx, set("other", "1")); err != nil {
				return nil, err
			}
		}
		return set("mine", "2")(ctx, old, rec)
	})
	if err != nil || created || calls != 2 {
		t.Fatalf("after %d calls: created %v, %v", calls, created, err)
	}
	if data := f.decode(rec).Data; data["other"] != "1" || data["mine"] != "2" {
		t.Errorf("a write is lost: %v", data)
	}
}

func TestReplaceStoresNothingWithoutAChange(t *testing.T) {
	t.Parallel()
	f := newFixture(t, resource.DeletionRules{})
	f.create("a", func(c *corev1.ConfigMap) { c.Data = map[string]string{"k": "v"} })
	rec, _, err := f.write("patch", "a", WriteOptions{}).Replace(t.Context(), set("k", "v"))
	if err != nil || rec.Modified != 1 || f.Newest() != 1 {
		t.Errorf("stored at %d: %v", rec.Modified, err)
	}
}

func TestReplaceRefusesInvalidObjectsAndDryRunsStoreNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t, resource.DeletionRules{})
	f.create("a")
	if _, _, err := f.write("patch", "a", WriteOptions{}).Replace(t.Context(), set("invalid", "1")); !apierrors.IsInvalid(err) {
		t.Errorf("an invalid object: %v", err)
	}
	rec, _, err := f.write("patch", "a", WriteOptions{DryRun: []string{metav1.DryRunAll}}).Replace(t.Context(), set("k", "v"))
	if err != nil || f.decode(rec).Data["k"] != "v" {
		t.Errorf("dry run: %v", err)
	}
	if newest := f.Newest(); newest != 1 {
		t.Errorf("the store is at revision %d", newest)
	}
}

func TestReplaceCreatesOnlyIfTheWriteAllowsIt(t *testing.T) {
	t.Parallel()
	f := newFixture(t, resource.DeletionRules{})
	if _, _, err := f.write("update", "a", WriteOptions{}).Replace(t.Context(), set("k", "v")); !apierrors.IsNotFound(err) {
		t.Errorf("an absent object: %v", err)
	}
}

func TestDeleteRemovesUnlessAFinalizerOrGraceHolds(t *testing.T) {
	t.Parallel()
	uid, other := types.UID("uid-1"), types.UID("other")
	hold := func(c *corev1.ConfigMap) { c.Finalizers = []string{"example.com/hold"} }
	for name, c := range map[string]struct {
		rules   resource.DeletionRules
		edit    func(*corev1.ConfigMap)
		options metav1.DeleteOptions
		gone    bool
		check   func(error) bool
		left    []string
	}{
		"plain":              {gone: true},
		"finalizer":          {edit: hold, left: []string{"example.com/hold"}},
		"foreground":         {options: metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationForeground)}, left: []string{metav1.FinalizerDeleteDependents}},
		"orphan":             {options: metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationOrphan)}, left: []string{metav1.FinalizerOrphanDependents}},
		"not collected":      {rules: resource.DeletionRules{NoGarbageCollection: true}, options: metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationForeground)}, gone: true},
		"grace":              {rules: resource.DeletionRules{Grace: func(resource.Object, *int64) int64 { return 30 }}},
		"uid precondition":   {options: metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}, gone: true},
		"other precondition": {options: metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &other}}, check: apierrors.IsConflict},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, c.rules)
			if c.edit == nil {
				c.edit = func(*corev1.ConfigMap) {}
			}
			f.create("a", c.edit)
			rec, gone, err := f.write("delete", "a", WriteOptions{}).Delete(t.Context(), "a", &c.options)
			if c.check != nil {
				if !c.check(err) || f.Newest() != 1 {
					t.Errorf("at revision %d: %v", f.Newest(), err)
				}
				return
			}
			if err != nil || gone != c.gone {
				t.Fatalf("gone %v: %v", gone, err)
			}
			if current := f.store.Get(f.in.Key("default", "a")); (current == nil) != c.gone {
				t.Fatalf("left %v", current)
			}
			if got := f.decode(rec); !c.gone && (got.DeletionTimestamp == nil || fmt.Sprint(got.Finalizers) != fmt.Sprint(c.left)) {
				t.Errorf("marked as %+v", got.ObjectMeta)
			}
		})
	}
}

func TestReplaceThatRemovesTheLastFinalizerDeletes(t *testing.T) {
	t.Parallel()
	f := newFixture(t, resource.DeletionRules{})
	f.create("a", func(c *corev1.ConfigMap) { c.Finalizers = []string{"example.com/hold"} })
	if _, gone, err := f.write("delete", "a", WriteOptions{}).Delete(t.Context(), "a", &metav1.DeleteOptions{}); gone || err != nil {
		t.Fatal(gone, err)
	}
	if _, _, err := f.write("update", "a", WriteOptions{}).Replace(t.Context(), func(_ context.Context, old resource.Object, _ *storage.Record) (resource.Object, error) {
		obj := old.DeepCopyObject().(resource.Object)
		obj.SetFinalizers(nil)
		return obj, nil
	}); err != nil {
		t.Fatal(err)
	}
	if rec := f.store.Get(f.in.Key("default", "a")); rec != nil {
		t.Errorf("left %v", rec)
	}
}

func TestViewAtLeastWaitsForTheRevisionUpToATimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, resource.DeletionRules{})
		f.create("a")
		go func() {
			time.Sleep(revisionTimeout / 2) // of the bubble
			f.create("b")
		}()
		if view, err := f.ViewAtLeast(t.Context(), 2); err != nil || view.Revision() != 2 {
			t.Errorf("%v, %v", view, err)
		}
		begin := time.Now()
		if _, err := f.ViewAtLeast(t.Context(), 9); !apierrors.IsTimeout(err) || time.Since(begin) != revisionTimeout {
			t.Errorf("after %v: %v", time.Since(begin), err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := f.ViewAtLeast(ctx, 9); !errors.Is(err, context.Canceled) {
			t.Errorf("a cancelled request: %v", err)
		}
	})
}
