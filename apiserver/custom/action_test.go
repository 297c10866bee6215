// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package custom_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/apiserver"
	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/apiserver/custom"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/storage"
)

// Shout asks for the text of a note in capitals.
type Shout struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Times is how often.
	Times int `json:"times"`
}

func (s *Shout) DeepCopyObject() runtime.Object {
	out := *s
	return &out
}

// Echo is the answer.
type Echo struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Text              string `json:"text"`
}

func (e *Echo) DeepCopyObject() runtime.Object {
	out := *e
	return &out
}

func TestActionHasRequestAndResponseTypesOfItsOwn(t *testing.T) {
	t.Parallel()
	server, err := apiserver.New(apiserver.Options{Store: storage.NewMemory(storage.MemoryOptions{}), Authorizer: auth.AllowAll{}})
	if err != nil {
		t.Fatal(err)
	}
	shout := custom.Action("shout", schema.GroupVersion{Group: "example.com", Version: "v1"}, func(_ context.Context, note *Note, in *Shout) (*Echo, error) {
		if in.Times == 0 {
			return nil, apierrors.NewConflict(schema.GroupResource{Group: "example.com", Resource: "notes"}, note.Name, errors.New("a note is shouted at least once"))
		}
		note.Spec.Text = strings.ToUpper(note.Spec.Text)
		return &Echo{Text: strings.Repeat(note.Spec.Text, in.Times)}, nil
	})
	notes, err := custom.Kind[*Note]{Definition: definition, Subresources: []resource.Subresource{shout}}.Resource()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Install(notes); err != nil {
		t.Fatal(err)
	}
	request := func(method, path, body string) (int, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, "https://in-process"+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		answer, err := server.RoundTripper(&auth.User{Name: "ann"}).RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, string(text)
	}
	const path = "/apis/example.com/v1/namespaces/default/notes"
	body := func(rest string) string { return `{"apiVersion": "example.com/v1", "kind": "Shout"` + rest + `}` }
	if code, text := request("POST", path, `{"apiVersion": "example.com/v1", "kind": "Note", "metadata": {"name": "milk"}, "spec": {"text": "milk"}}`); code != http.StatusCreated {
		t.Fatal(code, text)
	}
	for _, step := range []struct {
		name, method, path, body string
		code                     int
		want                     string
	}{
		{"a dry run", "POST", path + "/milk/shout?dryRun=All", body(`, "times": 1`), 201, `"text":"MILK"`},
		{"which stores nothing", "GET", path + "/milk", "", 200, `"text":"milk"`},
		{"an answer", "POST", path + "/milk/shout", body(`, "times": 2`), 201, `{"kind":"Echo","apiVersion":"example.com/v1","metadata":{},"text":"MILKMILK"}`},
		{"the change is stored", "GET", path + "/milk", "", 200, `"text":"MILK"`},
		{"a refusal", "POST", path + "/milk/shout", body(""), 409, "a note is shouted at least once"},
		{"another kind", "POST", path + "/milk/shout", `{"apiVersion": "example.com/v1", "kind": "Echo"}`, 400, "Echo"},
		{"another name", "POST", path + "/milk/shout", body(`, "metadata": {"name": "bread"}, "times": 1`), 400, "name in URL does not match"},
		{"an old state", "POST", path + "/milk/shout", body(`, "metadata": {"resourceVersion": "1"}, "times": 1`), 409, "Precondition failed: ResourceVersion in precondition: 1"},
		{"no object", "POST", path + "/bread/shout", body(`, "times": 1`), 404, "not found"},
		{"another verb", "GET", path + "/milk/shout", "", 405, ""},
		{"discovery", "GET", "/apis/example.com/v1", "", 200, `{"name":"notes/shout","singularName":"","namespaced":true,"kind":"Shout","verbs":["create"]}`},
		{"the type of the body", "GET", "/openapi/v3/apis/example.com/v1", "", 200, `"times"`},
		{"the type of the answer", "GET", "/openapi/v3/apis/example.com/v1", "", 200, `{"group":"example.com","kind":"Echo","version":"v1"}`},
	} {
		if code, text := request(step.method, step.path, step.body); code != step.code || !strings.Contains(text, step.want) {
			t.Errorf("%s: %d %.2000s, want %d %s", step.name, code, text, step.code, step.want)
		}
	}
}

// grow asks for more cores.
type grow struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Cores int32 `json:"cores"`
}

func (g *grow) DeepCopyObject() runtime.Object {
	out := *g
	return &out
}

// grown is the answer.
type grown struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	From, To int32
	DryRun   bool
}

func (g *grown) DeepCopyObject() runtime.Object {
	out := *g
	return &out
}

// growing is the kind of machines with an action.
func growing() custom.Kind[*machine] {
	kind := machineKind()
	kind.Subresources = []resource.Subresource{
		custom.Action("grow", schema.GroupVersion{Group: "example.com", Version: "v1"}, func(ctx context.Context, m *machine, in *grow) (*grown, error) {
			if in.Cores < 0 {
				return nil, errors.New("the crane is broken")
			}
			out := &grown{From: m.Spec.Cores, To: m.Spec.Cores + in.Cores, DryRun: resource.RequestFrom(ctx).DryRun}
			m.Spec.Cores = out.To
			if in.Cores > 0 {
				m.Status.Phase = "Grown"
			}
			return out, nil
		}),
	}
	return kind
}

func TestActionGetsTheGoTypeInEveryVersion(t *testing.T) {
	t.Parallel()
	for _, stored := range []string{"v1", "v1beta1"} {
		t.Run("stored in "+stored, func(t *testing.T) {
			t.Parallel()
			kind := growing()
			if stored != "v1" {
				kind.Version = "v1"
				kind.Definition = []byte(strings.NewReplacer("storage: true", "storage: false", "storage: false", "storage: true").Replace(machines))
			}
			c := serve(t, newStore(t), kind)
			c.do("POST", "v1", "", `{"apiVersion":"example.com/v1","kind":"Machine","metadata":{"name":"a"},"spec":{"cores":1}}`, 201)
			answer := c.do("POST", "v1beta1", "/a/grow", `{"apiVersion":"example.com/v1","kind":"grow","cores":31}`, 201)
			if answer.Object["From"] != int64(1) || answer.Object["To"] != int64(32) {
				t.Errorf("the answer is %v", answer.Object)
			}
			got := c.do("GET", "v1", "/a", "", 200)
			if cores, _, _ := unstructured.NestedInt64(got.Object, "spec", "cores"); cores != 32 {
				t.Errorf("stored: %v", got.Object)
			}
			if stored == "v1" { // the other version has no phase
				c.same(got, "status", `{"phase":"Grown"}`)
			}
		})
	}
}

func TestWhatAnActionChangesIsAnUpdate(t *testing.T) {
	t.Parallel()
	c := serve(t, newStore(t), growing())
	c.do("POST", "v1", "", `{"apiVersion":"example.com/v1","kind":"Machine","metadata":{"name":"a"},"spec":{"cores":1,"extra":{"kept":true}}}`, 201)
	by := func(cores string) string {
		return `{"apiVersion":"example.com/v1","kind":"grow","cores":` + cores + `}`
	}

	refused := c.do("POST", "v1", "/a/grow", by("64"), 422)
	if message, _, _ := unstructured.NestedString(refused.Object, "message"); !strings.Contains(message, "no machine has that many") {
		t.Errorf("a rule in Go: %s", message)
	}
	if refused := c.do("POST", "v1", "/a/grow", by("-1"), 500); !strings.Contains(refused.Object["message"].(string), "the crane is broken") {
		t.Errorf("an error: %v", refused.Object)
	}
	c.same(c.do("POST", "v1", "/a/grow?dryRun=All", by("1"), 201), "DryRun", `true`)
	if got := c.do("GET", "v1", "/a", "", 200); got.GetGeneration() != 1 {
		t.Errorf("generation %d after refusals and a dry run, want 1", got.GetGeneration())
	}

	c.same(c.do("POST", "v1", "/a/grow", by("1"), 201), "DryRun", `false`)
	got := c.do("GET", "v1", "/a", "", 200)
	c.same(got, "spec", `{"cores":2,"image":"default","extra":{"kept":true}}`)
	c.same(got, "status", `{"phase":"Grown"}`)
	if got.GetGeneration() != 2 {
		t.Errorf("generation %d after an action, want 2", got.GetGeneration())
	}
	if fields := got.GetManagedFields(); len(fields) != 2 || fields[1].Subresource != "grow" || !strings.Contains(fields[1].FieldsV1.GetRawString(), "f:cores") {
		t.Errorf("managedFields %v", fields)
	}
	c.do("POST", "v1", "/a/grow", by("0"), 201)
	if again := c.do("GET", "v1", "/a", "", 200); again.GetResourceVersion() != got.GetResourceVersion() {
		t.Error("an action without a change writes")
	}
	gone := c.do("PATCH", "v1", "/a/status", `{"status":{"phase":"Gone"}}`, 200)
	c.do("POST", "v1", "/a/grow", by("1"), 422) // a rule on the status
	if left := c.do("GET", "v1", "/a", "", 200); left.GetResourceVersion() != gone.GetResourceVersion() {
		t.Error("an action that a rule on the status refuses writes")
	}
}

// Letters is a list of how often letters are in a note.
type Letters struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Items []Letter `json:"items"`
}

// Letter is one of them.
type Letter struct {
	Letter string `json:"letter"`
	Count  int    `json:"count"`
}

func (l *Letters) DeepCopyObject() runtime.Object {
	out := *l
	return &out
}

func TestReadAnswersWithAListOfItsOwn(t *testing.T) {
	t.Parallel()
	kind := machineKind()
	kind.Subresources = []resource.Subresource{
		custom.Read("letters", schema.GroupVersion{Group: "example.com", Version: "v1"}, func(_ context.Context, r *resource.Request, parameters url.Values) (*Letters, error) {
			of := parameters.Get("of")
			if of == "" {
				return nil, apierrors.NewBadRequest("of is required")
			}
			return &Letters{Items: []Letter{{of, strings.Count(r.Namespace+"/"+r.Name, of)}}}, nil
		}),
	}
	c := serve(t, newStore(t), kind)
	got := c.do("GET", "v1", "/*/letters?of=%2F", "", 200)
	want := map[string]any{"apiVersion": "example.com/v1", "kind": "Letters", "metadata": map[string]any{}, "items": []any{map[string]any{"letter": "/", "count": int64(1)}}}
	if diff := cmp.Diff(want, got.Object); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	c.do("GET", "v1", "/a/letters", "", 400)
	c.do("GET", "v1", "/a/letters?%zz", "", 400)
	c.do("POST", "v1", "/a/letters?of=a", `{"apiVersion":"example.com/v1","kind":"Letters"}`, 405)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://in-process/apis/example.com/v1", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := c.server.RoundTripper(&auth.User{Name: "ann"}).RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var found metav1.APIResourceList
	if err := json.NewDecoder(answer.Body).Decode(&found); err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(found.APIResources, func(r metav1.APIResource) bool { return r.Name == "machines/letters" })
	if at < 0 || found.APIResources[at].Kind != "Letters" || strings.Join(found.APIResources[at].Verbs, " ") != "get" {
		t.Errorf("discovery: %+v", found.APIResources)
	}
}
