// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/websocket"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/apiserver"
	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/storage"
)

// gauges is a backend that stores one object in a field.
type gauges struct{ value *resource.Doc }

func (g *gauges) Get(_ context.Context, r *resource.Request) (resource.Object, error) {
	if r.Name != g.value.GetName() {
		return nil, apierrors.NewNotFound(r.Resource.GroupResource(), r.Name)
	}
	return g.value.Copy(), nil
}

func (g *gauges) List(context.Context, *resource.Request, *internalversion.ListOptions) (*resource.List, error) {
	return &resource.List{ListMeta: metav1.ListMeta{ResourceVersion: "7"}, Items: []resource.Object{g.value.Copy()}}, nil
}

func (g *gauges) Watch(context.Context, *resource.Request, *internalversion.ListOptions) (iter.Seq2[resource.WatchEvent, error], error) {
	return func(yield func(resource.WatchEvent, error) bool) {
		yield(resource.WatchEvent{}, apierrors.NewResourceExpired("long ago"))
	}, nil
}

func (g *gauges) Update(_ context.Context, _ *resource.Request, change func(resource.Object) (resource.Object, error), _ *metav1.UpdateOptions) (resource.Object, error) {
	obj, err := change(g.value.Copy())
	if err == nil {
		g.value = obj.(*resource.Doc)
	}
	return obj, err
}

// passing is a backend that deletes one object.
type passing struct {
	gauges
	gone bool
}

func (p *passing) Delete(_ context.Context, _ *resource.Request, admit func(resource.Object) error, o *metav1.DeleteOptions) (resource.Object, bool, error) {
	if err := admit(p.value.Copy()); err != nil {
		return nil, false, err
	}
	p.gone = p.gone || !resource.IsDryRun(o.DryRun)
	return p.value, true, nil
}

// guarding refuses the deletion of objects with a size, in one of its passes.
type guarding struct {
	validates bool
	seen      []string
}

func (a *guarding) Admit(_ context.Context, r *resource.AdmissionRequest) error {
	a.seen = append(a.seen, fmt.Sprintf("%s %s %v %s %v %v", r.Operation, r.Name, r.Object == nil, r.Old.GetName(), r.DryRun, r.Options.(*metav1.DeleteOptions).PropagationPolicy != nil))
	if !a.validates {
		return a.refuse(r)
	}
	return nil
}

func (a *guarding) Validate(_ context.Context, r *resource.AdmissionRequest) error {
	if a.validates {
		return a.refuse(r)
	}
	return nil
}

func (*guarding) refuse(r *resource.AdmissionRequest) error {
	if size, _, _ := unstructured.NestedInt64(r.Old.(*resource.Doc).Content(), "spec", "size"); size > 0 {
		return apierrors.NewForbidden(r.Resource.GroupResource(), r.Name, errors.New("it has a size"))
	}
	return nil
}

func TestBackendsDeleteWhatAdmissionAllows(t *testing.T) {
	t.Parallel()
	for _, validates := range []bool{false, true} {
		a := &guarding{validates: validates}
		s, err := apiserver.New(apiserver.Options{Store: storage.NewMemory(storage.MemoryOptions{}), Admission: a})
		if err != nil {
			t.Fatal(err)
		}
		b := &passing{gauges: gauges{value: resource.NewDoc(map[string]any{
			"apiVersion": "example.com/v1", "kind": "Gauge", "metadata": map[string]any{"name": "g"}, "spec": map[string]any{"size": int64(1)},
		})}}
		err = s.Install(&resource.Resource{
			Names:    resource.Names{Group: "example.com", Plural: "gauges", Singular: "gauge", Kind: "Gauge", ListKind: "GaugeList"},
			Backend:  b,
			Versions: []resource.Version{{Name: "v1", Strategy: gaugeRules{}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		rt := s.RoundTripper(admin)
		const path = "/apis/example.com/v1/gauges/g"
		if got := send(t, rt, http.MethodDelete, path, ""); got.code != http.StatusForbidden || !strings.Contains(got.body, "it has a size") || b.gone {
			t.Errorf("a deletion that admission refuses: %d %s, gone: %v", got.code, got.body, b.gone)
		}
		b.value.SetContent(nil, "spec")
		if got := send(t, rt, http.MethodDelete, path+"?dryRun=All&propagationPolicy=Orphan", ""); got.code != http.StatusOK || b.gone {
			t.Errorf("a dry run: %d %s, gone: %v", got.code, got.body, b.gone)
		}
		if got := send(t, rt, http.MethodDelete, path, ""); got.code != http.StatusOK || !b.gone {
			t.Errorf("a deletion: %d %s, gone: %v", got.code, got.body, b.gone)
		}
		want := []string{"DELETE g true g false false", "DELETE g true g true true", "DELETE g true g false false"}
		if !slices.Equal(a.seen, want) {
			t.Errorf("admission saw %q", a.seen)
		}
	}
}

// dialled are the options of a connection.
type dialled struct {
	metav1.TypeMeta `json:",inline"`
	Command         []string `json:"command"`
	Ports           []int32  `json:"ports"`
	TTY             bool     `json:"tty"`
	Path            string   `json:"path"`
}

func (d *dialled) DeepCopyObject() runtime.Object {
	c := *d
	return &c
}

// dialling changes the options of connections, and refuses some.
type dialling struct{ seen []string }

func (a *dialling) Admit(_ context.Context, r *resource.AdmissionRequest) error {
	o, ok := r.Options.(*dialled)
	if !ok {
		a.seen = append(a.seen, string(r.Operation))
		return nil
	}
	a.seen = append(a.seen, fmt.Sprint(r.Operation, r.Subresource, o.Kind, o.APIVersion, o.Command, o.Ports, o.TTY, o.Path))
	if o.TTY {
		return apierrors.NewForbidden(r.Resource.GroupResource(), r.Name, errors.New("no terminal"))
	}
	next := *o
	next.Command = append([]string{"safe"}, o.Command...)
	r.Options = &next
	return nil
}

func (*dialling) Validate(context.Context, *resource.AdmissionRequest) error { return nil }

// query is a Connecter that answers with its query.
type query struct{}

func (query) Connect(_ context.Context, _ *resource.Request, w http.ResponseWriter, h *http.Request) {
	_, _ = io.WriteString(w, h.URL.RawQuery)
}

func TestConnectersFollowAdmissionOfTheirOptions(t *testing.T) {
	t.Parallel()
	a := &dialling{}
	s, err := apiserver.New(apiserver.Options{Store: storage.NewMemory(storage.MemoryOptions{}), Admission: a})
	if err != nil {
		t.Fatal(err)
	}
	kind := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Dialled"}
	err = s.Install(&resource.Resource{
		Names:   resource.Names{Group: "example.com", Plural: "gauges", Singular: "gauge", Kind: "Gauge", ListKind: "GaugeList"},
		Backend: &gauges{value: &resource.Doc{}},
		Versions: []resource.Version{{Name: "v1", Strategy: gaugeRules{}, Subresources: []resource.Subresource{
			{Name: "dial", Backend: query{}, Kind: kind, Options: func() runtime.Object { return &dialled{} }},
			{Name: "log", Backend: query{}, Kind: kind, Verbs: []string{"get"}},
		}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	rt := s.RoundTripper(admin)
	for _, step := range []struct {
		path string
		code int
		want string
	}{
		{"/dial/some/where?command=ls&command=-l&ports=80", 200, "command=safe&command=ls&command=-l&ports=80&tty=false"},
		{"/dial?tty=true", 403, "no terminal"},
		{"/dial?ports=x", 400, "parameter ports"},
		{"/log?tty=true", 200, "tty=true"},
	} {
		got := send(t, rt, http.MethodGet, "/apis/example.com/v1/gauges/g"+step.path, "")
		if got.code != step.code || !strings.Contains(got.body, step.want) {
			t.Errorf("%s: %d %s, want %d %s", step.path, got.code, got.body, step.code, step.want)
		}
	}
	want := []string{
		fmt.Sprint("CONNECT", "dial", "Dialled", "example.com/v1", []string{"ls", "-l"}, []int32{80}, false, "/some/where"),
		fmt.Sprint("CONNECT", "dial", "Dialled", "example.com/v1", []string{}, []int32{}, true, "/"),
	}
	if !slices.Equal(a.seen, want) {
		t.Errorf("admission saw %q", a.seen)
	}
}

// echo is a Connecter.
type echo struct{}

func (echo) Connect(_ context.Context, r *resource.Request, w http.ResponseWriter, h *http.Request) {
	_, _ = io.Copy(w, io.MultiReader(strings.NewReader(r.Name+": "), h.Body))
}

func TestBackendsServeWhatTheyImplement(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	g := &gauges{value: resource.NewDoc(map[string]any{
		"apiVersion": "example.com/v1", "kind": "Gauge", "metadata": map[string]any{"name": "g", "resourceVersion": "7"}, "spec": map[string]any{"size": int64(1)},
	})}
	err := s.Install(&resource.Resource{
		Names:    resource.Names{Group: "example.com", Plural: "gauges", Singular: "gauge", Kind: "Gauge", ListKind: "GaugeList"},
		Backend:  g,
		Versions: []resource.Version{{Name: "v1", Strategy: gaugeRules{}, Subresources: []resource.Subresource{{Name: "echo", Backend: echo{}}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	rt := s.RoundTripper(admin)
	const path = "/apis/example.com/v1/gauges"
	for _, step := range []struct {
		method, path, body string
		code               int
		want               string
	}{
		{http.MethodGet, "/g", "", 200, `"size":1`},
		{http.MethodGet, "/h", "", 404, `gauges.example.com \"h\" not found`},
		{http.MethodGet, "", "", 200, `"kind":"GaugeList"`},
		{http.MethodGet, "?fieldSelector=metadata.name%3Dh", "", 200, `"items":[]`},
		{http.MethodGet, "?watch=true", "", 200, `{"type":"ERROR","object":{"kind":"Status"`},
		{http.MethodPatch, "/g", `{"spec":{"size":5}}`, 200, `"size":5`},
		{http.MethodPatch, "/g", `{"spec":{"size":50}}`, 422, "should be less than or equal to 10"},
		{http.MethodGet, "/g", "", 200, `"size":5`},
		{http.MethodPost, "", "{}", 405, "the server does not allow this method on the requested resource"},
		{http.MethodDelete, "/g", "", 405, "the server does not allow this method on the requested resource"},
		{http.MethodPost, "/g/echo", "hello", 200, "g: hello"},
	} {
		got := send(t, rt, step.method, path+step.path, step.body, "Content-Type", mergePatch)
		if got.code != step.code || !strings.Contains(got.body, step.want) {
			t.Errorf("%s %s: %d %s, want %d %s", step.method, step.path, got.code, got.body, step.code, step.want)
		}
	}
	const tables = "application/json;as=Table;v=v1;g=meta.k8s.io"
	if got := send(t, rt, http.MethodGet, path+"?watch=true&includeObject=Everything", "", "Accept", tables); got.code != http.StatusBadRequest {
		t.Errorf("a watch of tables with an invalid includeObject: %d %s", got.code, got.body)
	}
	found := send(t, rt, http.MethodGet, "/apis/example.com/v1", "").body
	if want := `"verbs":["get","list","patch","update","watch"]`; !strings.Contains(found, want) {
		t.Errorf("discovery lacks %s: %s", want, found)
	}
}

// numbered is a backend whose lists have any resourceVersion, and whose watches have no event.
type numbered struct {
	gauges
	revision string
}

func (n *numbered) List(context.Context, *resource.Request, *internalversion.ListOptions) (*resource.List, error) {
	return &resource.List{ListMeta: metav1.ListMeta{ResourceVersion: n.revision}, Items: []resource.Object{n.value.Copy()}}, nil
}

func (n *numbered) Watch(_ context.Context, _ *resource.Request, o *internalversion.ListOptions) (iter.Seq2[resource.WatchEvent, error], error) {
	return nil, apierrors.NewBadRequest("asked for revision " + o.ResourceVersion)
}

func TestWatchesOfBackendsBeginWithTheirLists(t *testing.T) {
	t.Parallel()
	const initial = "?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
	for _, c := range []struct {
		revision, query string
		code            int
		want            string
	}{
		{"7", "", 200, `"resourceVersion":"7"`},
		{"", "", 200, `"items":[{`},
		{"seven", "", 500, "a list of the backend: resourceVersion"},
		{"7", "?watch=true", 400, "asked for revision 7"},
		{"7", "?watch=true&resourceVersion=0", 400, "asked for revision 7"},
		{"7", "?watch=true&resourceVersion=5", 400, "asked for revision 5"},
		{"7", initial, 400, "asked for revision 7"},
		{"7", initial + "&resourceVersion=5", 400, "asked for revision 7"},
		{"", "?watch=true", 400, `asked for revision "`},
		{"", initial, 422, "lists of this resource have no resourceVersion to watch from"},
		{"seven", initial, 500, "a list of the backend: resourceVersion"},
	} {
		s := newServer(t)
		err := s.Install(&resource.Resource{
			Names:    resource.Names{Group: "example.com", Plural: "gauges", Singular: "gauge", Kind: "Gauge", ListKind: "GaugeList"},
			Backend:  &numbered{gauges{value: resource.NewDoc(map[string]any{"metadata": map[string]any{"name": "g"}})}, c.revision},
			Versions: []resource.Version{{Name: "v1", Strategy: gaugeRules{}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		got := send(t, s.RoundTripper(admin), http.MethodGet, "/apis/example.com/v1/gauges"+c.query, "")
		if got.code != c.code || !strings.Contains(got.body, c.want) {
			t.Errorf("lists at %q, %s: %d %s, want %d %s", c.revision, c.query, got.code, got.body, c.code, c.want)
		}
	}
}

// TestWatchesOfBackendsWorkOverAWebSocket: as those of stored objects, with each event in a
// message.
func TestWatchesOfBackendsWorkOverAWebSocket(t *testing.T) {
	t.Parallel()
	s, err := apiserver.New(apiserver.Options{
		Store:         storage.NewMemory(storage.MemoryOptions{}),
		Authenticator: auth.Bearer{Tokens: []auth.TokenAuthenticator{auth.Tokens{"secret": admin}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	err = s.Install(&resource.Resource{
		Names:    resource.Names{Group: "example.com", Plural: "gauges", Singular: "gauge", Kind: "Gauge", ListKind: "GaugeList"},
		Backend:  &gauges{value: resource.NewDoc(map[string]any{"metadata": map[string]any{"name": "g"}})},
		Versions: []resource.Version{{Name: "v1", Strategy: gaugeRules{}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(s.Handler())
	t.Cleanup(server.Close)
	config, err := websocket.NewConfig("ws"+strings.TrimPrefix(server.URL, "http")+"/apis/example.com/v1/gauges?watch=true", "http://localhost")
	if err != nil {
		t.Fatal(err)
	}
	config.Header.Set("Authorization", "Bearer secret")
	ws, err := config.DialContext(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ws.Close() }()
	if err := ws.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`{"type":"ADDED","object":{`, `{"type":"ERROR","object":{"kind":"Status"`} {
		var message string
		if err := websocket.Message.Receive(ws, &message); err != nil || !strings.HasPrefix(message, want) || strings.Count(message, "\n") != 1 {
			t.Errorf("%v: the message is %q, want %s", err, message, want)
		}
	}
	var message string
	if err := websocket.Message.Receive(ws, &message); !errors.Is(err, io.EOF) {
		t.Errorf("after the error: %v, %q", err, message)
	}
}

// gaugeRules are those of widgets, but do not reset the status.
type gaugeRules struct{ widgetRules }

func (gaugeRules) Prepare(context.Context, resource.Object, resource.Object) {}
