// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/yaml"

	"github.com/steer-dev/steer/apiserver/internal/doc"
)

var widgetV1 = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}

const widgetSchema = `
type: object
properties:
  apiVersion: {type: string}
  kind: {type: string}
  metadata: {type: object}
  spec:
    type: object
    properties:
      replicas: {type: integer}
      colour: {type: string, default: grey}
      tags: {type: array, items: {type: string}, x-kubernetes-list-type: set}
      plain: {type: array, items: {type: string}}
      ports:
        type: array
        x-kubernetes-list-type: map
        x-kubernetes-list-map-keys: [name]
        items: {type: object, properties: {name: {type: string}, port: {type: integer}, note: {type: string}}}
      free: {type: object, x-kubernetes-preserve-unknown-fields: true}
      template: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}
  status:
    type: object
    properties:
      ready: {type: integer}
`

func widgetTypes(t testing.TB) *Types {
	t.Helper()
	s := &spec.Schema{}
	raw, err := yaml.YAMLToJSON([]byte(widgetSchema))
	if err == nil {
		err = json.Unmarshal(raw, s)
	}
	if err != nil {
		t.Fatal(err)
	}
	return FromOpenAPI(func() map[string]*spec.Schema {
		return map[string]*spec.Schema{"com.example.v1.Widget": Kind(widgetV1, s), ObjectMetaName: ObjectMeta()}
	})
}

// endpoints returns the managers of the object and of its status.
func endpoints(t testing.TB) (main, status *FieldManager) {
	types := widgetTypes(t)
	paths := func(names ...string) map[string]*fieldpath.Set {
		set := fieldpath.NewSet()
		for _, name := range names {
			set.Insert(fieldpath.MakePathOrDie(name))
		}
		return map[string]*fieldpath.Set{"example.com/v1": set}
	}
	main = New(Endpoint{Kind: widgetV1, Types: types, Resets: paths("status")})
	status = New(Endpoint{Kind: widgetV1, Types: types, Subresource: "status", Resets: paths("metadata", "spec")})
	return main, status
}

func widget(t testing.TB, body string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{}}
	if err := yaml.Unmarshal([]byte(body), &u.Object); err != nil {
		t.Fatal(err)
	}
	if u.Object == nil {
		u.Object = map[string]any{}
	}
	u.SetGroupVersionKind(widgetV1)
	if u.GetName() == "" {
		u.SetName("w")
	}
	return u
}

func empty() *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(widgetV1)
	return u
}

// record prints managedFields one entry per line, without times.
func record(obj Object) string {
	var out []string
	for _, e := range obj.GetManagedFields() {
		line := fmt.Sprintf("%s %s %s %s", e.Manager, e.Operation, e.APIVersion, e.FieldsV1)
		if e.Subresource != "" {
			line += " " + e.Subresource
		}
		out = append(out, line)
	}
	return strings.Join(out, "\n")
}

func stored(obj Object) *unstructured.Unstructured {
	u := decoded(obj.DeepCopyObject().(Object)).(*unstructured.Unstructured)
	u.SetUID("1")
	return u
}

// underWay returns an object as managers get it from the server.
func underWay(obj *unstructured.Unstructured) *doc.Doc { return doc.New(obj.DeepCopy().Object) }

func mustApply(t testing.TB, m *FieldManager, live *unstructured.Unstructured, body, manager string, force bool) *unstructured.Unstructured {
	t.Helper()
	out, err := m.Apply(t.Context(), underWay(live), underWay(widget(t, body)), manager, force)
	if err != nil {
		t.Fatal(err)
	}
	return stored(out)
}

func mustUpdate(t testing.TB, m *FieldManager, live, obj *unstructured.Unstructured, manager string) *unstructured.Unstructured {
	t.Helper()
	out, err := m.Update(t.Context(), underWay(live), underWay(obj), manager)
	if err != nil {
		t.Fatal(err)
	}
	return stored(out)
}

func TestCreateIsAttributedToItsManager(t *testing.T) {
	t.Parallel()
	m, _ := endpoints(t)
	obj := mustUpdate(t, m, empty(), widget(t, `
metadata: {labels: {a: b}, finalizers: [example.com/x]}
spec: {replicas: 1, tags: [x], plain: [z], ports: [{name: http, port: 80}]}
status: {ready: 1}`), "curl")
	want := `curl Update example.com/v1 {"f:metadata":{"f:finalizers":{".":{},"v:\"example.com/x\"":{}},"f:labels":{".":{},"f:a":{}}},` +
		`"f:spec":{".":{},"f:plain":{},"f:ports":{".":{},"k:{\"name\":\"http\"}":{".":{},"f:name":{},"f:port":{}}},"f:replicas":{},"f:tags":{".":{},"v:\"x\"":{}}}}`
	if diff := cmp.Diff(want, record(obj)); diff != "" {
		t.Errorf("record (-want +got):\n%s", diff)
	}
}

func TestConflictsAndForce(t *testing.T) {
	t.Parallel()
	m, _ := endpoints(t)
	live := mustApply(t, m, empty(), `spec: {replicas: 1, colour: red}`, "alice", false)
	live = mustApply(t, m, live, `spec: {replicas: 1}`, "bob", false) // equal values are shared

	_, err := m.Apply(t.Context(), live, underWay(widget(t, `spec: {replicas: 2, colour: blue}`)), "carol", false)
	var status *apierrors.StatusError
	if !apierrors.IsConflict(err) || !asStatus(err, &status) {
		t.Fatalf("error %v, want a conflict", err)
	}
	wantMessage := "Apply failed with 3 conflicts: conflicts with \"alice\":\n- .spec.colour\n- .spec.replicas\nconflicts with \"bob\":\n- .spec.replicas"
	if diff := cmp.Diff(wantMessage, status.ErrStatus.Message); diff != "" {
		t.Errorf("message (-want +got):\n%s", diff)
	}
	for _, cause := range status.ErrStatus.Details.Causes {
		if cause.Type != metav1.CauseTypeFieldManagerConflict {
			t.Errorf("cause %+v, want type FieldManagerConflict", cause)
		}
	}

	live = mustApply(t, m, live, `spec: {replicas: 2, colour: blue}`, "carol", true)
	if diff := cmp.Diff(`carol Apply example.com/v1 {"f:spec":{"f:colour":{},"f:replicas":{}}}`, record(live)); diff != "" {
		t.Errorf("record (-want +got):\n%s", diff)
	}
}

func TestFieldsThatTheirSoleApplierDropsAreRemoved(t *testing.T) {
	t.Parallel()
	m, _ := endpoints(t)
	live := mustApply(t, m, empty(), `spec: {replicas: 1, colour: red, ports: [{name: a, port: 1}, {name: b, port: 2}], tags: [x, z]}`, "alice", false)
	live = mustApply(t, m, live, `spec: {ports: [{name: b, note: mine}], tags: [z]}`, "bob", false)
	live = mustApply(t, m, live, `spec: {replicas: 1}`, "alice", false)
	want := widget(t, `spec: {replicas: 1, ports: [{name: b, note: mine}], tags: [z]}`).Object["spec"]
	if diff := cmp.Diff(want, live.Object["spec"]); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
}

func TestSubresourcesOwnWhatTheyCanWrite(t *testing.T) {
	t.Parallel()
	m, status := endpoints(t)
	live := mustApply(t, m, empty(), `{spec: {replicas: 1}, status: {ready: 7}}`, "alice", false)
	next := widget(t, `{spec: {replicas: 9}, status: {ready: 1}}`)
	next.SetManagedFields(nil)
	live = mustUpdate(t, status, live, next, "controller")
	want := "alice Apply example.com/v1 {\"f:spec\":{\"f:replicas\":{}}}\n" +
		"controller Update example.com/v1 {\"f:status\":{\"f:ready\":{}}} status"
	if diff := cmp.Diff(want, record(live)); diff != "" {
		t.Errorf("record (-want +got):\n%s", diff)
	}
}

func TestRefusedConfigurations(t *testing.T) {
	t.Parallel()
	m, _ := endpoints(t)
	withRecord := widget(t, "")
	withRecord.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "x"}})
	if _, err := m.Apply(t.Context(), empty(), underWay(withRecord), "a", false); !apierrors.IsBadRequest(err) || err.Error() != "metadata.managedFields must be nil" {
		t.Errorf("error %v, want a bad request about managedFields", err)
	}
	other := widget(t, "")
	other.SetKind("Gadget")
	if _, err := m.Apply(t.Context(), empty(), underWay(other), "a", false); !apierrors.IsBadRequest(err) || err.Error() != "invalid object type: example.com/v1, Kind=Gadget" {
		t.Errorf("error %v, want a bad request about the kind", err)
	}
	if _, err := m.Apply(t.Context(), empty(), underWay(widget(t, `spec: {nope: 1}`)), "a", false); err == nil || !strings.Contains(err.Error(), ".spec.nope: field not declared in schema") {
		t.Errorf("error %v, want one about the undeclared field", err)
	}
}

func TestObjectsThatDoNotFitTheSchemaHaveNoManagedFields(t *testing.T) {
	t.Parallel()
	m, _ := endpoints(t)
	obj := mustUpdate(t, m, empty(), widget(t, `spec: many`), "a")
	if got := obj.GetManagedFields(); got != nil {
		t.Errorf("record %v, want none", got)
	}
}

func TestApplyThatChangesNothingIsANoOp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, _ := endpoints(t)
		live := mustApply(t, m, empty(), `spec: {replicas: 1}`, "alice", false)
		time.Sleep(time.Hour)
		again := mustApply(t, m, live, `spec: {replicas: 1}`, "alice", false)
		if diff := cmp.Diff(live, again); diff != "" {
			t.Errorf("second apply (-first +second):\n%s", diff)
		}
	})
}

func TestUpdateThatChangesOnlyTimesIsUndone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, _ := endpoints(t)
		live := mustUpdate(t, m, empty(), widget(t, `spec: {replicas: 1}`), "a")
		time.Sleep(time.Hour)
		next := widget(t, `spec: {replicas: 1}`)
		next.SetUID("1")
		entries := live.GetManagedFields()
		now := metav1.Now()
		entries[0].Time = &now
		next.SetManagedFields(entries)
		before, after := underWay(live), underWay(next)
		KeepTimes(before, after)
		if diff := cmp.Diff(before.Content(), after.Content()); diff != "" {
			t.Errorf("object (-live +next):\n%s", diff)
		}
		after.SetManagedFields(entries)
		after.SetLabels(map[string]string{"a": "b"})
		KeepTimes(before, after)
		if after.GetManagedFields()[0].Time.Equal(live.GetManagedFields()[0].Time) {
			t.Error("the time of a real change was lost")
		}
	})
}

func TestUpdatersBeyondTenAreFolded(t *testing.T) {
	t.Parallel()
	m, _ := endpoints(t)
	live := mustUpdate(t, m, empty(), widget(t, `metadata: {labels: {m0: a}}`), "m0")
	for i := range 12 {
		next := live.DeepCopy()
		next.SetLabels(map[string]string{fmt.Sprintf("m%d", i): "x"})
		for k, v := range live.GetLabels() {
			next.Object["metadata"].(map[string]any)["labels"].(map[string]any)[k] = v
		}
		live = mustUpdate(t, m, live, next, fmt.Sprintf("m%d", i))
	}
	if got := record(live); !strings.Contains(got, "ancient-changes") || strings.Count(got, "\n") != 9 {
		t.Errorf("record:\n%s\nwant ten entries, ancient-changes among them", got)
	}
}

func TestUntrackedObjectsGetManagedFieldsAtTheirFirstApply(t *testing.T) {
	t.Parallel()
	m, _ := endpoints(t)
	live := stored(widget(t, `spec: {colour: red}`))
	live = mustApply(t, m, live, `spec: {replicas: 1}`, "alice", false)
	want := "alice Apply example.com/v1 {\"f:spec\":{\"f:replicas\":{}}}\n" +
		"before-first-apply Update example.com/v1 {\"f:spec\":{\".\":{},\"f:colour\":{}}}"
	if diff := cmp.Diff(want, record(live)); diff != "" {
		t.Errorf("record (-want +got):\n%s", diff)
	}
}

func TestEntriesOfUnknownVersionsAreDropped(t *testing.T) {
	t.Parallel()
	types := widgetTypes(t)
	m := New(Endpoint{Kind: widgetV1, Types: types})
	live := mustApply(t, m, empty(), `spec: {replicas: 1}`, "alice", false)
	entries := live.GetManagedFields()
	entries[0].APIVersion = "example.com/v0"
	live.SetManagedFields(entries)
	live = mustApply(t, m, live, `spec: {colour: red}`, "bob", false)
	if diff := cmp.Diff(`bob Apply example.com/v1 {"f:spec":{"f:colour":{}}}`, record(live)); diff != "" {
		t.Errorf("record (-want +got):\n%s", diff)
	}
}

func TestDeducedTypes(t *testing.T) {
	t.Parallel()
	m := New(Endpoint{Kind: widgetV1, Types: Deduced()})
	live := mustApply(t, m, empty(), `spec: {a: {b: [1, 2]}}`, "alice", false)
	if diff := cmp.Diff(`alice Apply example.com/v1 {"f:spec":{".":{},"f:a":{".":{},"f:b":{}}}}`, record(live)); diff != "" {
		t.Errorf("record (-want +got):\n%s", diff)
	}
}

func TestTypedObjects(t *testing.T) {
	t.Parallel()
	kind := corev1.SchemeGroupVersion.WithKind("ConfigMap")
	s := &spec.Schema{}
	s.Typed("object", "").SetProperty("data", *spec.MapProperty(spec.StringProperty()))
	m := New(Endpoint{
		Kind: kind,
		Types: FromOpenAPI(func() map[string]*spec.Schema {
			return map[string]*spec.Schema{"ConfigMap": Kind(kind, s), ObjectMetaName: ObjectMeta()}
		}),
		New: func() Object { return &corev1.ConfigMap{} },
	})
	created, err := m.Update(t.Context(), &corev1.ConfigMap{}, &corev1.ConfigMap{Data: map[string]string{"a": "1"}}, "alice")
	if err != nil {
		t.Fatal(err)
	}
	configuration := &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{"b": "2"}}}
	configuration.SetGroupVersionKind(kind)
	applied, err := m.Apply(t.Context(), created, underWay(configuration), "bob", false)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"a": "1", "b": "2"}, applied.(*corev1.ConfigMap).Data); diff != "" {
		t.Errorf("data (-want +got):\n%s", diff)
	}
	want := "bob Apply v1 {\"f:data\":{\"f:b\":{}}}\nalice Update v1 {\"f:data\":{\".\":{},\"f:a\":{}}}"
	if diff := cmp.Diff(want, record(applied)); diff != "" {
		t.Errorf("record (-want +got):\n%s", diff)
	}
}

// TestApplyCreatesTypedObjects starts from an empty object whose encoding has fields.
func TestApplyCreatesTypedObjects(t *testing.T) {
	t.Parallel()
	kind := corev1.SchemeGroupVersion.WithKind("ReplicationController")
	s := new(spec.Schema).Typed("object", "").
		SetProperty("spec", *new(spec.Schema).Typed("object", "").SetProperty("replicas", *spec.Int32Property())).
		SetProperty("status", *new(spec.Schema).Typed("object", "").SetProperty("replicas", *spec.Int32Property()))
	m := New(Endpoint{
		Kind: kind, New: func() Object { return &corev1.ReplicationController{} },
		Types: FromOpenAPI(func() map[string]*spec.Schema {
			return map[string]*spec.Schema{"RC": Kind(kind, s), ObjectMetaName: ObjectMeta()}
		}),
	})
	configuration := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"replicas": int64(3)}}}
	configuration.SetGroupVersionKind(kind)
	applied, err := m.Apply(t.Context(), &corev1.ReplicationController{}, underWay(configuration), "bob", false)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("bob Apply v1 {\"f:spec\":{\"f:replicas\":{}}}", record(applied)); diff != "" {
		t.Errorf("record (-want +got):\n%s", diff)
	}
}

func TestManagerNames(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ option, agent, want string }{
		{"mine", "curl/8", "mine"},
		{"", "kubectl/v1.36 (linux)", "kubectl"},
		{"", "a\x00b\tc/1", "abc"},
		{"", strings.Repeat("ä", 100), strings.Repeat("ä", 64)},
		{"", "", ""},
	} {
		if got := ManagerName(test.option, test.agent); got != test.want {
			t.Errorf("ManagerName(%q, %q) = %q, want %q", test.option, test.agent, got, test.want)
		}
	}
}

func TestManagedFieldsThatCannotBeParsedAreRestored(t *testing.T) {
	t.Parallel()
	obj := widget(t, "")
	obj.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "x", Operation: "Nonsense"}})
	warning := Restore(obj, []metav1.ManagedFieldsEntry{{Manager: "before"}})
	if got := obj.GetManagedFields()[0].Manager; got != "before" || !strings.Contains(warning, "invalid state after admission") {
		t.Errorf("manager %q, warning %q", got, warning)
	}
}

func asStatus(err error, out **apierrors.StatusError) bool {
	return errors.As(err, out)
}
