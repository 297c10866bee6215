// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/apiserver/resource"
)

// TestDeletionShortensTheGracePeriod: never lengthens it, and counts from the first request.
func TestDeletionShortensTheGracePeriod(t *testing.T) {
	t.Parallel()
	synctest.Test(t, shortensTheGracePeriod)
}

func shortensTheGracePeriod(t *testing.T) {
	asks := func(seconds int64) *int64 { return &seconds }
	grace := func(_ resource.Object, asked *int64) int64 {
		if asked != nil {
			return *asked
		}
		return 30
	}
	for name, c := range map[string]struct {
		first, then *int64
		left        int64         // -1: the object is gone
		moved       time.Duration // of the timestamp
	}{
		"the default":            {nil, nil, 30, 0},
		"longer":                 {nil, asks(60), 30, 0},
		"shorter":                {nil, asks(20), 20, -10 * time.Second},
		"negative is one second": {nil, asks(-5), 1, -25 * time.Second},
		"at once":                {nil, asks(0), -1, 0},
		"already over":           {nil, asks(3), 1, -25 * time.Second},
		"at once from the start": {asks(0), nil, -1, 0},
	} {
		f := newFixture(t, resource.DeletionRules{Grace: grace})
		f.create("a")
		remove := func(seconds *int64) (*corev1.ConfigMap, bool) {
			rec, gone, err := f.write("delete", "a", WriteOptions{}).Delete(t.Context(), "a", &metav1.DeleteOptions{GracePeriodSeconds: seconds})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			return f.decode(rec), gone
		}
		marked, gone := remove(c.first)
		var got *corev1.ConfigMap
		if !gone {
			time.Sleep(5 * time.Second) // of the bubble
			got, gone = remove(c.then)
		}
		if gone != (c.left < 0) || gone != (f.store.Get(f.in.Key("default", "a")) == nil) {
			t.Errorf("%s: gone %v", name, gone)
		}
		if gone {
			continue
		}
		if *got.DeletionGracePeriodSeconds != c.left || got.DeletionTimestamp.Sub(marked.DeletionTimestamp.Time) != c.moved {
			t.Errorf("%s: %d seconds are left, and the timestamp moved by %v", name, *got.DeletionGracePeriodSeconds, got.DeletionTimestamp.Sub(marked.DeletionTimestamp.Time))
		}
	}
}

// TestDeletionWithGraceShowsItsTimestamp: watches of an object that is deleted at once
// see it marked first.
func TestDeletionWithGraceShowsItsTimestamp(t *testing.T) {
	t.Parallel()
	f := newFixture(t, resource.DeletionRules{Grace: func(resource.Object, *int64) int64 { return 0 }})
	f.create("a", func(c *corev1.ConfigMap) { c.Generation = 4 })
	rec, gone, err := f.write("delete", "a", WriteOptions{}).Delete(t.Context(), "a", &metav1.DeleteOptions{})
	if err != nil || !gone || f.Newest() != 3 {
		t.Fatalf("at revision %d, gone %v: %v", f.Newest(), gone, err)
	}
	if got := f.decode(rec); got.DeletionTimestamp == nil || *got.DeletionGracePeriodSeconds != 0 || got.Generation != 5 {
		t.Errorf("the last state is %+v", got.ObjectMeta)
	}
}

func TestDeletionTakesItsPolicyFromRequestFinalizersAndResource(t *testing.T) {
	t.Parallel()
	orphan, yes, no := metav1.DeletePropagationOrphan, true, false
	background := metav1.DeletePropagationBackground
	for name, c := range map[string]struct {
		resource metav1.DeletionPropagation
		has      []string
		options  metav1.DeleteOptions
		left     []string // nil: gone
	}{
		"resource":                                 {resource: orphan, left: []string{"orphan"}},
		"request over resource":                    {resource: orphan, options: metav1.DeleteOptions{PropagationPolicy: &background}},
		"orphanDependents":                         {options: metav1.DeleteOptions{OrphanDependents: &yes}, left: []string{"orphan"}},
		"no orphanDependents over resource":        {resource: orphan, options: metav1.DeleteOptions{OrphanDependents: &no}},
		"finalizer orphan":                         {has: []string{"orphan"}, left: []string{"orphan"}},
		"finalizer foreground":                     {has: []string{"foregroundDeletion"}, left: []string{"foregroundDeletion"}},
		"request over finalizer":                   {has: []string{"foregroundDeletion"}, options: metav1.DeleteOptions{PropagationPolicy: &background}},
		"request replaces finalizer":               {has: []string{"foregroundDeletion"}, options: metav1.DeleteOptions{PropagationPolicy: &orphan}, left: []string{"orphan"}},
		"finalizers of others stay in their order": {has: []string{"z.io/a", "orphan", "b.io/b"}, left: []string{"z.io/a", "orphan", "b.io/b"}},
	} {
		f := newFixture(t, resource.DeletionRules{Propagation: c.resource})
		f.create("a", func(m *corev1.ConfigMap) { m.Finalizers = c.has })
		rec, gone, err := f.write("delete", "a", WriteOptions{}).Delete(t.Context(), "a", &c.options)
		if err != nil || gone != (c.left == nil) {
			t.Errorf("%s: gone %v: %v", name, gone, err)
			continue
		}
		if got := f.decode(rec); !gone && (!slices.Equal(got.Finalizers, c.left) || got.DeletionTimestamp == nil) {
			t.Errorf("%s: left with %v, want %v", name, got.Finalizers, c.left)
		}
	}
}

func TestDeletionPreconditionsAreThoseOfKubernetes(t *testing.T) {
	t.Parallel()
	other, old, now := types.UID("other"), "9", "1"
	mark := func(resource.Object) {}
	for name, c := range map[string]struct {
		rules resource.DeletionRules
		p     metav1.Preconditions
		want  string
	}{
		"uid":                        {p: metav1.Preconditions{UID: &other}, want: `Operation cannot be fulfilled on ConfigMap "a": the UID in the precondition (other) does not match the UID in record (uid-1). The object might have been deleted and then recreated`},
		"revision":                   {p: metav1.Preconditions{ResourceVersion: &old}, want: `Operation cannot be fulfilled on ConfigMap "a": the ResourceVersion in the precondition (9) does not match the ResourceVersion in record (1). The object might have been modified`},
		"revision as it is":          {p: metav1.Preconditions{ResourceVersion: &now}},
		"uid of a marked kind":       {rules: resource.DeletionRules{Mark: mark}, p: metav1.Preconditions{UID: &other}, want: `Operation cannot be fulfilled on configmaps "a": Precondition failed: UID in precondition: other, UID in object meta: uid-1`},
		"revision of a marked kind":  {rules: resource.DeletionRules{Mark: mark}, p: metav1.Preconditions{ResourceVersion: &old}, want: `Operation cannot be fulfilled on configmaps "a": Precondition failed: ResourceVersion in precondition: 9, ResourceVersion in object meta: 1`},
		"as it is for a marked kind": {rules: resource.DeletionRules{Mark: mark}, p: metav1.Preconditions{ResourceVersion: &now}},
	} {
		f := newFixture(t, c.rules)
		f.create("a")
		_, _, err := f.write("delete", "a", WriteOptions{}).Delete(t.Context(), "a", &metav1.DeleteOptions{Preconditions: &c.p})
		if got := fmt.Sprint(err); c.want != "" && (got != c.want || !apierrors.IsConflict(err)) || c.want == "" && err != nil {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// TestDeletionOfAHeldObjectMarksItOnce: as a namespace with spec.finalizers.
func TestDeletionOfAHeldObjectMarksItOnce(t *testing.T) {
	t.Parallel()
	held := true
	f := newFixture(t, resource.DeletionRules{
		Mark:  func(obj resource.Object) { obj.SetLabels(map[string]string{"phase": "Terminating"}) },
		Holds: func(resource.Object) bool { return held },
	})
	f.create("a")
	for range 2 {
		rec, gone, err := f.write("delete", "a", WriteOptions{}).Delete(t.Context(), "a", &metav1.DeleteOptions{})
		if err != nil || gone || f.Newest() != 2 {
			t.Fatalf("at revision %d, gone %v: %v", f.Newest(), gone, err)
		}
		if got := f.decode(rec); got.Labels["phase"] != "Terminating" || got.DeletionTimestamp == nil || got.DeletionGracePeriodSeconds != nil {
			t.Errorf("marked as %+v", got.ObjectMeta)
		}
	}
	if _, _, err := f.write("update", "a", WriteOptions{}).Replace(t.Context(), set("k", "v")); err != nil || f.store.Get(f.in.Key("default", "a")) == nil {
		t.Errorf("an update of a held object deletes it: %v", err)
	}
	held = false
	if _, _, err := f.write("update", "a", WriteOptions{}).Replace(t.Context(), set("k", "w")); err != nil || f.store.Get(f.in.Key("default", "a")) != nil {
		t.Errorf("the update that lets it go does not delete it: %v", err)
	}
}

func TestDeletionInADryRunStoresNothing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		finalizers []string
		rules      resource.DeletionRules
		gone       bool
	}{
		"plain":     {gone: true},
		"finalizer": {finalizers: []string{"example.com/hold"}},
		"grace":     {rules: resource.DeletionRules{Grace: func(resource.Object, *int64) int64 { return 30 }}},
	} {
		f := newFixture(t, c.rules)
		f.create("a", func(m *corev1.ConfigMap) { m.Finalizers = c.finalizers })
		rec, gone, err := f.write("delete", "a", WriteOptions{DryRun: []string{metav1.DryRunAll}}).Delete(t.Context(), "a", &metav1.DeleteOptions{})
		if err != nil || gone != c.gone || f.Newest() != 1 {
			t.Errorf("%s: at revision %d, gone %v: %v", name, f.Newest(), gone, err)
			continue
		}
		if marked := f.decode(rec).DeletionTimestamp != nil; marked == c.gone {
			t.Errorf("%s: the answer is marked %v", name, marked)
		}
	}
}
