// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package custom_test

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	quantity "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/gentype"
	"k8s.io/client-go/rest"

	"github.com/steer-dev/steer/apiserver"
	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/apiserver/custom"
	boats "github.com/steer-dev/steer/apiserver/custom/testdata/boats/v1"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/storage"
)

//go:embed testdata/boats/v1/boats.example.com_boats.yaml
var boatDefinition string

// twice has the versions of the definition of boats, and v1old with the same schema.
func twice() []byte {
	head, version, _ := strings.Cut(boatDefinition, "  versions:\n")
	old := strings.NewReplacer("name: v1\n", "name: v1old\n", "storage: true", "storage: false").Replace(version)
	return []byte(head + "  versions:\n" + version + old)
}

// oldBoat is the type of v1old in tests in which it has no protobuf form.
type oldBoat struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec boats.BoatSpec `json:"spec"`
}

func (b *oldBoat) DeepCopyObject() runtime.Object {
	out := *b
	b.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	return &out
}

func oldBoats() custom.Version[*boats.Boat] {
	return custom.Spoke("v1old",
		func(b *oldBoat) (*boats.Boat, error) { return &boats.Boat{TypeMeta: b.TypeMeta, Spec: b.Spec}, nil },
		func(b *boats.Boat) (*oldBoat, error) { return &oldBoat{TypeMeta: b.TypeMeta, Spec: b.Spec}, nil })
}

// harbour serves boats.
func harbour(t *testing.T, kind custom.Kind[*boats.Boat]) *wireTap {
	t.Helper()
	store := storage.NewMemory(storage.MemoryOptions{})
	server, err := apiserver.New(apiserver.Options{Store: store, Authorizer: auth.AllowAll{}, Limits: apiserver.Limits{BodyBytes: 10_000}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Stop(context.Background()) // the test has ended
		_ = store.Close()
	})
	kind.Definition = twice()
	r, err := kind.Resource()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Install(r); err != nil {
		t.Fatal(err)
	}
	return &wireTap{next: server.RoundTripper(&auth.User{Name: "ann"})}
}

// wireTap is a transport that notes the media types of bodies and answers.
type wireTap struct {
	next http.RoundTripper

	mu   sync.Mutex
	seen []string
}

func (w *wireTap) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := w.next.RoundTrip(r)
	if err == nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.seen = append(w.seen, r.Method+" "+strings.TrimPrefix(r.Header.Get("Content-Type"), "application/")+" > "+strings.TrimPrefix(answer.Header.Get("Content-Type"), "application/"))
	}
	return answer, err
}

// send sends a request, and returns the status and the body of the answer.
func (w *wireTap) send(t *testing.T, method, path, contentType, accept string, body []byte) (int, []byte) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "https://in-process"+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", contentType)
	r.Header.Set("Accept", accept)
	answer, err := w.next.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, text
}

const (
	protobuf  = "application/vnd.kubernetes.protobuf"
	boatsPath = "/apis/boats.example.com/v1/namespaces/default/boats"
)

var boatsV1 = schema.GroupVersion{Group: "boats.example.com", Version: "v1"}

// typedClient is a client of client-go that speaks nothing but protobuf.
func (w *wireTap) typedClient(t *testing.T) *gentype.ClientWithList[*boats.Boat, *boats.BoatList] {
	t.Helper()
	scheme := runtime.NewScheme()
	scheme.AddKnownTypes(boatsV1, &boats.Boat{}, &boats.BoatList{})
	metav1.AddToGroupVersion(scheme, boatsV1)
	c, err := rest.RESTClientFor(&rest.Config{
		Host: "https://in-process", Transport: w, APIPath: "/apis", QPS: -1,
		ContentConfig: rest.ContentConfig{
			GroupVersion: &boatsV1, NegotiatedSerializer: serializer.NewCodecFactory(scheme).WithoutConversion(),
			ContentType: protobuf, AcceptContentTypes: protobuf,
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return gentype.NewClientWithList[*boats.Boat, *boats.BoatList]("boats", c, runtime.NewParameterCodec(scheme), "default",
		func() *boats.Boat { return &boats.Boat{} }, func() *boats.BoatList { return &boats.BoatList{} }, gentype.PrefersProtobuf[*boats.Boat]())
}

// full is a boat with all fields.
func full(name string) *boats.Boat {
	built, berth := metav1.Unix(1e9, 0), intstr.FromString("b7")
	return &boats.Boat{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"a": "b"}},
		Spec: boats.BoatSpec{
			Hull: "oak", Crew: []boats.Sailor{{Name: "Ann", Age: 40}, {Name: "Bob"}}, Flags: map[string]string{"x": "1", "y": ""},
			Draft: quantity.MustParse("1500m"), Berth: &berth, Log: []byte{0, 255}, Built: &built, Papers: &runtime.RawExtension{Raw: []byte(`{"pages":[1,2]}`)},
		},
	}
}

// TestTypedClientsSpeakProtobuf has a client of client-go that sends and accepts nothing else.
func TestTypedClientsSpeakProtobuf(t *testing.T) {
	t.Parallel()
	tap := harbour(t, custom.Kind[*boats.Boat]{})
	c, ctx := tap.typedClient(t), t.Context()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	created, err := c.Create(ctx, full("one"), metav1.CreateOptions{})
	check(err)
	if want := full("one"); created.UID == "" || *created.Spec.Masts != 2 || !bytes.Equal(created.Spec.Log, want.Spec.Log) || !created.Spec.Built.Equal(want.Spec.Built) {
		t.Errorf("created is %+v", created)
	}
	got, err := c.Get(ctx, "one", metav1.GetOptions{})
	check(err)
	if diff := cmp.Diff(created, got); diff != "" {
		t.Errorf("get (-created +got):\n%s", diff)
	}
	got.Spec.Hull = "steel"
	updated, err := c.Update(ctx, got, metav1.UpdateOptions{})
	check(err)
	updated.Status.Harbour = "Rotterdam"
	_, err = c.UpdateStatus(ctx, updated, metav1.UpdateOptions{})
	check(err)
	patched, err := c.Patch(ctx, "one", types.MergePatchType, []byte(`{"spec":{"masts":3}}`), metav1.PatchOptions{})
	check(err)
	if patched.Spec.Hull != "steel" || *patched.Spec.Masts != 3 || patched.Status.Harbour != "Rotterdam" {
		t.Errorf("after an update, one of the status and a patch: %+v", patched)
	}
	_, err = c.Create(ctx, full("two"), metav1.CreateOptions{})
	check(err)
	list, err := c.List(ctx, metav1.ListOptions{Limit: 1})
	check(err)
	if len(list.Items) != 1 || list.Continue == "" || !cmp.Equal(list.Items[0].Spec, patched.Spec) || list.Items[0].ResourceVersion != patched.ResourceVersion {
		t.Errorf("a page of one is %+v", list)
	}
	_, err = c.Create(ctx, &boats.Boat{ObjectMeta: metav1.ObjectMeta{Name: "bad"}}, metav1.CreateOptions{})
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.hull") {
		t.Errorf("a boat without a hull: %v", err)
	}
	check(c.Delete(ctx, "one", metav1.DeleteOptions{}))
	if _, err := c.Get(ctx, "one", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("a deleted boat: %v", err)
	}
	const p = "vnd.kubernetes.protobuf"
	want := []string{
		"POST " + p + " > " + p, "GET  > " + p, "PUT " + p + " > " + p, "PUT " + p + " > " + p, "PATCH merge-patch+json > " + p,
		"POST " + p + " > " + p, "GET  > " + p, "POST " + p + " > " + p, "DELETE " + p + " > " + p, "GET  > " + p,
	}
	if diff := cmp.Diff(want, tap.seen); diff != "" {
		t.Errorf("media types (-want +got):\n%s", diff)
	}
}

// TestWatchesSendProtobuf has the initial objects, their bookmark, and what comes after it.
func TestWatchesSendProtobuf(t *testing.T) {
	t.Parallel()
	tap := harbour(t, custom.Kind[*boats.Boat]{})
	c, ctx := tap.typedClient(t), t.Context()
	first, err := c.Create(ctx, full("one"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	initial := true
	w, err := c.Watch(ctx, metav1.ListOptions{SendInitialEvents: &initial, AllowWatchBookmarks: true, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	next := func(of watch.EventType) *boats.Boat {
		t.Helper()
		select {
		case event := <-w.ResultChan():
			boat, ok := event.Object.(*boats.Boat)
			if event.Type != of || !ok {
				t.Fatalf("%s %+v, want %s", event.Type, event.Object, of)
			}
			return boat
		case <-time.After(time.Minute):
			t.Fatalf("no %s", of)
			return nil
		}
	}
	if diff := cmp.Diff(first, next(watch.Added)); diff != "" {
		t.Errorf("the initial event (-created +got):\n%s", diff)
	}
	if mark := next(watch.Bookmark); mark.Annotations[metav1.InitialEventsAnnotationKey] != "true" || mark.ResourceVersion == "" {
		t.Errorf("the bookmark is %+v", mark)
	}
	if _, err := c.Patch(ctx, "one", types.MergePatchType, []byte(`{"spec":{"crew":null}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if modified := next(watch.Modified); modified.Spec.Crew != nil || modified.Spec.Hull != "oak" {
		t.Errorf("modified is %+v", modified)
	}
	if err := c.Delete(ctx, "one", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	next(watch.Deleted)
}

// TestProtobufAndJSONSayTheSame of each other's writes, in all versions whose type has the form.
func TestProtobufAndJSONSayTheSame(t *testing.T) {
	t.Parallel()
	tap := harbour(t, custom.Kind[*boats.Boat]{})
	if _, err := tap.typedClient(t).Create(t.Context(), full("one"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{boatsPath, strings.Replace(boatsPath, "v1", "v1old", 1)} {
		_, text := tap.send(t, "GET", path+"/one", "", "application/json", nil)
		var want boats.Boat
		if err := json.Unmarshal(text, &want); err != nil {
			t.Fatal(err)
		}
		code, answer := tap.send(t, "GET", path+"/one", "", protobuf, nil)
		if code != 200 {
			t.Fatalf("%s: %d %s", path, code, answer)
		}
		if diff := cmp.Diff(&want, fromEnvelope(t, answer)); diff != "" {
			t.Errorf("%s (-json +protobuf):\n%s", path, diff)
		}
	}
}

// fromEnvelope returns the boat in an answer.
func fromEnvelope(t *testing.T, answer []byte) *boats.Boat {
	t.Helper()
	var unknown runtime.Unknown
	if err := unknown.Unmarshal(bytes.TrimPrefix(answer, []byte("k8s\x00"))); err != nil {
		t.Fatal(err)
	}
	b := &boats.Boat{TypeMeta: metav1.TypeMeta{APIVersion: unknown.APIVersion, Kind: unknown.Kind}}
	if err := b.Unmarshal(unknown.Raw); err != nil {
		t.Fatal(err)
	}
	return b
}

// envelope returns a body in protobuf.
func envelope(t *testing.T, kind string, raw []byte) []byte {
	t.Helper()
	data, err := (&runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: boatsV1.String(), Kind: kind}, Raw: raw}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return append([]byte("k8s\x00"), data...)
}

// TestBodiesInProtobufAreRefusedAsOthers names what the server answers to bodies that it
// cannot read, and to all of a version whose type has no protobuf form.
func TestBodiesInProtobufAreRefusedAsOthers(t *testing.T) {
	t.Parallel()
	tap := harbour(t, custom.Kind[*boats.Boat]{Versions: []custom.Version[*boats.Boat]{oldBoats()}})
	raw, err := full("one").Marshal()
	if err != nil {
		t.Fatal(err)
	}
	crowded := full("crowded")
	crowded.Spec.Crew = make([]boats.Sailor, 1200) // 6 bytes each, and 12 in JSON
	crew, err := crowded.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	old := strings.Replace(boatsPath, "v1", "v1old", 1)
	for name, c := range map[string]struct {
		path, contentType, accept string
		body                      []byte
		code                      int
		want                      string
	}{
		"no envelope":     {boatsPath, protobuf, protobuf, raw, 400, "expected prefix [107 56 115 0]"},
		"damaged":         {boatsPath, protobuf, protobuf, envelope(t, "Boat", raw[:len(raw)-1]), 400, "cannot be handled as a Boat"},
		"another kind":    {boatsPath, protobuf, protobuf, envelope(t, "Ship", raw), 400, "Ship"},
		"large as JSON":   {boatsPath, protobuf, protobuf, envelope(t, "Boat", crew), 413, "limit is 10000"},
		"without kind":    {boatsPath, protobuf, protobuf, envelope(t, "", raw), 201, "Ann"},
		"version without": {old, protobuf, "application/json", envelope(t, "Boat", raw), 415, "UnsupportedMediaType"},
		"answer without":  {old, "application/json", protobuf, []byte("{}"), 406, "NotAcceptable"},
		"or JSON if need be": {old, "application/json", protobuf + ",application/json",
			[]byte(`{"apiVersion":"boats.example.com/v1old","kind":"Boat","metadata":{"name":"two"},"spec":{"hull":"oak"}}`), 201, `"hull":"oak"`},
	} {
		if code, text := tap.send(t, "POST", c.path, c.contentType, c.accept, c.body); code != c.code || !strings.Contains(string(text), c.want) {
			t.Errorf("%s: %d %s, want %d with %q", name, code, text, c.code, c.want)
		}
	}
}

// TestOpenAPINamesProtobuf where the type of a version has the form.
func TestOpenAPINamesProtobuf(t *testing.T) {
	t.Parallel()
	tap := harbour(t, custom.Kind[*boats.Boat]{Versions: []custom.Version[*boats.Boat]{oldBoats()}})
	for version, want := range map[string]bool{"v1": true, "v1old": false} {
		_, text := tap.send(t, "GET", "/openapi/v3/apis/boats.example.com/"+version, "", "application/json", nil)
		var document struct {
			Paths map[string]map[string]json.RawMessage `json:"paths"`
		}
		if err := json.Unmarshal(text, &document); err != nil {
			t.Fatal(err)
		}
		path := document.Paths["/apis/boats.example.com/"+version+"/namespaces/{namespace}/boats"]
		for _, verb := range []string{"get", "post"} {
			if got := strings.Contains(string(path[verb]), protobuf); len(path[verb]) == 0 || got != want {
				t.Errorf("%s %s: protobuf is %v, want %v: %s", verb, version, got, want, path[verb])
			}
		}
	}
}

// moored is a backend with one boat, of the Go type.
type moored struct{}

func (moored) Get(_ context.Context, r *resource.Request) (resource.Object, error) {
	b := full(r.Name)
	b.Namespace = r.Namespace
	return b, nil
}

// TestBackendsAnswerInProtobuf with objects of the Go type.
func TestBackendsAnswerInProtobuf(t *testing.T) {
	t.Parallel()
	tap := harbour(t, custom.Kind[*boats.Boat]{Backend: moored{}})
	got, err := tap.typedClient(t).Get(t.Context(), "one", metav1.GetOptions{})
	if err != nil || got.Name != "one" || len(got.Spec.Crew) != 2 || !got.Spec.Draft.Equal(quantity.MustParse("1500m")) {
		t.Errorf("%+v, %v", got, err)
	}
}
