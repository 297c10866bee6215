// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/storage"
)

// gate is an admission that notes what it is shown. Its functions may be nil.
type gate struct {
	admit, validate func(*resource.AdmissionRequest) error
	inPlace         bool // what Mutates reports
	seen            []string
}

func (g *gate) Mutates(*resource.AdmissionRequest) bool { return g.inPlace }

func (g *gate) Admit(_ context.Context, r *resource.AdmissionRequest) error {
	return g.pass("admit", r, g.admit)
}

func (g *gate) Validate(_ context.Context, r *resource.AdmissionRequest) error {
	return g.pass("validate", r, g.validate)
}

func (g *gate) pass(name string, r *resource.AdmissionRequest, then func(*resource.AdmissionRequest) error) error {
	text := fmt.Sprintf("%s %s %q %s", name, r.Operation, r.Name, strings.TrimPrefix(fmt.Sprintf("%T", r.Options), "*v1."))
	if r.DryRun {
		text += " dry"
	}
	if g.seen = append(g.seen, text); then == nil {
		return nil
	}
	return then(r)
}

// update returns a change of the key k to v that passes managedFields and admission, as the
// handlers of requests make it.
func update(op *Operation) func(context.Context, resource.Object, *storage.Record) (resource.Object, error) {
	return func(ctx context.Context, old resource.Object, rec *storage.Record) (resource.Object, error) {
		obj := resource.Object(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: op.Request.Name}, Data: map[string]string{"k": "v"}})
		if old != nil {
			var err error
			if obj, err = set("k", "v")(ctx, old, rec); err != nil {
				return nil, err
			}
		}
		return op.PrepareUpdate(ctx, obj, old)
	}
}

func TestAdmissionSeesBothPassesOfEveryWrite(t *testing.T) {
	t.Parallel()
	f := newFixture(t, resource.DeletionRules{})
	g := &gate{}
	f.in.Admission = g
	dry := WriteOptions{DryRun: []string{metav1.DryRunAll}}
	create := func(obj *corev1.ConfigMap, o WriteOptions) error {
		_, err := f.write("create", "", o).Create(t.Context(), obj)
		return err
	}
	replace := func(name string, creates bool, o WriteOptions) error {
		op := f.write("update", name, o)
		op.Creates = creates
		_, _, err := op.Replace(t.Context(), update(op))
		return err
	}
	f.authorize = func(context.Context, *resource.Request) error { return nil }
	f.in.Update.Unconditional = true
	for _, c := range []struct {
		name string
		do   func() error
		want []string
	}{
		{"create", func() error {
			return create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, WriteOptions{})
		},
			[]string{`admit CREATE "a" CreateOptions`, `validate CREATE "a" CreateOptions`}},
		{"generated name", func() error {
			return create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "gen-"}}, WriteOptions{})
		}, []string{`admit CREATE "" CreateOptions`, `validate CREATE "gen-1" CreateOptions`}},
		{"dry run", func() error { return create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "b"}}, dry) },
			[]string{`admit CREATE "b" CreateOptions dry`, `validate CREATE "b" CreateOptions dry`}},
		{"update", func() error { return replace("a", false, WriteOptions{}) },
			[]string{`admit UPDATE "a" UpdateOptions`, `validate UPDATE "a" UpdateOptions`}},
		{"update that creates", func() error { return replace("c", true, WriteOptions{}) },
			[]string{`admit CREATE "c" CreateOptions`, `validate CREATE "c" CreateOptions`}},
		{"deletion", func() error {
			_, _, err := f.write("delete", "a", WriteOptions{}).Delete(t.Context(), "a", &metav1.DeleteOptions{})
			return err
		}, []string{`admit DELETE "a" DeleteOptions`, `validate DELETE "a" DeleteOptions`}},
		{"deletion of a collection", func() error {
			_, _, err := f.write("deletecollection", "", dry).Delete(t.Context(), "c", &metav1.DeleteOptions{})
			return err
		}, []string{`admit DELETE "" DeleteOptions dry`, `validate DELETE "" DeleteOptions dry`}},
	} {
		g.seen = nil
		if err := c.do(); err != nil || !slices.Equal(g.seen, c.want) {
			t.Errorf("%s: admission saw %q, want %q: %v", c.name, g.seen, c.want, err)
		}
	}
}

func TestAdmissionThatRefusesStoresNothing(t *testing.T) {
	t.Parallel()
	refusal := apierrors.NewForbidden(corev1.Resource("configmaps"), "a", errors.New("refused"))
	refuse := func(*resource.AdmissionRequest) error { return refusal }
	for name, g := range map[string]*gate{"admit": {admit: refuse}, "validate": {validate: refuse}} {
		f := newFixture(t, resource.DeletionRules{})
		f.create("a")
		f.in.Admission = g
		_, err := f.write("create", "", WriteOptions{}).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "b"}})
		op := f.write("patch", "a", WriteOptions{})
		_, _, replaced := op.Replace(t.Context(), update(op))
		_, _, deleted := f.write("delete", "a", WriteOptions{}).Delete(t.Context(), "a", &metav1.DeleteOptions{})
		for verb, err := range map[string]error{"create": err, "update": replaced, "delete": deleted} {
			if !errors.Is(err, refusal) {
				t.Errorf("%s: %s answers %v", name, verb, err)
			}
		}
		if newest := f.Newest(); newest != 1 {
			t.Errorf("%s: the store is at revision %d", name, newest)
		}
	}
}

// defaulting is a strategy that sets the key "defaulted" and refuses the key "unreadable".
type defaulting struct{ rules }

func (defaulting) Default(obj resource.Object) ([]string, error) {
	c := obj.(*corev1.ConfigMap)
	if _, ok := c.Data["unreadable"]; ok {
		return nil, errors.New("unreadable")
	}
	if c.Data == nil {
		c.Data = map[string]string{}
	}
	c.Data["defaulted"] = "yes"
	return nil, nil
}

func TestAdmissionThatChangesAnObjectHasItsDefaultsSet(t *testing.T) {
	t.Parallel()
	inPlace := func(key string) func(*resource.AdmissionRequest) error {
		return func(r *resource.AdmissionRequest) error {
			r.Object.(*corev1.ConfigMap).Data = map[string]string{key: "1"}
			return nil
		}
	}
	other := func(r *resource.AdmissionRequest) error {
		r.Object = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Data: map[string]string{"other": "1"}}
		return nil
	}
	for name, c := range map[string]struct {
		gate *gate
		want string // data as it is stored
		err  string
	}{
		"no change":         {&gate{}, "map[]", ""},
		"change in place":   {&gate{inPlace: true, admit: inPlace("k")}, "map[defaulted:yes k:1]", ""},
		"another object":    {&gate{admit: other}, "map[defaulted:yes other:1]", ""},
		"unreadable object": {&gate{inPlace: true, admit: inPlace("unreadable")}, "", "Internal error occurred: after admission: unreadable"},
	} {
		f := newFixture(t, resource.DeletionRules{})
		f.in.Versions[0].Strategy = defaulting{}
		f.in.Admission = c.gate
		validated := ""
		c.gate.validate = func(r *resource.AdmissionRequest) error {
			validated = fmt.Sprint(r.Object.(*corev1.ConfigMap).Data)
			return nil
		}
		rec, err := f.write("create", "", WriteOptions{}).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}})
		if c.err != "" {
			if err == nil || err.Error() != c.err {
				t.Errorf("%s: %v, want %s", name, err, c.err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(f.decode(rec).Data); got != c.want || validated != c.want {
			t.Errorf("%s: stored as %s, validated as %s, want %s", name, got, validated, c.want)
		}
	}
}

// TestAdmissionDoesNotChangeTheStoredObject: a patched object shares memory with the one
// that it replaces.
func TestAdmissionDoesNotChangeTheStoredObject(t *testing.T) {
	t.Parallel()
	f := newFixture(t, resource.DeletionRules{})
	f.create("a", func(c *corev1.ConfigMap) { c.Data = map[string]string{"k": "stored"} })
	g := &gate{inPlace: true, admit: func(r *resource.AdmissionRequest) error {
		r.Object.(*corev1.ConfigMap).Data["k"] = "admitted"
		return nil
	}}
	g.validate = func(r *resource.AdmissionRequest) error {
		if was := r.Old.(*corev1.ConfigMap).Data["k"]; was != "stored" {
			t.Errorf("the object before the write has %q", was)
		}
		return nil
	}
	f.in.Admission = g
	op := f.write("patch", "a", WriteOptions{})
	rec, _, err := op.Replace(t.Context(), func(ctx context.Context, old resource.Object, _ *storage.Record) (resource.Object, error) {
		patched := *old.(*corev1.ConfigMap) // shares Data
		return op.AdmitRevision(ctx, &patched, old)
	})
	if err != nil || f.decode(rec).Data["k"] != "admitted" {
		t.Errorf("%v, %v", rec, err)
	}
}

// plainOwnership attributes every write to its manager, and nothing else.
type plainOwnership struct{ resource.FieldManager }

func (plainOwnership) Update(_ context.Context, _, obj resource.Object, manager string) (resource.Object, error) {
	entry := metav1.ManagedFieldsEntry{Manager: manager, Operation: "Update", APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{}}
	entry.FieldsV1.SetRawBytes([]byte(`{}`))
	obj.SetManagedFields([]metav1.ManagedFieldsEntry{entry})
	return obj, nil
}

func TestAdmissionThatBreaksManagedFieldsHasThemRestored(t *testing.T) {
	t.Parallel()
	f := newFixture(t, resource.DeletionRules{})
	f.in.Versions[0].FieldManager = plainOwnership{}
	f.in.Admission = &gate{inPlace: true, admit: func(r *resource.AdmissionRequest) error {
		r.Object.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "outdated", Operation: "Guess"}})
		return nil
	}}
	op := f.write("create", "", WriteOptions{FieldManager: "me"})
	op.Request.Warnings = &resource.Warnings{}
	rec, err := op.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}})
	if err != nil {
		t.Fatal(err)
	}
	if got := f.decode(rec).ManagedFields; len(got) != 1 || got[0].Manager != "me" {
		t.Errorf("managedFields are %v", got)
	}
	if got := op.Request.Warnings.Texts(); len(got) != 1 || !strings.HasPrefix(got[0], ".metadata.managedFields was in an invalid state after admission;") {
		t.Errorf("warnings: %q", got)
	}
}

func TestAdmissionLearnsTheOutcomeOfEachAttempt(t *testing.T) {
	t.Parallel()
	f := newFixture(t, resource.DeletionRules{})
	f.create("a")
	var outcomes []resource.Outcome
	g := &gate{admit: func(r *resource.AdmissionRequest) error {
		r.Finish.Add(func(o resource.Outcome) { outcomes = append(outcomes, o) })
		return nil
	}}
	raced := false
	race := func(*resource.AdmissionRequest) error { // another write between the two passes of the first attempt
		if raced {
			return nil
		}
		raced = true
		_, err := f.store.Commit(t.Context(), storage.Write{Key: f.in.Key("default", "a"), Expect: storage.AnyRevision, Value: f.store.Get(f.in.Key("default", "a")).Value})
		return err
	}
	f.in.Admission = g
	create := func(name string, o WriteOptions, data map[string]string) {
		_, _ = f.write("create", "", o).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: data})
	}
	for _, c := range []struct {
		name string
		do   func()
		want []resource.Outcome
	}{
		{"created", func() { create("b", WriteOptions{}, nil) }, []resource.Outcome{resource.Stored}},
		{"invalid", func() { create("c", WriteOptions{}, map[string]string{"invalid": ""}) }, []resource.Outcome{resource.NotStored}},
		{"dry run", func() { create("c", WriteOptions{DryRun: []string{metav1.DryRunAll}}, nil) }, nil},
		{"retried", func() {
			g.validate = race
			op := f.write("patch", "a", WriteOptions{})
			if _, _, err := op.Replace(t.Context(), update(op)); err != nil {
				t.Error(err)
			}
		}, []resource.Outcome{resource.NotStored, resource.Stored}},
		{"deleted", func() {
			if _, _, err := f.write("delete", "a", WriteOptions{}).Delete(t.Context(), "a", &metav1.DeleteOptions{}); err != nil {
				t.Error(err)
			}
		}, []resource.Outcome{resource.Stored}},
		{"the store fails", func() {
			_ = f.store.Close()
			create("d", WriteOptions{}, nil)
		}, []resource.Outcome{resource.Unknown}},
	} {
		outcomes = nil
		if c.do(); !slices.Equal(outcomes, c.want) {
			t.Errorf("%s: outcomes %v, want %v", c.name, outcomes, c.want)
		}
	}
}

// replicasInData is a Scaler of ConfigMaps; without the key there are no replicas.
type replicasInData struct{ resource.Scaler }

func (replicasInData) Replicas(obj resource.Object) (spec, status int32, selector string, err error) {
	if _, err := fmt.Sscan(obj.(*corev1.ConfigMap).Data["replicas"], &spec); err != nil {
		return 0, 0, "", errors.New("no replicas")
	}
	return spec, spec - 1, "a=b", nil
}

// TestScaleAdmissionSeesScales: also of an object that had no replicas before.
func TestScaleAdmissionSeesScales(t *testing.T) {
	t.Parallel()
	f := newFixture(t, resource.DeletionRules{})
	created := f.create("a")
	var seen []string
	note := func(r *resource.AdmissionRequest) error {
		now, was := r.Object.(*autoscalingv1.Scale), r.Old.(*autoscalingv1.Scale)
		seen = append(seen, fmt.Sprintf("%s/%s %d to %d", now.Namespace, now.Name, was.Spec.Replicas, now.Spec.Replicas))
		if r.Strategy == nil { // the mutating pass
			now.Spec.Replicas++
		}
		return nil
	}
	f.in.Admission = &gate{admit: note, validate: note}
	scale := &resource.Subresource{Name: "scale", Scale: replicasInData{}}
	for _, to := range []string{"2", "5"} {
		op := f.NewOperation(&resource.Request{Verb: "update", Resource: f.in.Resource, Version: &f.in.Versions[0], Namespace: "default", Name: "a"}, f.in, scale, WriteOptions{})
		if _, _, err := op.Replace(t.Context(), func(ctx context.Context, old resource.Object, rec *storage.Record) (resource.Object, error) {
			obj, err := set("replicas", to)(ctx, old, rec)
			if err != nil {
				return nil, err
			}
			now, err := Scale(scale.Scale, obj)
			if err != nil {
				return nil, err
			}
			was, _ := Scale(scale.Scale, old)
			admitted, err := op.AdmitScale(ctx, now, was)
			if err != nil {
				return nil, err
			}
			return set("replicas", fmt.Sprint(admitted.(*autoscalingv1.Scale).Spec.Replicas))(ctx, obj, rec)
		}); err != nil {
			t.Fatal(err)
		}
	}
	if want := []string{"default/a 0 to 2", "default/a 0 to 3", "default/a 3 to 5", "default/a 3 to 6"}; !slices.Equal(seen, want) {
		t.Errorf("admission saw %q, want %q", seen, want)
	}
	rec := f.store.Get(f.in.Key("default", "a"))
	got, err := Scale(scale.Scale, f.decode(rec))
	want := autoscalingv1.Scale{
		TypeMeta:   metav1.TypeMeta{APIVersion: "autoscaling/v1", Kind: "Scale"},
		ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "default", UID: created.UID, ResourceVersion: "3", CreationTimestamp: created.CreationTimestamp},
		Spec:       autoscalingv1.ScaleSpec{Replicas: 6}, Status: autoscalingv1.ScaleStatus{Replicas: 5, Selector: "a=b"},
	}
	if err != nil || got.String() != want.String() {
		t.Errorf("the Scale is %v, want %v: %v", got, &want, err)
	}
}
