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

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/apiserver/internal/objectmeta"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/storage"
)

// edit returns a change of the current object.
func edit(change func(*corev1.ConfigMap)) func(context.Context, resource.Object, *storage.Record) (resource.Object, error) {
	return func(_ context.Context, old resource.Object, _ *storage.Record) (resource.Object, error) {
		obj := old.DeepCopyObject().(*corev1.ConfigMap)
		change(obj)
		return obj, nil
	}
}

func TestReplaceChecksUIDAndResourceVersion(t *testing.T) {
	t.Parallel()
	const modified = `Operation cannot be fulfilled on configmaps "a": the object has been modified; please apply your changes to the latest version and try again`
	const uidConflict = `Operation cannot be fulfilled on configmaps "a": StorageError: invalid object, Code: 4, Key: %sconfigmaps/default/a, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: other, UID in object meta: uid-1`
	for name, c := range map[string]struct {
		verb          string
		uid           types.UID
		revision      string
		unconditional bool
		dryRun        []string
		want          string
	}{
		"as it is":                          {verb: "update", uid: "uid-1", revision: "1"},
		"no uid":                            {verb: "update", revision: "1"},
		"another revision":                  {verb: "update", revision: "9", want: modified},
		"a patch to another revision":       {verb: "patch", revision: "9", want: modified},
		"a revision that is no number":      {verb: "update", revision: "x", want: `strconv.ParseUint: parsing "x": invalid syntax`},
		"no revision":                       {verb: "update", want: `configmaps "a" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update`},
		"revision zero":                     {verb: "update", revision: "0", want: `configmaps "a" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update`},
		"no revision of a lenient resource": {verb: "update", unconditional: true},
		"another uid":                       {verb: "update", uid: "other", revision: "1", want: fmt.Sprintf(uidConflict, "/registry/")},
		"another uid in a dry run":          {verb: "update", uid: "other", revision: "1", dryRun: []string{metav1.DryRunAll}, want: fmt.Sprintf(uidConflict, "/")},
		"a patch to another uid":            {verb: "patch", uid: "other", revision: "1", want: `ConfigMap "a" is invalid: metadata.uid: Invalid value: "other": field is immutable`},
	} {
		f := newFixture(t, resource.DeletionRules{})
		f.in.Update.Unconditional = c.unconditional
		f.create("a")
		rec, _, err := f.write(c.verb, "a", WriteOptions{DryRun: c.dryRun}).Replace(t.Context(), edit(func(m *corev1.ConfigMap) {
			m.UID, m.ResourceVersion, m.Data = c.uid, c.revision, map[string]string{"k": "v"}
		}))
		switch {
		case c.want == "":
			if err != nil {
				t.Errorf("%s: %v", name, err)
			} else if got := f.decode(rec); got.UID != "uid-1" || got.ResourceVersion != "2" || got.Data["k"] != "v" {
				t.Errorf("%s: stored as %v", name, got)
			}
		case err == nil || dedup(err.Error()) != c.want || f.Newest() != 1:
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}

// dedup returns an error's text with the causes that kube-apiserver lists twice listed once.
func dedup(text string) string {
	head, list, ok := strings.Cut(text, "is invalid: [")
	if !ok {
		return text
	}
	causes := strings.Split(strings.TrimSuffix(list, "]"), ", ")
	return head + "is invalid: " + strings.Join(slices.Compact(causes), ", ")
}

func TestReplaceKeepsSystemFields(t *testing.T) {
	t.Parallel()
	f := newFixture(t, resource.DeletionRules{})
	created := f.create("a", func(c *corev1.ConfigMap) { c.Finalizers = []string{"example.com/hold"} })
	if _, _, err := f.write("delete", "a", WriteOptions{}).Delete(t.Context(), "a", &metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	marked := f.decode(f.store.Get(f.in.Key("default", "a")))
	rec, _, err := f.write("update", "a", WriteOptions{}).Replace(t.Context(), edit(func(c *corev1.ConfigMap) {
		c.ObjectMeta = metav1.ObjectMeta{Name: "a", ResourceVersion: c.ResourceVersion, Finalizers: c.Finalizers, Generation: 77, CreationTimestamp: metav1.Unix(1, 0)}
		c.Data = map[string]string{"k": "v"}
	}))
	if err != nil {
		t.Fatal(err)
	}
	want := marked.DeepCopy()
	want.ResourceVersion, want.Data = "3", map[string]string{"k": "v"}
	if got := f.decode(rec); !equality.Semantic.DeepEqual(got, want) || got.UID != created.UID || got.DeletionTimestamp == nil || got.DeletionGracePeriodSeconds == nil {
		t.Errorf("stored as %v, want %v", got, want)
	}
}

func TestReplaceCreatesAfterAuthorization(t *testing.T) {
	t.Parallel()
	f := newFixture(t, resource.DeletionRules{})
	refusal := errors.New("may not create")
	f.authorize = func(context.Context, *resource.Request) error { return refusal }
	put := func() (*storage.Record, bool, error) {
		op := f.write("update", "a", WriteOptions{})
		op.Creates = true
		return op.Replace(t.Context(), func(ctx context.Context, old resource.Object, rec *storage.Record) (resource.Object, error) {
			if old != nil || rec != nil {
				t.Errorf("the change of an absent object gets %v", old)
			}
			// The revision of a body that creates is ignored.
			return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", ResourceVersion: "99"}}, nil
		})
	}
	if _, created, err := put(); created || !errors.Is(err, refusal) || f.Newest() != 0 {
		t.Errorf("created %v without authorization: %v", created, err)
	}
	refusal = nil
	rec, created, err := put()
	if err != nil || !created {
		t.Fatalf("created %v: %v", created, err)
	}
	if got := f.decode(rec); got.ResourceVersion != "1" || got.UID == "" || got.CreationTimestamp.IsZero() {
		t.Errorf("created as %v", got)
	}
}

func TestReplaceUpdatesWhatAppearsWhileItCreates(t *testing.T) {
	t.Parallel()
	f := newFixture(t, resource.DeletionRules{})
	f.authorize = func(context.Context, *resource.Request) error { f.create("a"); return nil }
	op := f.write("patch", "a", WriteOptions{})
	op.Creates = true
	rec, created, err := op.Replace(t.Context(), update(op))
	if err != nil || created {
		t.Fatalf("created %v: %v", created, err)
	}
	if got := f.decode(rec); got.ResourceVersion != "2" || got.Data["k"] != "v" {
		t.Errorf("stored as %v", got)
	}
}

func TestReplaceEndsWithItsContext(t *testing.T) {
	t.Parallel()
	f := newFixture(t, resource.DeletionRules{})
	f.create("a")
	ctx, cancel := context.WithCancel(t.Context())
	_, _, err := f.write("patch", "a", WriteOptions{}).Replace(ctx, func(_ context.Context, old resource.Object, rec *storage.Record) (resource.Object, error) {
		cancel()
		return set("k", "v")(ctx, old, rec)
	})
	if !errors.Is(err, context.Canceled) || f.Newest() != 1 {
		t.Errorf("at revision %d: %v", f.Newest(), err)
	}
}

func TestWritesRefuseAnotherNamespace(t *testing.T) {
	t.Parallel()
	const want = "the namespace of the provided object does not match the namespace sent on the request"
	f := newFixture(t, resource.DeletionRules{})
	f.create("a")
	_, err := f.write("create", "", WriteOptions{}).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "b", Namespace: "other"}})
	_, _, replaced := f.write("update", "a", WriteOptions{}).Replace(t.Context(), edit(func(c *corev1.ConfigMap) { c.Namespace = "other" }))
	for verb, err := range map[string]error{"create": err, "update": replaced} {
		if !apierrors.IsBadRequest(err) || err.Error() != want {
			t.Errorf("%s: %v", verb, err)
		}
	}
}

func TestWritesOfClusterScopedKindsDropTheNamespace(t *testing.T) {
	t.Parallel()
	f := newFixture(t, resource.DeletionRules{})
	f.in.Namespaced = false
	if got := f.create("a", func(c *corev1.ConfigMap) { c.Namespace = "other" }); got.Namespace != "" || f.store.Get(f.in.Key("", "a")) == nil {
		t.Errorf("stored as %v", got)
	}
}

func TestCreateRefusesAResourceVersion(t *testing.T) {
	t.Parallel()
	f := newFixture(t, resource.DeletionRules{})
	for revision, want := range map[string]string{"": "", "0": "", "5": "resourceVersion should not be set on objects to be created"} {
		_, err := f.write("create", "", WriteOptions{}).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a" + revision, ResourceVersion: revision}})
		if (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("%q: %v, want %q", revision, err, want)
		}
	}
}

func TestCreateOfAKeyThatIsBeingDeletedSaysSo(t *testing.T) {
	t.Parallel()
	f := newFixture(t, resource.DeletionRules{})
	f.create("a", func(c *corev1.ConfigMap) { c.Finalizers = []string{"example.com/hold"} })
	if _, _, err := f.write("delete", "a", WriteOptions{}).Delete(t.Context(), "a", &metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, dryRun := range [][]string{nil, {metav1.DryRunAll}} {
		_, err := f.write("create", "", WriteOptions{DryRun: dryRun}).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}})
		var status *apierrors.StatusError
		if !errors.As(err, &status) || !apierrors.IsAlreadyExists(status) || status.Error() != `object is being deleted: configmaps "a" already exists` {
			t.Errorf("dryRun %v: %v", dryRun, err)
		}
	}
}

// owner returns a reference to an owner.
func owner(uid types.UID, controller *bool) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: "owner", UID: uid, Controller: controller}
}

func TestWritesRemoveRepeatedOwnersWithAWarning(t *testing.T) {
	t.Parallel()
	yes := true
	repeated := []metav1.OwnerReference{owner("u", nil), owner("v", nil), owner("u", nil), owner("v", &yes), owner("v", nil)}
	kept := []metav1.OwnerReference{owner("u", nil), owner("v", nil), owner("v", &yes)}
	const (
		begin = ".metadata.ownerReferences contains duplicate entries"
		after = " after mutating admission happens"
		end   = "; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: u, v"
	)
	adds := &gate{inPlace: true, admit: func(r *resource.AdmissionRequest) error {
		r.Object.SetOwnerReferences(repeated)
		return nil
	}}
	for name, c := range map[string]struct {
		admission resource.Admission
		body      []metav1.OwnerReference
		want      string
	}{
		"in the body":     {nil, repeated, begin + end},
		"after admission": {adds, nil, begin + after + end},
		"none":            {nil, kept, ""},
	} {
		f := newFixture(t, resource.DeletionRules{})
		f.create("old")
		f.in.Admission = c.admission
		check := func(verb string, op *Operation, rec *storage.Record, err error) {
			t.Helper()
			if err != nil {
				t.Fatalf("%s: %s: %v", name, verb, err)
			}
			if got := strings.Join(op.Request.Warnings.Texts(), "\n"); got != c.want {
				t.Errorf("%s: %s warns %q, want %q", name, verb, got, c.want)
			}
			if got := f.decode(rec).OwnerReferences; !equality.Semantic.DeepEqual(got, kept) {
				t.Errorf("%s: %s stores %v", name, verb, got)
			}
		}
		obj := func() *corev1.ConfigMap {
			return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", OwnerReferences: slices.Clone(c.body)}}
		}
		op := f.write("create", "", WriteOptions{})
		op.Request.Warnings = &resource.Warnings{}
		rec, err := op.Create(t.Context(), obj())
		check("create", op, rec, err)

		op = f.write("update", "old", WriteOptions{})
		op.Request.Warnings = &resource.Warnings{}
		rec, _, err = op.Replace(t.Context(), func(ctx context.Context, old resource.Object, _ *storage.Record) (resource.Object, error) {
			next := old.DeepCopyObject().(resource.Object)
			next.SetOwnerReferences(slices.Clone(c.body))
			objectmeta.DedupOwnerReferences(op.Request, next)
			return op.PrepareUpdate(ctx, next, old)
		})
		check("update", op, rec, err)
	}
}

// decorated is a strategy that wraps another.
type decorated struct{ resource.Strategy }

func TestMetadataErrorsAreListedAsOftenAsInKubernetes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		listed      resource.MetadataErrors
		created     string // errors of a creation with an invalid name and data
		uid, prefix int    // how often an update lists that the uid changed, and that generateName is invalid
	}{
		{resource.MetadataErrors{}, "metadata.name, data[invalid]", 1, 1},
		{resource.MetadataErrors{Once: true}, "data[invalid]", 1, 1},
		{resource.MetadataErrors{RepeatCreation: true}, "metadata.name, data[invalid]", 1, 2},
	} {
		f := newFixture(t, resource.DeletionRules{})
		f.in.Versions[0].Strategy, f.in.Versions[0].MetadataErrors = decorated{rules{}}, c.listed
		f.create("a")
		_, err := f.write("create", "", WriteOptions{}).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "Capital"}, Data: map[string]string{"invalid": ""}})
		if got := strings.Join(causes(err), ", "); got != c.created {
			t.Errorf("%+v: a creation lists %s, want %s", c.listed, got, c.created)
		}
		_, _, err = f.write("patch", "a", WriteOptions{}).Replace(t.Context(), edit(func(m *corev1.ConfigMap) {
			m.UID, m.GenerateName = "other", "a/"
		}))
		count := map[string]int{}
		for _, cause := range causes(err) {
			count[cause]++
		}
		if count["metadata.uid"] != c.uid || count["metadata.generateName"] != c.prefix {
			t.Errorf("%+v: an update lists %v, want metadata.uid %d times and metadata.generateName %d times", c.listed, count, c.uid, c.prefix)
		}
	}
}

// causes returns the fields that an error is about.
func causes(err error) []string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return []string{fmt.Sprint(err)}
	}
	var out []string
	for _, c := range status.Status().Details.Causes {
		out = append(out, c.Field)
	}
	return out
}

// definition is the stored object that a resource is made from.
type definition struct{ at storage.Condition }

func (d definition) Condition() storage.Condition     { return d.at }
func (definition) WaitSynced(_ context.Context) error { return nil }

func TestWritesStoreNothingOnceTheirDefinitionHasChanged(t *testing.T) {
	t.Parallel()
	f := newFixture(t, resource.DeletionRules{})
	f.create("a")
	key := storage.Key{Bucket: "definitions", Name: "configmaps"}
	rec, err := f.store.Commit(t.Context(), storage.Write{Key: key, Value: []byte("1"), Expect: storage.Absent})
	if err != nil {
		t.Fatal(err)
	}
	f.in.Storage.Definition = definition{storage.Condition{Key: key, At: rec.Modified}}
	f.create("b")
	if _, err := f.store.Commit(t.Context(), storage.Write{Key: key, Value: []byte("2"), Expect: rec.Modified}); err != nil {
		t.Fatal(err)
	}
	newest := f.Newest()
	_, err = f.write("create", "", WriteOptions{}).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c"}})
	_, _, replaced := f.write("patch", "a", WriteOptions{}).Replace(t.Context(), set("k", "v"))
	for verb, err := range map[string]error{"create": err, "update": replaced} {
		if !errors.Is(err, ErrRedefined) || f.Newest() != newest {
			t.Errorf("%s: %v", verb, err)
		}
	}
}

func TestCommittedHookSeesEveryDurableChange(t *testing.T) {
	t.Parallel()
	f := newFixture(t, resource.DeletionRules{})
	var seen []string
	failure := error(nil)
	f.in.Committed = func(_ context.Context, c resource.Change) error {
		state := func(obj resource.Object) string {
			if obj == nil {
				return "-"
			}
			return fmt.Sprint(obj.(*corev1.ConfigMap).Data, obj.GetResourceVersion(), obj.GetDeletionTimestamp() != nil)
		}
		seen = append(seen, fmt.Sprint(c.Request.Verb, " ", c.Revision, ": ", state(c.Old), " to ", state(c.Object), " deleted ", c.Deleted))
		return failure
	}
	replace := func(change func(*corev1.ConfigMap), o WriteOptions) error {
		_, _, err := f.write("patch", "a", o).Replace(t.Context(), edit(change))
		return err
	}
	put := func(c *corev1.ConfigMap) {
		c.Data = map[string]string{"k": "v"}
		c.Finalizers = []string{"example.com/hold"}
	}
	f.create("a")
	if err := errors.Join(replace(put, WriteOptions{}), replace(put, WriteOptions{}), replace(func(c *corev1.ConfigMap) { c.Data = nil }, WriteOptions{DryRun: []string{metav1.DryRunAll}})); err != nil {
		t.Fatal(err)
	}
	if _, _, err := f.write("delete", "a", WriteOptions{}).Delete(t.Context(), "a", &metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	failure = errors.New("the hook fails")
	if err := replace(func(c *corev1.ConfigMap) { c.Finalizers = nil }, WriteOptions{}); !errors.Is(err, failure) {
		t.Errorf("the write answers %v", err)
	}
	want := []string{
		"create 1: - to map[]1false deleted false",
		"patch 2: map[]1false to map[k:v]2false deleted false",
		"delete 3: map[k:v]2false to map[k:v]3true deleted false",
		"patch 4: map[k:v]3true to map[k:v]3true deleted true",
	}
	if !slices.Equal(seen, want) {
		t.Errorf("the hook saw\n%s\nwant\n%s", strings.Join(seen, "\n"), strings.Join(want, "\n"))
	}
	if rec := f.store.Get(f.in.Key("default", "a")); rec != nil {
		t.Error("an error of the hook undid the deletion")
	}
}
