// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package custom_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/steer-dev/steer/apiserver"
	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/apiserver/custom"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/storage"
)

// machines has two versions with different fields, and status and scale.
const machines = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: machines.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Machine, plural: machines}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}, scale: {specReplicasPath: .spec.cores, statusReplicasPath: .status.cores}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              cores: {type: integer, minimum: 0}
              image: {type: string}
              extra: {type: object, x-kubernetes-preserve-unknown-fields: true}
          status:
            type: object
            properties: {phase: {type: string}, cores: {type: integer}}
  - name: v1beta1
    served: true
    storage: false
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          size: {type: string, enum: [small, large]}
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
`

type machine struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec struct {
		Cores int32  `json:"cores"`
		Image string `json:"image"`
	} `json:"spec"`
	Status struct {
		Phase string `json:"phase,omitempty"`
		Cores int32  `json:"cores,omitempty"`
	} `json:"status,omitzero"`
}

func (m *machine) DeepCopyObject() runtime.Object {
	out := *m
	m.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	return &out
}

type oldMachine struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Size string `json:"size,omitempty"`
}

func (m *oldMachine) DeepCopyObject() runtime.Object {
	out := *m
	m.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	return &out
}

func machineKind() custom.Kind[*machine] {
	return custom.Kind[*machine]{
		Definition: []byte(machines),
		Rules: custom.Rules[*machine]{
			Default: func(m *machine) {
				if m.Spec.Image == "" {
					m.Spec.Image = "default"
				}
			},
			Prepare: func(_ context.Context, m, old *machine) {
				if old == nil {
					m.Status.Phase = "Pending"
				} else {
					m.Spec.Image = old.Spec.Image // immutable
				}
			},
			PrepareStatus: func(_ context.Context, m, _ *machine) { m.Status.Cores = m.Spec.Cores },
			Validate: func(_ context.Context, m, _ *machine) field.ErrorList {
				if m.Spec.Cores > 64 {
					return field.ErrorList{field.Invalid(field.NewPath("spec", "cores"), m.Spec.Cores, "no machine has that many")}
				}
				return nil
			},
			ValidateStatus: func(_ context.Context, m, old *machine) field.ErrorList {
				if old.Status.Phase == "Gone" {
					return field.ErrorList{field.Forbidden(field.NewPath("status", "phase"), "the machine is gone")}
				}
				return nil
			},
			Warnings: func(_ context.Context, m, _ *machine) []string {
				if m.Spec.Cores == 0 {
					return []string{"a machine without cores does nothing"}
				}
				return nil
			},
		},
		Versions: []custom.Version[*machine]{custom.Spoke("v1beta1",
			func(old *oldMachine) (*machine, error) {
				m := &machine{}
				m.Spec.Cores = map[string]int32{"small": 1, "large": 32}[old.Size]
				return m, nil
			},
			func(m *machine) (*oldMachine, error) {
				if m.Spec.Cores > 4 {
					return &oldMachine{Size: "large"}, nil
				}
				return &oldMachine{Size: "small"}, nil
			},
		)},
	}
}

// client sends requests to a server of machines.
type client struct {
	t      *testing.T
	server *apiserver.Server
}

func serve[T resource.Object](t *testing.T, store storage.Store, kinds ...custom.Kind[T]) client {
	t.Helper()
	server, err := apiserver.New(apiserver.Options{Store: store, Authorizer: auth.AllowAll{}})
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range kinds {
		r, err := k.Resource()
		if err != nil {
			t.Fatal(err)
		}
		if err := server.Install(r); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		if err := server.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return client{t, server}
}

// do sends a request for machines and returns the status and the answer without what
// differs between runs.
func (c client) do(method, version, path, body string, want int) *unstructured.Unstructured {
	c.t.Helper()
	r, err := http.NewRequestWithContext(c.t.Context(), method, "https://in-process/apis/example.com/"+version+"/namespaces/default/machines"+path, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	if method == http.MethodPatch {
		r.Header.Set("Content-Type", "application/merge-patch+json")
	}
	answer, err := c.server.RoundTripper(&auth.User{Name: "ann"}).RoundTrip(r)
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	if answer.StatusCode != want {
		c.t.Fatalf("%s %s: %d, want %d: %s", method, path, answer.StatusCode, want, text)
	}
	out := &unstructured.Unstructured{}
	if err := out.UnmarshalJSON(text); err != nil {
		c.t.Fatalf("%s: %v", text, err)
	}
	if w := answer.Header.Get("Warning"); w != "" {
		out.SetAnnotations(map[string]string{"warning": w})
	}
	return out
}

func newStore(t *testing.T) storage.Store {
	t.Helper()
	store := storage.NewMemory(storage.MemoryOptions{})
	t.Cleanup(func() { _ = store.Close() })
	return store
}

func (c client) same(obj *unstructured.Unstructured, field, want string) {
	c.t.Helper()
	var wanted any
	if err := json.Unmarshal([]byte(want), &wanted); err != nil {
		c.t.Fatal(err)
	}
	encoded, err := json.Marshal(obj.Object[field])
	if err != nil {
		c.t.Fatal(err)
	}
	var got any
	if err := json.Unmarshal(encoded, &got); err != nil {
		c.t.Fatal(err)
	}
	if diff := cmp.Diff(wanted, got); diff != "" {
		c.t.Errorf("%s (-want +got):\n%s", field, diff)
	}
}

func TestKindRulesChangeOnlyWhatTheyMean(t *testing.T) {
	t.Parallel()
	c := serve(t, newStore(t), machineKind())
	obj := c.do("POST", "v1", "", `{"apiVersion":"example.com/v1","kind":"Machine","metadata":{"name":"a"},"spec":{"cores":2,"extra":{"any":[1]}},"status":{"phase":"Running"}}`, 201)
	c.same(obj, "spec", `{"cores":2,"extra":{"any":[1]},"image":"default"}`)
	c.same(obj, "status", `{"phase":"Pending"}`)

	obj = c.do("PATCH", "v1", "/a", `{"spec":{"image":"other"}}`, 200)
	c.same(obj, "spec", `{"cores":2,"extra":{"any":[1]},"image":"default"}`)
	if obj.GetGeneration() != 1 {
		t.Errorf("generation %d after a write that Prepare has undone, want 1", obj.GetGeneration())
	}

	bare := c.do("POST", "v1", "", `{"apiVersion":"example.com/v1","kind":"Machine","metadata":{"name":"bare"}}`, 201)
	c.same(bare, "spec", `{"image":"default"}`)
	if !strings.Contains(bare.GetAnnotations()["warning"], "a machine without cores does nothing") {
		t.Errorf("warnings: %q", bare.GetAnnotations())
	}
}

func TestKindRulesRunAfterTheSchema(t *testing.T) {
	t.Parallel()
	c := serve(t, newStore(t), machineKind())
	const create = `{"apiVersion":"example.com/v1","kind":"Machine","metadata":{"name":"a"},"spec":{"cores":`
	for body, want := range map[string]string{
		create + `100}}`: "spec.cores: Invalid value: 100: no machine has that many",
		create + `-1}}`:  "spec.cores: Invalid value: -1: spec.cores in body should be greater than or equal to 0",
		create + `"x"}}`: `spec.cores: Invalid value: "string": spec.cores in body must be of type integer: "string"`,
	} {
		refusal := c.do("POST", "v1", "", body, 422)
		if message, _, _ := unstructured.NestedString(refusal.Object, "message"); !strings.Contains(message, want) {
			t.Errorf("%s: %s, want %s", body, message, want)
		}
	}
}

func TestKindRulesAreNotSkippedForWhatTheGoTypeDoesNotAccept(t *testing.T) {
	t.Parallel()
	wide := strings.NewReplacer("cores: {type: integer, minimum: 0}", "cores: {x-kubernetes-int-or-string: true}", ", scale: {specReplicasPath: .spec.cores, statusReplicasPath: .status.cores}", "").Replace(machines)
	const body = `{"apiVersion":"example.com/v1","kind":"Machine","metadata":{"name":"a"},"spec":{"cores":"two"}}`
	for name, rules := range map[string]custom.Rules[*machine]{
		"Default": {Default: func(*machine) {}},
		"Prepare": {Prepare: func(context.Context, *machine, *machine) {}},
	} {
		k := machineKind()
		k.Definition, k.Rules = []byte(wide), custom.Rules[*machine]{}
		store := newStore(t)
		serve(t, store, k).do("POST", "v1", "", body, 201)
		k.Rules = rules
		c := serve(t, store, k)
		c.do("POST", "v1", "", strings.Replace(body, `"a"`, `"b"`, 1), 422)
		if refusal := c.do("PATCH", "v1", "/a", `{"spec":{"cores":2}}`, 422); !strings.Contains(refusal.Object["message"].(string), "decode the stored object") {
			t.Errorf("%s: %v", name, refusal.Object)
		}
	}
}

func TestKindRulesOfUnstructuredObjectsGetTheirContent(t *testing.T) {
	t.Parallel()
	u := func(obj *unstructured.Unstructured) int64 {
		cores, _, _ := unstructured.NestedInt64(obj.Object, "spec", "cores")
		return cores
	}
	c := serve(t, newStore(t), custom.Kind[*unstructured.Unstructured]{
		Definition: []byte(machines),
		Rules: custom.Rules[*unstructured.Unstructured]{
			Default: func(obj *unstructured.Unstructured) {
				if u(obj) == 0 {
					_ = unstructured.SetNestedField(obj.Object, int64(2), "spec", "cores")
				}
			},
			Prepare: func(_ context.Context, obj, old *unstructured.Unstructured) {
				if old != nil {
					obj.SetLabels(map[string]string{"was": fmt.Sprint(u(old))})
				}
			},
			Validate: func(_ context.Context, obj, _ *unstructured.Unstructured) field.ErrorList {
				if u(obj) > 64 {
					return field.ErrorList{field.Invalid(field.NewPath("spec", "cores"), u(obj), "no machine has that many")}
				}
				return nil
			},
		},
	})
	obj := c.do("POST", "v1", "", `{"apiVersion":"example.com/v1","kind":"Machine","metadata":{"name":"a"},"spec":{"image":"x"}}`, 201)
	c.same(obj, "spec", `{"cores":2,"image":"x"}`)
	obj = c.do("PATCH", "v1", "/a", `{"spec":{"cores":3}}`, 200)
	c.same(obj, "spec", `{"cores":3,"image":"x"}`)
	if obj.GetLabels()["was"] != "2" {
		t.Errorf("labels %v", obj.GetLabels())
	}
	c.do("PATCH", "v1", "/a", `{"spec":{"cores":65}}`, 422)
}

func TestKindRulesOfTheStatusHaveTheirOwnSubresource(t *testing.T) {
	t.Parallel()
	c := serve(t, newStore(t), machineKind())
	c.do("POST", "v1", "", `{"apiVersion":"example.com/v1","kind":"Machine","metadata":{"name":"a"},"spec":{"cores":2}}`, 201)
	obj := c.do("PATCH", "v1", "/a/status", `{"status":{"phase":"Gone"}}`, 200)
	c.same(obj, "status", `{"phase":"Gone","cores":2}`)
	c.do("PATCH", "v1", "/a/status", `{"status":{"phase":"Back"}}`, 422)
	scaled := c.do("PATCH", "v1", "/a/scale", `{"spec":{"replicas":4}}`, 200)
	c.same(scaled, "spec", `{"replicas":4}`)
	c.do("PATCH", "v1", "/a/scale", `{"spec":{"replicas":400}}`, 422)
}

func TestKindVersionsAreConvertedAndHaveTheSameRules(t *testing.T) {
	t.Parallel()
	c := serve(t, newStore(t), machineKind())
	old := c.do("POST", "v1beta1", "", `{"apiVersion":"example.com/v1beta1","kind":"Machine","metadata":{"name":"a","labels":{"x":"y"}},"size":"large"}`, 201)
	if old.Object["size"] != "large" || old.GetLabels()["x"] != "y" {
		t.Errorf("created: %v", old.Object)
	}
	obj := c.do("GET", "v1", "/a", "", 200)
	c.same(obj, "spec", `{"cores":32,"image":"default"}`)
	c.do("PATCH", "v1", "/a", `{"spec":{"cores":1}}`, 200)
	old = c.do("GET", "v1beta1", "/a", "", 200)
	if old.Object["size"] != "small" || old.GetUID() != obj.GetUID() {
		t.Errorf("converted: %v", old.Object)
	}
	c.do("POST", "v1beta1", "", `{"apiVersion":"example.com/v1beta1","kind":"Machine","metadata":{"name":"b"},"size":"huge"}`, 422)
	owned := false
	for _, entry := range old.GetManagedFields() {
		owned = owned || entry.APIVersion == "example.com/v1beta1"
	}
	if !owned {
		t.Errorf("managed fields of v1beta1 are lost: %v", old.GetManagedFields())
	}
}

func TestKindServesWhatAnOlderDefinitionStored(t *testing.T) {
	t.Parallel()
	store := newStore(t)
	k := machineKind()
	k.Rules = custom.Rules[*machine]{}
	c := serve(t, store, k)
	obj := c.do("POST", "v1", "", `{"apiVersion":"example.com/v1","kind":"Machine","metadata":{"name":"a"},"spec":{"cores":2}}`, 201)
	c.same(obj, "spec", `{"cores":2}`)
	c = serve(t, store, machineKind())
	obj = c.do("GET", "v1", "/a", "", 200)
	c.same(obj, "spec", `{"cores":2,"image":"default"}`)
}

// catalog is a backend whose objects are typed.
type catalog struct{ machines map[string]*machine }

func (b catalog) Get(_ context.Context, r *resource.Request) (resource.Object, error) {
	if m, ok := b.machines[r.Name]; ok {
		return m.DeepCopyObject().(resource.Object), nil
	}
	return nil, apierrors.NewNotFound(r.Resource.GroupResource(), r.Name)
}

func (b catalog) Create(_ context.Context, _ *resource.Request, obj resource.Object, _ *metav1.CreateOptions) (resource.Object, error) {
	m, err := custom.As[*machine](obj)
	if err != nil {
		return nil, err
	}
	m.Spec.Cores++
	b.machines[m.Name] = m
	return m, nil
}

func (b catalog) Update(ctx context.Context, r *resource.Request, change func(resource.Object) (resource.Object, error), _ *metav1.UpdateOptions) (resource.Object, error) {
	current, err := b.Get(ctx, r)
	if err != nil {
		return nil, err
	}
	obj, err := change(current)
	if err != nil {
		return nil, err
	}
	m, err := custom.As[*machine](obj)
	if err != nil {
		return nil, err
	}
	b.machines[m.Name] = m
	return m, nil
}

func TestKindBackendsWorkOnTheGoType(t *testing.T) {
	t.Parallel()
	k := machineKind()
	k.Backend = catalog{map[string]*machine{}}
	c := serve(t, newStore(t), k)
	obj := c.do("POST", "v1", "", `{"apiVersion":"example.com/v1","kind":"Machine","metadata":{"name":"a"},"spec":{"cores":2}}`, 201)
	c.same(obj, "spec", `{"cores":3,"image":"default"}`)
	obj = c.do("PATCH", "v1", "/a", `{"spec":{"cores":7}}`, 200)
	c.same(obj, "spec", `{"cores":7,"image":"default"}`)
	c.do("PATCH", "v1", "/a", `{"spec":{"cores":70}}`, 422)
	c.do("GET", "v1", "/b", "", 404)
	c.do("DELETE", "v1", "/a", "", 405)
}

func TestBackendsSeeOneVersionAndHaveStatusAndScale(t *testing.T) {
	t.Parallel()
	k, b := machineKind(), catalog{map[string]*machine{}}
	k.Backend = b
	c := serve(t, newStore(t), k)
	old := c.do("POST", "v1beta1", "", `{"apiVersion":"example.com/v1beta1","kind":"Machine","metadata":{"name":"a","labels":{"x":"y"}},"size":"large"}`, 201)
	if old.Object["size"] != "large" || old.GetAPIVersion() != "example.com/v1beta1" || old.GetLabels()["x"] != "y" {
		t.Errorf("created: %v", old.Object)
	}
	if m := b.machines["a"]; m.Spec.Cores != 33 || m.APIVersion != "example.com/v1" || m.UID != old.GetUID() {
		t.Errorf("the backend has %+v", m)
	}
	c.same(c.do("GET", "v1", "/a", "", 200), "spec", `{"cores":33,"image":"default"}`)
	c.same(c.do("PATCH", "v1beta1", "/a", `{"size":"small"}`, 200), "size", `"small"`)
	c.same(c.do("GET", "v1", "/a", "", 200), "spec", `{"cores":1,"image":"default"}`)

	c.same(c.do("PATCH", "v1", "/a/status", `{"metadata":{"labels":{"x":"z"}},"status":{"phase":"Running"}}`, 200), "status", `{"phase":"Running","cores":1}`)
	obj := c.do("PATCH", "v1", "/a", `{"spec":{"cores":0},"status":{"phase":"Other"}}`, 200)
	c.same(obj, "status", `{"phase":"Running","cores":1}`)
	if !strings.Contains(obj.GetAnnotations()["warning"], "a machine without cores does nothing") || obj.GetLabels()["x"] != "y" {
		t.Errorf("updated: %v", obj.Object["metadata"])
	}
	c.do("PATCH", "v1", "/a/status", `{"status":{"phase":"Gone"}}`, 200)
	c.do("PATCH", "v1", "/a/status", `{"status":{"phase":"Running"}}`, 422)

	c.same(c.do("PATCH", "v1", "/a/scale", `{"spec":{"replicas":4}}`, 200), "spec", `{"replicas":4}`)
	c.same(c.do("GET", "v1", "/a/scale", "", 200), "spec", `{"replicas":4}`)
	c.do("PATCH", "v1", "/a/scale", `{"spec":{"replicas":400}}`, 422)
	c.same(c.do("GET", "v1", "/a", "", 200), "spec", `{"cores":4,"image":"default"}`)
}

func TestActionsOnBackendsAreInTheirVersion(t *testing.T) {
	t.Parallel()
	k, b := growing(), catalog{map[string]*machine{}}
	k.Backend = b
	c := serve(t, newStore(t), k)
	c.do("POST", "v1", "", `{"apiVersion":"example.com/v1","kind":"Machine","metadata":{"name":"a"},"spec":{"cores":1}}`, 201)
	c.do("POST", "v1beta1", "/a/grow", `{"apiVersion":"example.com/v1","kind":"grow","cores":3}`, 201)
	if m := b.machines["a"]; m.Spec.Cores != 5 || m.Status.Phase != "Grown" || m.Generation != 2 {
		t.Errorf("the backend has %+v", m)
	}
	c.do("POST", "v1beta1", "/a/grow", `{"apiVersion":"example.com/v1","kind":"grow","cores":100}`, 422)
}

func TestUpdatesOfBackendsCannotChangeWhatTheServerSets(t *testing.T) {
	t.Parallel()
	k := machineKind()
	k.Backend = catalog{map[string]*machine{}}
	c := serve(t, newStore(t), k)
	made := c.do("POST", "v1", "", `{"apiVersion":"example.com/v1","kind":"Machine","metadata":{"name":"a"}}`, 201)
	for patch, want := range map[string]int{
		`{"metadata":{"creationTimestamp":"2000-01-01T00:00:00Z","generation":7}}`:                 200,
		`{"metadata":{"uid":"another"}}`:                                                           422,
		`{"metadata":{"deletionTimestamp":"2000-01-01T00:00:00Z"}}`:                                422,
		`{"metadata":{"labels":{"not valid":"x"}}}`:                                                422,
		`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"p"}]}}`:           422,
		`{"metadata":{"resourceVersion":"7"}}`:                                                     409,
		`{"metadata":{"finalizers":["not valid"]}}`:                                                422,
		`{"metadata":{"managedFields":[{"manager":"nobody","operation":"Update","fieldsV1":{}}]}}`: 200,
		`{"metadata":{"namespace":"elsewhere"}}`:                                                   400,
		`{"metadata":{"name":"b"}}`:                                                                400,
	} {
		c.do("PATCH", "v1", "/a", patch, want)
	}
	got := c.do("GET", "v1", "/a", "", 200)
	if got.GetUID() != made.GetUID() || got.GetCreationTimestamp() != made.GetCreationTimestamp() || got.GetGeneration() != 1 || got.GetDeletionTimestamp() != nil {
		t.Errorf("created %v, now %v", made.Object["metadata"], got.Object["metadata"])
	}
}

func TestKindRefusesWhatABackendCannotHave(t *testing.T) {
	t.Parallel()
	for want, edit := range map[string]func(*custom.Kind[*machine]){
		"Committed is not called with a Backend": func(k *custom.Kind[*machine]) {
			k.Committed = func(context.Context, resource.Change) error { return nil }
		},
		"Grace, Mark and Holds of Deletion have no effect":     func(k *custom.Kind[*machine]) { k.Deletion.Holds = func(resource.Object) bool { return true } },
		`the name "status" of a subresource is empty or taken`: func(k *custom.Kind[*machine]) { k.Subresources = []resource.Subresource{{Name: "status"}} },
	} {
		k := machineKind()
		k.Backend = catalog{}
		edit(&k)
		if _, err := k.Resource(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

func TestParseNamesTheFaultsOfADefinition(t *testing.T) {
	t.Parallel()
	for definition, want := range map[string]string{
		"kind: Pod\napiVersion: v1\n": "embed the file that `steer generate` writes",
		"nonsense: 1":                 `unknown field "nonsense"`,
		strings.Replace(machines, "plural: machines", "plural: other", 1):    "metadata.name",
		strings.Replace(machines, "minimum: 0", "minimum: 0, default: x", 1): "properties[cores].default: Invalid value",
		strings.Replace(machines, "scope: Namespaced", "scope: Namespaced\n  conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {url: 'https://a.example.com'}}}", 1): "a custom API server converts objects itself",
	} {
		if _, err := custom.Parse([]byte(definition)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", definition, err, want)
		}
	}
	k := machineKind()
	k.Version = "v3"
	if _, err := k.Resource(); err == nil || !strings.Contains(err.Error(), `no version "v3"`) {
		t.Errorf("error %v", err)
	}
	k = machineKind()
	k.Versions = append(k.Versions, k.Versions...)
	if _, err := k.Resource(); err == nil || !strings.Contains(err.Error(), "correct Kind.Versions") {
		t.Errorf("error %v", err)
	}
}
