// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/client/listwatch"
	"github.com/steer-dev/steer/client/mapping"
)

const (
	addedA = `{"type":"ADDED","object":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","resourceVersion":"7"}}}`
	gone   = `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","code":410,"reason":"Expired"}}`
)

// always answers every request with a body.
func always(body string) func(*http.Request, []byte) *http.Response {
	return func(*http.Request, []byte) *http.Response { return reply(http.StatusOK, body) }
}

// described is a watch event in words.
func described(e watch.Event) string {
	switch o := e.Object.(type) {
	case *metav1.Status:
		return string(e.Type) + " " + string(o.Reason)
	case client.Object:
		return string(e.Type) + " " + o.GetObjectKind().GroupVersionKind().Kind + " " + o.GetName()
	}
	return string(e.Type)
}

func TestWatchDeliversTheEventsOfTheStream(t *testing.T) {
	t.Parallel()
	metadata := &metav1.PartialObjectMetadataList{}
	metadata.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))
	dynamic := &unstructured.UnstructuredList{}
	dynamic.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))
	for name, c := range map[string]struct {
		list client.ObjectList
		body string
		want []string
		url  string
	}{
		"typed":           {list: &corev1.ConfigMapList{}, body: addedA + gone, want: []string{"ADDED ConfigMap a", "ERROR Expired"}},
		"metadata":        {list: metadata, body: addedA, want: []string{"ADDED ConfigMap a"}},
		"unstructured":    {list: dynamic, body: addedA, want: []string{"ADDED ConfigMap a"}},
		"a broken stream": {list: &corev1.ConfigMapList{}, body: addedA + `{"type":`, want: []string{"ADDED ConfigMap a", "ERROR InternalError"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cl, s := newClient(t, always(c.body), client.Options{})
			w, err := cl.Watch(t.Context(), c.list, client.InNamespace("n"), client.MatchingLabels{"x": "y"}, client.AtLeast("5"))
			if err != nil {
				t.Fatal(err)
			}
			defer w.Stop()
			var got []string
			for e := range w.ResultChan() {
				got = append(got, described(e))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if want := "/api/v1/namespaces/n/configmaps?allowWatchBookmarks=true&labelSelector=x%3Dy&resourceVersion=5&watch=true"; s.requests[0].URL != want {
				t.Errorf("request %s, want %s", s.requests[0].URL, want)
			}
		})
	}
}

// endless is a stream that begins with a text and ends when it is closed.
type endless struct {
	text   io.Reader
	closed chan struct{}
}

func (e endless) Read(p []byte) (int, error) {
	if n, err := e.text.Read(p); err == nil {
		return n, nil
	}
	<-e.closed
	return 0, errors.New("closed")
}

func (e endless) Close() error {
	select {
	case <-e.closed:
	default:
		close(e.closed)
	}
	return nil
}

func TestWatchEndsWhenItIsStopped(t *testing.T) {
	t.Parallel()
	for _, read := range []int{0, 1} {
		stream := endless{strings.NewReader(addedA + addedA), make(chan struct{})}
		cl, _ := newClient(t, func(*http.Request, []byte) *http.Response {
			resp := reply(200, "")
			resp.Body, resp.ContentLength = stream, -1
			return resp
		}, client.Options{})
		w, err := cl.Watch(t.Context(), &corev1.ConfigMapList{})
		if err != nil {
			t.Fatal(err)
		}
		for range read {
			<-w.ResultChan()
		}
		w.Stop()
		w.Stop()
		select {
		case <-stream.closed:
		default:
			t.Error("the stream is open")
		}
		if e, open := <-w.ResultChan(); open {
			t.Errorf("event %v after Stop", e)
		}
	}
}

func TestWatchRefusesMistakesBeforeTheWire(t *testing.T) {
	t.Parallel()
	widgets := &unstructured.UnstructuredList{}
	for name, c := range map[string]struct {
		list client.ObjectList
		opts []client.ListOption
		want string
	}{
		"no kind":      {list: widgets, want: "watch: a *unstructured.UnstructuredList must say its apiVersion and kind: call SetGroupVersionKind first"},
		"no Go type":   {list: &batchv1.JobList{}, want: "*v1.JobList is not registered in the scheme: add to steer.Scheme{...} of the operator, or call with its scheme: batchv1.AddToScheme // import batchv1 \"k8s.io/api/batch/v1\""},
		"wrong option": {list: &corev1.ConfigMapList{}, opts: []client.ListOption{client.MatchingLabels{"x": "not a value"}}, want: "label selector x"},
	} {
		cl, s := newClient(t, always(""), client.Options{})
		if _, err := cl.Watch(t.Context(), c.list, c.opts...); err == nil || !strings.Contains(err.Error(), c.want) || len(s.requests) > 0 {
			t.Errorf("%s: %v after %d requests, want %s", name, err, len(s.requests), c.want)
		}
	}
	cl, _ := newClient(t, func(*http.Request, []byte) *http.Response { return refuse(403, "Forbidden") }, client.Options{})
	if _, err := cl.Watch(t.Context(), &corev1.ConfigMapList{}); !apierrors.IsForbidden(err) {
		t.Errorf("a refused watch: %v", err)
	}
}

func configMaps(item func() runtime.Object) *listwatch.Collection {
	return &listwatch.Collection{
		GVK: corev1.SchemeGroupVersion.WithKind("ConfigMap"), Namespace: "n", LabelSelector: labels.SelectorFromSet(labels.Set{"x": "y"}),
		Resource: mapping.Resource{GVR: corev1.SchemeGroupVersion.WithResource("configmaps"), Namespaced: true}, NewItem: item,
	}
}

func TestSourceListsAPageItemByItem(t *testing.T) {
	t.Parallel()
	const body = `{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"9","continue":"next"},"items":[{"metadata":{"name":"a"}},{"metadata":{"name":"b"}}]}`
	for name, c := range map[string]struct {
		item   func() runtime.Object
		accept string
	}{
		"typed":    {func() runtime.Object { return &corev1.ConfigMap{} }, "application/vnd.kubernetes.protobuf,application/json"},
		"metadata": {func() runtime.Object { return &metav1.PartialObjectMetadata{} }, "as=PartialObjectMetadataList"},
	} {
		cl, s := newClient(t, always(body), client.Options{})
		page, err := cl.(listwatch.Source).OpenList(t.Context(), configMaps(c.item), listwatch.ListOptions{Limit: 2, Continue: "here"})
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for {
			item, err := page.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, item.(client.Object).GetName())
		}
		if diff := cmp.Diff([]string{"a", "b"}, names); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if meta := page.Meta(); meta.ResourceVersion != "9" || meta.Continue != "next" {
			t.Errorf("%s: metadata %v", name, meta)
		}
		if err := page.Close(); err != nil {
			t.Error(err)
		}
		if want := "/api/v1/namespaces/n/configmaps?continue=here&labelSelector=x%3Dy&limit=2"; s.requests[0].URL != want || !strings.Contains(s.requests[0].Accept, c.accept) {
			t.Errorf("%s: request %s accepting %s, want %s", name, s.requests[0].URL, s.requests[0].Accept, want)
		}
	}
	cl, _ := newClient(t, always("no list"), client.Options{})
	page, err := cl.(listwatch.Source).OpenList(t.Context(), configMaps(func() runtime.Object { return &corev1.ConfigMap{} }), listwatch.ListOptions{})
	if err == nil {
		_, err = page.Next()
	}
	if err == nil || errors.Is(err, io.EOF) {
		t.Errorf("what is no list is read: %v", err)
	}
}

func TestSourceWatchesFromARevisionOrFromTheState(t *testing.T) {
	t.Parallel()
	for url, o := range map[string]listwatch.WatchOptions{
		"/api/v1/namespaces/n/configmaps?allowWatchBookmarks=true&labelSelector=x%3Dy&resourceVersion=9&timeoutSeconds=90&watch=true":                      {ResourceVersion: "9", Timeout: 90 * time.Second},
		"/api/v1/namespaces/n/configmaps?allowWatchBookmarks=true&labelSelector=x%3Dy&resourceVersionMatch=NotOlderThan&sendInitialEvents=true&watch=true": {SendInitialEvents: true},
	} {
		cl, s := newClient(t, always(addedA), client.Options{})
		events, err := cl.(listwatch.Source).OpenWatch(t.Context(), configMaps(func() runtime.Object { return &corev1.ConfigMap{} }), o)
		if err != nil {
			t.Fatal(err)
		}
		if e, err := events.Next(); err != nil || described(e) != "ADDED ConfigMap a" {
			t.Errorf("event %v, %v", e, err)
		}
		if _, err := events.Next(); !errors.Is(err, io.EOF) {
			t.Errorf("end of the stream: %v", err)
		}
		if err := events.Close(); err != nil {
			t.Error(err)
		}
		if s.requests[0].URL != url {
			t.Errorf("request %s, want %s", s.requests[0].URL, url)
		}
	}
	cl, _ := newClient(t, func(*http.Request, []byte) *http.Response { return refuse(404, "NotFound") }, client.Options{})
	if _, err := cl.(listwatch.Source).OpenWatch(t.Context(), configMaps(func() runtime.Object { return &corev1.ConfigMap{} }), listwatch.WatchOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("a kind that is not served: %v", err)
	}
}

func TestSourceReadsTheMinorVersionOfTheServer(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]int{`{"major":"1","minor":"34+"}`: 34, `{"major":"1","minor":"x"}`: 0, `{"major":"2","minor":"3"}`: 0, `x`: 0} {
		cl, s := newClient(t, always(body), client.Options{})
		if got, err := cl.(listwatch.Source).ServerMinor(t.Context()); err != nil || got != want || s.requests[0].URL != "/version" {
			t.Errorf("%s: %d, %v", body, got, err)
		}
	}
	cl, _ := newClient(t, func(*http.Request, []byte) *http.Response { return refuse(403, "Forbidden") }, client.Options{})
	if _, err := cl.(listwatch.Source).ServerMinor(t.Context()); !apierrors.IsForbidden(err) {
		t.Errorf("refused: %v", err)
	}
}

func TestApplyConfigurationTakesTheAnswer(t *testing.T) {
	t.Parallel()
	const answer = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"n","resourceVersion":"8"},"data":{"k":"other"}}`
	cl, s := newClient(t, always(answer), client.Options{FieldOwner: "me"})
	config := applycorev1.ConfigMap("a", "n").WithData(map[string]string{"k": "v"})
	if err := cl.Apply(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	if *config.ResourceVersion != "8" || config.Data["k"] != "other" {
		t.Errorf("the configuration is %v", config)
	}
	if want := "/api/v1/namespaces/n/configmaps/a?fieldManager=me"; s.requests[0].URL != want || s.requests[0].ContentType != "application/apply-patch+yaml" {
		t.Errorf("request %v", s.requests[0])
	}
	pod := applycorev1.Pod("a", "n")
	if err := cl.Status().Apply(t.Context(), pod, client.FieldOwner("you")); err != nil || s.requests[1].URL != "/api/v1/namespaces/n/pods/a/status?fieldManager=you" {
		t.Errorf("a subresource: %v, %v", s.requests[1:], err)
	}
	if err := cl.Apply(t.Context(), configMap(), client.WithSubResourceBody(&corev1.Pod{})); err == nil || !strings.Contains(err.Error(), "WithSubResourceBody is for Update and Patch") {
		t.Errorf("a body of another object: %v", err)
	}
}

func TestSubResourceCreatesWhatItIsGiven(t *testing.T) {
	t.Parallel()
	cl, s := newClient(t, echo, client.Options{})
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "n"}}
	binding := &corev1.Binding{Target: corev1.ObjectReference{Name: "node"}}
	if err := cl.SubResource("binding").Create(t.Context(), pod, binding); err != nil {
		t.Fatal(err)
	}
	if r := s.requests[0]; r.Method != http.MethodPost || r.URL != "/api/v1/namespaces/n/pods/a/binding" {
		t.Errorf("request %s %s", r.Method, r.URL)
	}
}

func TestErrorsAreIgnoredByTheirReason(t *testing.T) {
	t.Parallel()
	resource := schema.GroupResource{Resource: "pods"}
	absent, present, other := apierrors.NewNotFound(resource, "a"), apierrors.NewAlreadyExists(resource, "a"), errors.New("other")
	for name, c := range map[string]struct{ got, want error }{
		"not found": {client.IgnoreNotFound(absent), nil}, "found": {client.IgnoreNotFound(present), present}, "none": {client.IgnoreNotFound(nil), nil},
		"exists": {client.IgnoreAlreadyExists(present), nil}, "other": {client.IgnoreAlreadyExists(other), other},
	} {
		if !errors.Is(c.got, c.want) || (c.got == nil) != (c.want == nil) {
			t.Errorf("%s: %v, want %v", name, c.got, c.want)
		}
	}
}

func TestNotifyReachesTheObserversOfAContext(t *testing.T) {
	t.Parallel()
	if client.Observed(t.Context()) {
		t.Error("a context without observers is observed")
	}
	client.Notify(t.Context(), &client.Call{})
	var seen []string
	observer := func(name string) client.Observer {
		return func(_ context.Context, c *client.Call) { seen = append(seen, name+" "+string(c.Verb)) }
	}
	ctx := client.WithObserver(client.WithObserver(t.Context(), observer("outer")), observer("inner"))
	client.Notify(ctx, &client.Call{Verb: client.VerbApply})
	if diff := cmp.Diff([]string{"inner apply", "outer apply"}, seen); diff != "" || !client.Observed(ctx) {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestUnregisteredKindsNameTheMissingCall(t *testing.T) {
	t.Parallel()
	scheme, err := client.NewScheme(corev1.AddToScheme)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		obj  runtime.Object
		want string
	}{
		"Go type":  {&batchv1.Job{}, `*v1.Job is not registered in the scheme: add to steer.Scheme{...} of the operator, or call with its scheme: batchv1.AddToScheme // import batchv1 "k8s.io/api/batch/v1"`},
		"metadata": {&metav1.PartialObjectMetadata{}, "a *v1.PartialObjectMetadata must say its apiVersion and kind: call SetGroupVersionKind first"},
		"several":  {&metav1.Status{}, ""},
	} {
		_, err := client.KindOf(scheme, c.obj)
		if (err == nil) != (c.want == "") || err != nil && err.Error() != c.want {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if client.IsUnregistered(err) != (name == "Go type") {
			t.Errorf("%s: unregistered is %v", name, client.IsUnregistered(err))
		}
	}
}
