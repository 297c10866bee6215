// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	api "github.com/steer-dev/steer/apiserver/resource"
)

// deployments describes a kind with a status.
func deployments() Definition[appsv1.Deployment, *appsv1.Deployment] {
	return Definition[appsv1.Deployment, *appsv1.Deployment]{
		Group: "apps", Version: "v1", Plural: "deployments", Short: []string{"deploy"}, Categories: []string{"all"}, Status: true, Generations: true,
	}
}

func deployment(replicas int32, change func(*appsv1.Deployment)) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web", Generation: 3}}
	d.Spec.Replicas = &replicas
	if change != nil {
		change(d)
	}
	return d
}

func TestResourceFollowsTheDescription(t *testing.T) {
	t.Parallel()
	k := deployments()
	k.Selectable = []Selectable[*appsv1.Deployment]{Leaf("spec.paused", func(d *appsv1.Deployment) string { return fmt.Sprint(d.Spec.Paused) })}
	k.Subresources = []api.Subresource{{Name: "scale"}}
	k.Unconditional, k.Creates = true, true
	r := k.Resource()
	v := &r.Versions[0]
	if got, want := fmt.Sprint(r.Group, r.Plural, r.Singular, r.Kind, r.ListKind, r.ShortNames, r.Categories, r.Namespaced),
		fmt.Sprint("apps", "deployments", "deployment", "Deployment", "DeploymentList", []string{"deploy"}, []string{"all"}, true); got != want {
		t.Errorf("names are %s, want %s", got, want)
	}
	if r.Storage.Bucket != "apps/deployments" || r.Storage.Version != "v1" || !r.Update.Unconditional || !r.Update.Creates {
		t.Errorf("the resource is %+v, %+v", r.Storage, r.Update)
	}
	var names []string
	for _, s := range v.Subresources {
		names = append(names, s.Name)
	}
	if !slices.Equal(names, []string{"status", "scale"}) {
		t.Errorf("subresources are %v, want status and scale", names)
	}
	s := v.Selectable[0]
	if got := s.Value(deployment(1, func(d *appsv1.Deployment) { d.Spec.Paused = true })); got != "true" || !slices.Equal(s.Keys, []string{"spec", "paused"}) {
		t.Errorf("the field %s of %v has the value %s", s.Path, s.Keys, got)
	}
	if columns := v.Printer.Columns(); len(columns) != 2 || columns[0].Name != "Name" || columns[1].Name != "Age" {
		t.Errorf("without a row the columns are %v, want name and age", columns)
	}

	core := Definition[corev1.Node, *corev1.Node]{Version: "v1", Plural: "nodes", Cluster: true, Singular: "machine"}.Resource()
	if core.Namespaced || core.Singular != "machine" || core.Storage.Bucket != "nodes" || len(core.Versions[0].Subresources) != 0 {
		t.Errorf("the resource is %+v", core)
	}
	kept := Definition[corev1.Node, *corev1.Node]{Version: "v1", Plural: "nodes", Bucket: "elsewhere"}.Resource()
	if kept.Storage.Bucket != "elsewhere" {
		t.Errorf("objects are in the bucket %s", kept.Storage.Bucket)
	}
}

func TestPrepareKeepsStatusAndCountsGenerations(t *testing.T) {
	t.Parallel()
	status := func(d *appsv1.Deployment) { d.Status.Replicas = 9 }
	labelled := func(d *appsv1.Deployment) { d.Labels = map[string]string{"a": "b"} }
	for _, c := range []struct {
		name       string
		change     func(*Definition[appsv1.Deployment, *appsv1.Deployment])
		obj, old   *appsv1.Deployment
		status     int32
		generation int64
	}{
		{"creation", nil, deployment(1, status), nil, 0, 1},
		{"creation that keeps the status", func(k *Definition[appsv1.Deployment, *appsv1.Deployment]) { k.KeepsStatus = true }, deployment(1, status), nil, 9, 1},
		{"creation with a first status", func(k *Definition[appsv1.Deployment, *appsv1.Deployment]) {
			k.InitialStatus = func(d *appsv1.Deployment) { d.Status.Replicas = 4 }
		}, deployment(1, status), nil, 4, 1},
		{"without a status", func(k *Definition[appsv1.Deployment, *appsv1.Deployment]) { k.Status = false }, deployment(1, status), nil, 9, 1},
		{"without generations", func(k *Definition[appsv1.Deployment, *appsv1.Deployment]) { k.Generations = false }, deployment(1, nil), nil, 0, 3},
		{"unchanged", nil, deployment(1, func(d *appsv1.Deployment) { d.Generation = 0 }), deployment(1, status), 9, 3},
		{"changed spec", nil, deployment(2, nil), deployment(1, status), 9, 4},
		{"changed labels", nil, deployment(1, labelled), deployment(1, nil), 0, 3},
		{"changed labels that count", func(k *Definition[appsv1.Deployment, *appsv1.Deployment]) { k.LabelsCount = true }, deployment(1, labelled), deployment(1, nil), 0, 4},
		{"changed while it is prepared", func(k *Definition[appsv1.Deployment, *appsv1.Deployment]) {
			k.Prepare = func(_ context.Context, obj, _ *appsv1.Deployment) { obj.Spec.Paused = true }
		}, deployment(1, nil), deployment(1, nil), 0, 4},
	} {
		k := deployments()
		if c.change != nil {
			c.change(&k)
		}
		var old api.Object
		if c.old != nil {
			old = c.old
		}
		k.Strategy().Prepare(t.Context(), c.obj, old)
		if c.obj.Status.Replicas != c.status || c.obj.Generation != c.generation {
			t.Errorf("%s: status %d and generation %d, want %d and %d", c.name, c.obj.Status.Replicas, c.obj.Generation, c.status, c.generation)
		}
	}
}

// TestStatusWritesChangeStatusAndMetadata: nothing else, and metadata only if the kind
// lets them.
func TestStatusWritesChangeStatusAndMetadata(t *testing.T) {
	t.Parallel()
	for _, kept := range []bool{false, true} {
		k := deployments()
		k.Metadata.KeepMetadataInStatus = kept
		k.Defaults = func(d *appsv1.Deployment) { d.Spec.MinReadySeconds = 5 }
		k.PrepareStatus = func(_ context.Context, obj, old *appsv1.Deployment) {
			obj.Status.ReadyReplicas = old.Status.Replicas + obj.Status.Replicas
		}
		strategy := k.Resource().Versions[0].Subresources[0].Strategy
		now := metav1.Now()
		obj := deployment(7, func(d *appsv1.Deployment) {
			d.Generation, d.Status.Replicas, d.DeletionTimestamp = 99, 2, &now
			d.Labels, d.Annotations, d.Finalizers = map[string]string{"a": "b"}, map[string]string{"c": "d"}, []string{"example.com/f"}
			d.OwnerReferences = []metav1.OwnerReference{{Name: "o"}}
		})
		strategy.Prepare(t.Context(), obj, deployment(1, func(d *appsv1.Deployment) { d.Status.Replicas = 1 }))
		if *obj.Spec.Replicas != 1 || obj.Generation != 3 || obj.Status.Replicas != 2 || obj.Status.ReadyReplicas != 3 || obj.Spec.MinReadySeconds != 5 {
			t.Errorf("a write of the status gives %+v, generation %d, status %+v", obj.Spec, obj.Generation, obj.Status)
		}
		metadata := len(obj.Labels) + len(obj.Annotations) + len(obj.Finalizers) + len(obj.OwnerReferences)
		if kept != (metadata == 0) || kept != (obj.DeletionTimestamp == nil) {
			t.Errorf("kept: %v, metadata is %+v", kept, obj.ObjectMeta)
		}
	}
}

func TestDefaultRoundsQuantitiesOfCoreKindsAndSetsDefaults(t *testing.T) {
	t.Parallel()
	for group, want := range map[string]string{"": "1001m", "apps": "1001m", "batch": "1001m", "example.com": "1000100u"} {
		k := Definition[corev1.Pod, *corev1.Pod]{Group: group, Version: "v1", Plural: "pods", Defaults: func(p *corev1.Pod) { OrDefault(&p.Spec.SchedulerName, "default") }}
		pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("1.0001")}},
		}}}}
		if unknown, err := k.Strategy().Default(pod); len(unknown) > 0 || err != nil {
			t.Errorf("unknown fields are %v: %v", unknown, err)
		}
		if got := pod.Spec.Containers[0].Resources.Limits.Cpu().String(); got != want || pod.Spec.SchedulerName != "default" {
			t.Errorf("group %q: 1.0001 becomes %s, want %s; the scheduler is %q", group, got, want, pod.Spec.SchedulerName)
		}
	}
}

func TestValidateNamesErrorsOfMetadataAsOftenAsKubernetes(t *testing.T) {
	t.Parallel()
	const bad = "metadata.finalizers[0]"
	usual, again, once := api.MetadataErrors{}, api.MetadataErrors{RepeatCreation: true}, api.MetadataErrors{Once: true}
	rule := func(obj, old *appsv1.Deployment) field.ErrorList {
		return field.ErrorList{field.Invalid(field.NewPath("spec"), obj.Name, fmt.Sprint("old: ", old != nil))}
	}
	for _, c := range []struct {
		name                     string
		metadata                 Metadata
		creation, update, status int // how often the finalizer is refused
		listed, statusListed     api.MetadataErrors
	}{
		{"usual", Metadata{}, 1, 1, 1, usual, usual},
		{"again", Metadata{RepeatCreationErrors: true}, 1, 2, 1, again, usual},
		{"status again", Metadata{RepeatStatusCreationErrors: true}, 1, 1, 2, usual, again},
		{"unchecked", Metadata{ErrorsOnce: true}, 0, 0, 1, once, usual},
		{"status unchecked", Metadata{StatusErrorsOnce: true}, 1, 1, 0, usual, once},
		{"any finalizer", Metadata{AnyFinalizer: true}, 0, 0, 0, usual, usual},
	} {
		k := deployments()
		k.Metadata, k.Validate, k.ValidateStatus = c.metadata, rule, rule
		version := k.Resource().Versions[0]
		object, status := version.Strategy, version.Subresources[0]
		obj := deployment(1, func(d *appsv1.Deployment) { d.Finalizers = []string{"plain"} })
		old := deployment(1, nil)
		for _, at := range []struct {
			name string
			errs field.ErrorList
			want int
			old  bool
		}{
			{"creation", object.Validate(t.Context(), obj, nil), c.creation, false},
			{"update", object.Validate(t.Context(), obj, old), c.update, true},
			{"status", status.Strategy.Validate(t.Context(), obj, old), c.status, true},
		} {
			refused := 0
			for _, err := range at.errs {
				if err.Field == bad {
					refused++
				}
			}
			last := at.errs[len(at.errs)-1]
			if refused != at.want || last.Detail != fmt.Sprint("old: ", at.old) {
				t.Errorf("%s, %s: refused %d times, want %d; the rule of the kind says %v", c.name, at.name, refused, at.want, last)
			}
		}
		if version.MetadataErrors != c.listed || status.MetadataErrors != c.statusListed {
			t.Errorf("%s: errors of metadata are listed as %+v, those of the status as %+v; want %+v and %+v",
				c.name, version.MetadataErrors, status.MetadataErrors, c.listed, c.statusListed)
		}
	}
	k := deployments()
	if errs := k.Strategy().Validate(t.Context(), deployment(1, nil), nil); len(errs) > 0 {
		t.Errorf("without rules: %v", errs)
	}
}

func TestWarningsAreThoseOfTheWrittenPart(t *testing.T) {
	t.Parallel()
	k := deployments()
	status := func() api.Strategy { return k.Resource().Versions[0].Subresources[0].Strategy }
	old := deployment(1, nil)
	if got := append(k.Strategy().Warnings(t.Context(), old, nil), status().Warnings(t.Context(), old, old)...); got != nil {
		t.Errorf("without warnings: %v", got)
	}
	k.Warnings = func(_, old *appsv1.Deployment) []string { return []string{fmt.Sprint("object, old: ", old != nil)} }
	k.StatusWarnings = func(_, old *appsv1.Deployment) []string { return []string{fmt.Sprint("status, old: ", old != nil)} }
	got := append(k.Strategy().Warnings(t.Context(), old, nil), k.Strategy().Warnings(t.Context(), old, old)...)
	got = append(got, status().Warnings(t.Context(), old, old)...)
	if want := "object, old: false; object, old: true; status, old: true"; strings.Join(got, "; ") != want {
		t.Errorf("warnings are %q, want %q", got, want)
	}
}

func TestJoinedConvertsCopies(t *testing.T) {
	t.Parallel()
	other := deployments()
	other.Version = "v2"
	failure := error(nil)
	r := Joined(deployments().Resource(), other.Resource(), func(obj api.Object, version string) (api.Object, error) {
		obj.SetName(obj.GetName() + "-" + version)
		return obj, failure
	})
	if len(r.Versions) != 2 || r.Versions[1].Name != "v2" {
		t.Fatalf("versions are %v", r.Versions)
	}
	a, b := deployment(1, nil), deployment(2, nil)
	out, err := r.Convert(t.Context(), []api.Object{a, b}, "v2")
	if err != nil || len(out) != 2 || out[0].GetName() != "web-v2" || *out[1].(*appsv1.Deployment).Spec.Replicas != 2 || a.Name != "web" {
		t.Errorf("converted to %v: %v; the original is %s", out, err, a.Name)
	}
	failure = errors.New("no")
	if _, err := r.Convert(t.Context(), []api.Object{a}, "v2"); !errors.Is(err, failure) {
		t.Errorf("the error is %v", err)
	}
}

// TestOwnershipLeavesOutWhatAWriteDoesNotSet: status for writes of the object, spec for
// writes of the status, and the fields in Unowned for both.
func TestOwnershipLeavesOutWhatAWriteDoesNotSet(t *testing.T) {
	t.Parallel()
	// owned returns the fields below the root that a first update owns.
	owned := func(k Definition[appsv1.Deployment, *appsv1.Deployment], subresource string) []string {
		t.Helper()
		v := k.Resource().Versions[0]
		tracker := v.FieldManager
		if subresource != "" {
			tracker = v.Subresources[0].FieldManager
		}
		obj := deployment(1, func(d *appsv1.Deployment) {
			d.APIVersion, d.Kind, d.Status.Replicas, d.Labels = "apps/v1", "Deployment", 1, map[string]string{"a": "b"}
		})
		out, err := tracker.Update(t.Context(), &appsv1.Deployment{TypeMeta: obj.TypeMeta, ObjectMeta: metav1.ObjectMeta{Name: "web"}}, obj, "test")
		if err != nil {
			t.Fatal(err)
		}
		names := map[string]bool{}
		for _, entry := range out.GetManagedFields() {
			for name := range map[string]string{"f:spec": "", "f:status": "", "f:metadata": ""} {
				if strings.Contains(string(entry.FieldsV1.GetRawBytes()), name) {
					names[name] = true
				}
			}
		}
		return slices.Sorted(maps.Keys(names))
	}
	statusKept, unowned, plain := deployments(), deployments(), deployments()
	statusKept.Metadata.KeepMetadataInStatus = true
	unowned.Unowned = []string{"spec"}
	plain.Status = false
	for _, c := range []struct {
		name, subresource string
		kind              Definition[appsv1.Deployment, *appsv1.Deployment]
		want              []string
	}{
		{"the object", "", deployments(), []string{"f:metadata", "f:spec"}},
		{"the status", "status", deployments(), []string{"f:metadata", "f:status"}},
		{"the status, whose metadata is kept", "status", statusKept, []string{"f:status"}},
		{"the object, whose spec is not owned", "", unowned, []string{"f:metadata"}},
		{"a kind without a status", "", plain, []string{"f:metadata", "f:spec", "f:status"}},
	} {
		if got := owned(c.kind, c.subresource); !slices.Equal(got, c.want) {
			t.Errorf("a write of %s owns %v, want %v", c.name, got, c.want)
		}
	}
}

func TestPathSegmentRefusesNamesThatDoNotFitIntoAPath(t *testing.T) {
	t.Parallel()
	for name, valid := range map[string]bool{"system:node": true, "a.b": true, "a/b": false, "..": false, "a%b": false} {
		if errs := PathSegment(name, false); (len(errs) == 0) != valid {
			t.Errorf("%q: %v", name, errs)
		}
	}
}
