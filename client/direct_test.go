// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/client/codec"
	"github.com/steer-dev/steer/client/interceptor"
	"github.com/steer-dev/steer/client/strategic"
	"github.com/steer-dev/steer/client/wire"
)

// sent is one request as the server saw it.
type sent struct {
	Method, URL, ContentType, Accept, Body string
}

// script is a server made of a function. Discovery is answered by itself.
type script struct {
	requests []sent
	answer   func(r *http.Request, body []byte) *http.Response
}

func (s *script) RoundTrip(r *http.Request) (*http.Response, error) {
	switch r.URL.Path {
	case "/api":
		return reply(200, `{"kind":"APIVersions","versions":["v1"]}`), nil
	case "/apis":
		return reply(200, `{"kind":"APIGroupList","groups":[
			{"name":"apps","versions":[{"groupVersion":"apps/v1","version":"v1"}],"preferredVersion":{"groupVersion":"apps/v1","version":"v1"}},
			{"name":"example.com","versions":[{"groupVersion":"example.com/v1","version":"v1"}],"preferredVersion":{"groupVersion":"example.com/v1","version":"v1"}}]}`), nil
	case "/api/v1":
		return reply(200, `{"kind":"APIResourceList","groupVersion":"v1","resources":[
			{"name":"configmaps","kind":"ConfigMap","namespaced":true,"verbs":["get"]},{"name":"pods","kind":"Pod","namespaced":true,"verbs":["get"]},
			{"name":"nodes","kind":"Node","namespaced":false,"verbs":["get"]}]}`), nil
	case "/apis/apps/v1":
		return reply(200, `{"kind":"APIResourceList","groupVersion":"apps/v1","resources":[
			{"name":"deployments","kind":"Deployment","namespaced":true,"verbs":["get"]},{"name":"deployments/scale","kind":"Scale","namespaced":true,"verbs":["get"]}]}`), nil
	case "/apis/example.com/v1":
		return reply(200, `{"kind":"APIResourceList","groupVersion":"example.com/v1","resources":[{"name":"widgets","kind":"Widget","namespaced":true,"verbs":["get"]}]}`), nil
	}
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
	}
	s.requests = append(s.requests, sent{r.Method, r.URL.RequestURI(), r.Header.Get("Content-Type"), r.Header.Get("Accept"), string(body)})
	resp := s.answer(r, body)
	if resp == nil {
		return nil, io.ErrUnexpectedEOF
	}
	return resp, nil
}

func reply(code int, body string, headers ...string) *http.Response {
	h := http.Header{"Content-Type": {"application/json"}}
	for i := 0; i+1 < len(headers); i += 2 {
		h.Set(headers[i], headers[i+1])
	}
	return &http.Response{StatusCode: code, Header: h, ContentLength: int64(len(body)), Body: io.NopCloser(strings.NewReader(body))}
}

func refuse(code int, reason string, headers ...string) *http.Response {
	return reply(code, fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d,"reason":%q,"message":"refused","details":{"name":"a","kind":"configmaps"}}`, code, reason), headers...)
}

// echo answers with what was sent, and a revision.
func echo(_ *http.Request, body []byte) *http.Response {
	var obj map[string]any
	if json.Unmarshal(body, &obj) != nil || obj == nil {
		obj = map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}
	}
	metadata, _ := obj["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{"name": "a", "namespace": "default"}
		obj["metadata"] = metadata
	}
	metadata["resourceVersion"] = "7"
	data, _ := json.Marshal(obj)
	return reply(200, string(data))
}

func newClient(t *testing.T, answer func(*http.Request, []byte) *http.Response, opts client.Options) (client.Client, *script) {
	t.Helper()
	s := &script{answer: answer}
	if opts.Scheme == nil {
		scheme, err := client.NewScheme(corev1.AddToScheme, appsv1.AddToScheme)
		if err != nil {
			t.Fatal(err)
		}
		opts.Scheme = scheme
	}
	opts.Log = slog.New(slog.DiscardHandler)
	c, err := client.New(&rest.Config{Host: "http://server.invalid", Transport: s}, opts)
	if err != nil {
		t.Fatal(err)
	}
	return c, s
}

func configMap() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "default"}, Data: map[string]string{"k": "v"}}
}

var widget = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}

func TestRequestsAreThoseOfKubernetes(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	const typedAccept = "application/vnd.kubernetes.protobuf,application/json"
	for _, c := range []struct {
		name string
		call func(c client.Client) error
		want sent
	}{
		{"get", func(c client.Client) error {
			return c.Get(ctx, client.ObjectKey{Namespace: "default", Name: "a"}, &corev1.ConfigMap{})
		}, sent{"GET", "/api/v1/namespaces/default/configmaps/a", "", typedAccept, ""}},
		{"get cluster-scoped", func(c client.Client) error {
			return c.Get(ctx, client.ObjectKey{Name: "n"}, &corev1.Node{})
		}, sent{"GET", "/api/v1/nodes/n", "", typedAccept, ""}},
		{"get unstructured", func(c client.Client) error {
			return c.Get(ctx, client.ObjectKey{Namespace: "x", Name: "a"}, client.NewUnstructured(widget))
		}, sent{"GET", "/apis/example.com/v1/namespaces/x/widgets/a", "", "application/json", ""}},
		{"get metadata", func(c client.Client) error {
			return c.Get(ctx, client.ObjectKey{Namespace: "x", Name: "a"}, client.NewMetadata(widget))
		}, sent{"GET", "/apis/example.com/v1/namespaces/x/widgets/a", "", "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json", ""}},
		{"list", func(c client.Client) error {
			return c.List(ctx, &corev1.ConfigMapList{}, client.InNamespace("default"), client.MatchingLabels{"a": "b"}, client.HasLabels{"c"}, client.MatchingFields{"metadata.name": "x"}, client.Limit(5), client.Continue("token"))
		}, sent{"GET", "/api/v1/namespaces/default/configmaps?continue=token&fieldSelector=metadata.name%3Dx&labelSelector=a%3Db%2Cc&limit=5", "", typedAccept, ""}},
		{"create", func(c client.Client) error {
			u := client.NewUnstructured(widget)
			u.SetName("w")
			u.SetNamespace("x")
			return c.Create(ctx, u, client.DryRunAll, client.FieldOwner("me"), client.FieldValidation("Strict"))
		}, sent{"POST", "/apis/example.com/v1/namespaces/x/widgets?dryRun=All&fieldManager=me&fieldValidation=Strict", "application/json", "application/json", `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w","namespace":"x"}}`}},
		{"raw patch", func(c client.Client) error {
			return c.Patch(ctx, configMap(), client.RawPatch(types.JSONPatchType, []byte(`[]`)))
		}, sent{"PATCH", "/api/v1/namespaces/default/configmaps/a", "application/json-patch+json", typedAccept, "[]"}},
		{"status patch", func(c client.Client) error {
			return c.Status().Patch(ctx, configMap(), client.RawPatch(types.MergePatchType, []byte(`{}`)))
		}, sent{"PATCH", "/api/v1/namespaces/default/configmaps/a/status", "application/merge-patch+json", typedAccept, "{}"}},
		{"delete", func(c client.Client) error {
			return c.Delete(ctx, configMap(), client.GracePeriodSeconds(0), client.PropagationPolicy(metav1.DeletePropagationForeground), client.PreconditionsOf(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{UID: "u", ResourceVersion: "5"}}), client.DryRunAll)
		}, sent{"DELETE", "/api/v1/namespaces/default/configmaps/a", "application/json", typedAccept, `{"kind":"DeleteOptions","apiVersion":"v1","gracePeriodSeconds":0,"preconditions":{"uid":"u","resourceVersion":"5"},"propagationPolicy":"Foreground","dryRun":["All"]}`}},
		{"delete all of", func(c client.Client) error {
			return c.DeleteAllOf(ctx, &corev1.ConfigMap{}, client.InNamespace("x"), client.MatchingLabels{"a": "b"})
		}, sent{"DELETE", "/api/v1/namespaces/x/configmaps?labelSelector=a%3Db", "application/json", "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json", `{"kind":"DeleteOptions","apiVersion":"v1"}`}},
		{"apply typed", func(c client.Client) error {
			return c.Apply(ctx, configMap(), client.FieldOwner("me"), client.ForceOwnership)
		}, sent{"PATCH", "/api/v1/namespaces/default/configmaps/a?fieldManager=me&force=true", "application/apply-patch+yaml", typedAccept, `{"apiVersion":"v1","data":{"k":"v"},"kind":"ConfigMap","metadata":{"name":"a","namespace":"default"}}`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			direct, s := newClient(t, echo, client.Options{})
			if err := c.call(direct); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]sent{c.want}, s.requests); diff != "" {
				t.Fatalf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestBuiltInKindsTravelAsProtobufUnlessRefused(t *testing.T) {
	t.Parallel()
	for _, code := range []int{http.StatusNotAcceptable, http.StatusUnsupportedMediaType} {
		direct, s := newClient(t, func(r *http.Request, body []byte) *http.Response {
			if strings.Contains(r.Header.Get("Accept"), "protobuf") {
				return refuse(code, map[int]string{406: "NotAcceptable", 415: "UnsupportedMediaType"}[code])
			}
			return echo(r, body)
		}, client.Options{})
		for range 2 {
			if err := direct.Create(context.Background(), configMap()); err != nil {
				t.Fatal(err)
			}
		}
		var types []string
		for _, r := range s.requests {
			types = append(types, r.ContentType)
		}
		if diff := cmp.Diff([]string{codec.Protobuf, codec.JSON, codec.JSON}, types); diff != "" {
			t.Fatalf("%d: a refusal is remembered: (-want +got)\n%s", code, diff)
		}
	}
}

func TestProtobufAnswersAreRead(t *testing.T) {
	t.Parallel()
	direct, _ := newClient(t, func(*http.Request, []byte) *http.Response {
		cm := configMap()
		cm.APIVersion, cm.Kind = "v1", "ConfigMap"
		data, err := codec.Encode(codec.Protobuf, cm)
		if err != nil {
			t.Error(err)
		}
		return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {codec.Protobuf}}, Body: io.NopCloser(bytes.NewReader(data))}
	}, client.Options{})
	got := &corev1.ConfigMap{Data: map[string]string{"stale": "1"}}
	if err := direct.Get(context.Background(), client.ObjectKey{Namespace: "default", Name: "a"}, got); err != nil {
		t.Fatal(err)
	}
	want := configMap()
	want.APIVersion, want.Kind = "v1", "ConfigMap"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("nothing of the old content may survive: (-want +got)\n%s", diff)
	}
}

func TestRetryAfterIsHonoured(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		direct, _ := newClient(t, func(r *http.Request, body []byte) *http.Response {
			if tries++; tries <= 2 {
				return refuse(429, "TooManyRequests", "Retry-After", "7")
			}
			return echo(r, body)
		}, client.Options{})
		start := time.Now()
		if err := direct.Create(context.Background(), configMap()); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took != 14*time.Second {
			t.Fatalf("took %s, want 14s", took)
		}
		tries = 0
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := direct.Create(ctx, configMap()); !apierrors.IsTooManyRequests(err) {
			t.Fatalf("a wait that would pass the deadline: %v, want the server's answer at once", err)
		}
	})
}

func TestBrokenReadsAreRetriedAndWritesAreNot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		direct, _ := newClient(t, func(r *http.Request, body []byte) *http.Response {
			if tries++; tries == 1 {
				return nil
			}
			return echo(r, body)
		}, client.Options{})
		if err := direct.Get(context.Background(), client.ObjectKey{Namespace: "default", Name: "a"}, &corev1.ConfigMap{}); err != nil {
			t.Fatal(err)
		}
		tries = 0
		if err := direct.Create(context.Background(), configMap()); !errors.Is(err, io.ErrUnexpectedEOF) || tries != 1 {
			t.Fatalf("%v after %d tries: a write may have happened", err, tries)
		}
	})
}

func TestErrorsNameTheCallAndKeepTheirClass(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for code, check := range map[int]struct {
		reason string
		is     func(error) bool
	}{
		400: {"BadRequest", apierrors.IsBadRequest}, 401: {"Unauthorized", apierrors.IsUnauthorized}, 403: {"Forbidden", apierrors.IsForbidden},
		404: {"NotFound", apierrors.IsNotFound}, 409: {"Conflict", apierrors.IsConflict}, 410: {"Gone", apierrors.IsGone}, 422: {"Invalid", apierrors.IsInvalid},
		429: {"TooManyRequests", apierrors.IsTooManyRequests}, 500: {"InternalError", apierrors.IsInternalError}, 503: {"ServiceUnavailable", apierrors.IsServiceUnavailable},
	} {
		for name, answer := range map[string]*http.Response{"with a status": refuse(code, check.reason), "with text": reply(code, "no", "Content-Type", "text/plain")} {
			direct, _ := newClient(t, func(*http.Request, []byte) *http.Response { return answer }, client.Options{})
			err := direct.Get(ctx, client.ObjectKey{Namespace: "default", Name: "a"}, &corev1.ConfigMap{})
			if !check.is(err) || !strings.HasPrefix(err.Error(), "get ConfigMap default/a: ") {
				t.Errorf("%d %s: %v", code, name, err)
			}
		}
	}
	if client.IgnoreNotFound(apierrors.NewNotFound(schema.GroupResource{}, "x")) != nil || client.IgnoreAlreadyExists(apierrors.NewAlreadyExists(schema.GroupResource{}, "x")) != nil {
		t.Error("an error was not ignored")
	}
}

func TestMistakesAreRefusedBeforeTheWire(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	direct, s := newClient(t, echo, client.Options{})
	other := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "default"}}
	other.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"no name":            {direct.Get(ctx, client.ObjectKey{Namespace: "x"}, &corev1.ConfigMap{}), "set metadata.name"},
		"no namespace":       {direct.Get(ctx, client.ObjectKey{Name: "x"}, &corev1.ConfigMap{}), "set metadata.namespace"},
		"no kind":            {direct.Get(ctx, client.ObjectKey{Name: "x"}, &unstructured.Unstructured{}), "SetGroupVersionKind"},
		"no owner":           {direct.Apply(ctx, configMap()), "FieldOwner"},
		"force on update":    {direct.Update(ctx, configMap(), client.ForceOwnership), "for Apply only"},
		"metadata create":    {direct.Create(ctx, &other), "metadata-only"},
		"label value":        {direct.List(ctx, &corev1.ConfigMapList{}, client.MatchingLabels{"a": "not valid!"}), "label selector a"},
		"unregistered":       {direct.Get(ctx, client.ObjectKey{Name: "x"}, &batchv1.Job{}), `batchv1.AddToScheme // import batchv1 "k8s.io/api/batch/v1"`},
		"unknown kind":       {direct.Get(ctx, client.ObjectKey{Name: "x"}, client.NewUnstructured(schema.GroupVersionKind{Group: "no.io", Version: "v1", Kind: "No"})), "install its CustomResourceDefinition"},
		"lock without rv":    {direct.Patch(ctx, configMap(), client.MergeFrom(configMap(), client.OptimisticLock)), "resourceVersion is empty"},
		"patch of two types": {direct.Patch(ctx, configMap(), client.MergeFrom(&corev1.Pod{})), "pass a DeepCopy"},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("%s: %v, want something with %q", name, c.err, c.want)
		}
	}
	if len(s.requests) != 0 {
		t.Errorf("%d requests were sent: %v", len(s.requests), s.requests)
	}
}

func TestMergeFromSendsWhatHasChanged(t *testing.T) {
	t.Parallel()
	original := configMap()
	original.ResourceVersion = "5"
	original.Labels = map[string]string{"keep": "1", "drop": "1"}
	changed := original.DeepCopy()
	changed.APIVersion, changed.Kind = "v1", "ConfigMap" // no change
	delete(changed.Labels, "drop")
	changed.Data["n"] = "9007199254740993"
	for want, p := range map[string]client.Patch{
		`{"data":{"n":"9007199254740993"},"metadata":{"labels":{"drop":null}}}`:                       client.MergeFrom(original),
		`{"data":{"n":"9007199254740993"},"metadata":{"labels":{"drop":null},"resourceVersion":"5"}}`: client.MergeFrom(original, client.OptimisticLock),
	} {
		if got, err := p.Data(changed); err != nil || string(got) != want {
			t.Errorf("got %s, %v\nwant %s", got, err, want)
		}
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", ResourceVersion: "5"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "x", Image: "1"}, {Name: "y", Image: "1"}}}}
	next := pod.DeepCopy()
	next.Spec.Containers[1].Image = "2"
	const want = `{"metadata":{"resourceVersion":"5"},"spec":{"$setElementOrder/containers":[{"name":"x"},{"name":"y"}],"containers":[{"image":"2","name":"y"}]}}`
	if got, err := strategic.MergeFrom(pod, true).Data(next); err != nil || string(got) != want {
		t.Errorf("strategic: got %s, %v\nwant %s", got, err, want)
	}
}

func TestApplyClaimsNoZeroValues(t *testing.T) {
	t.Parallel()
	scheme, err := client.NewScheme(corev1.AddToScheme, appsv1.AddToScheme)
	if err != nil {
		t.Fatal(err)
	}
	zero := int32(0)
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "d", Namespace: "default", CreationTimestamp: metav1.Now(), Generation: 5, ManagedFields: []metav1.ManagedFieldsEntry{{}}},
		Spec: appsv1.DeploymentSpec{
			Replicas: &zero,
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				Containers: []corev1.Container{{Name: "c", Env: []corev1.EnvVar{{Name: "EMPTY"}}}},
				Volumes:    []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
			}},
		},
	}
	body, err := codec.ApplyBody(d, func(o runtime.Object) (schema.GroupVersionKind, error) { return client.KindOf(scheme, o) })
	if err != nil {
		t.Fatal(err)
	}
	got, _ := json.Marshal(body)
	const want = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d","namespace":"default"},"spec":{"replicas":0,"template":{"spec":{"containers":[{"env":[{"name":"EMPTY"}],"name":"c"}],"volumes":[{"emptyDir":{},"name":"v"}]}}}}`
	if string(got) != want {
		t.Fatalf("got  %s\nwant %s", got, want)
	}
}

func TestWritesAreAskedForAndObserved(t *testing.T) {
	t.Parallel()
	refusal := errors.New("not the leader")
	var asked, seen []string
	direct, s := newClient(t, echo, client.Options{
		BeforeWrite: func(_ context.Context, call *client.Call) error {
			asked = append(asked, fmt.Sprint(call.Verb, " ", call.Key))
			if call.Verb == client.VerbDelete {
				return refusal
			}
			return nil
		},
	})
	ctx := client.WithObserver(context.Background(), func(_ context.Context, call *client.Call) {
		seen = append(seen, fmt.Sprint(call.Verb, " ", call.ResourceVersion, " ", call.Err != nil))
	})
	_ = direct.Get(ctx, client.ObjectKey{Namespace: "default", Name: "a"}, &corev1.ConfigMap{})
	_ = direct.Patch(ctx, configMap(), client.RawPatch(types.MergePatchType, []byte("{}")))
	if err := direct.Delete(ctx, configMap()); !errors.Is(err, refusal) {
		t.Fatalf("a fenced write: %v", err)
	}
	if diff := cmp.Diff([]string{"patch default/a", "delete default/a"}, asked); diff != "" {
		t.Errorf("asked: (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]string{"get 7 false", "patch 7 false", "delete  true"}, seen); diff != "" {
		t.Errorf("observed: (-want +got)\n%s", diff)
	}
	if len(s.requests) != 2 {
		t.Errorf("%d requests, want 2", len(s.requests))
	}
}

func TestWarningsAndAttemptsAreReported(t *testing.T) {
	t.Parallel()
	var warnings []string
	var attempts []wire.Attempt
	direct, _ := newClient(t, func(r *http.Request, body []byte) *http.Response {
		resp := echo(r, body)
		resp.Header.Set("Warning", `299 - "v1 Old is deprecated"`)
		return resp
	}, client.Options{
		Warnings:  func(_ context.Context, text string) { warnings = append(warnings, text) },
		OnAttempt: func(a wire.Attempt) { attempts = append(attempts, a) },
	})
	if err := direct.Create(context.Background(), configMap()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"v1 Old is deprecated"}, warnings); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	last := attempts[len(attempts)-1]
	if last.Verb != "create" || last.Code != "200" || last.Method != "POST" || last.Host != "server.invalid" {
		t.Errorf("attempt %+v", last)
	}
}

func TestInterceptorsStandInFrontOfEveryCall(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	direct, s := newClient(t, echo, client.Options{})
	injected := errors.New("injected")
	c := interceptor.New(direct, interceptor.Funcs{
		Update: func(context.Context, client.Client, client.Object, ...client.WriteOption) error { return injected },
		SubResourcePatch: func(_ context.Context, _ client.Client, name string, _ client.Object, _ client.Patch, _ ...client.WriteOption) error {
			return fmt.Errorf("%s: %w", name, injected)
		},
		Create: func(ctx context.Context, next client.Client, obj client.Object, opts ...client.WriteOption) error {
			obj.SetAnnotations(map[string]string{"seen": "yes"})
			return next.Create(ctx, obj, opts...)
		},
	})
	if err := c.Update(ctx, configMap()); !errors.Is(err, injected) {
		t.Error(err)
	}
	if err := c.Status().Patch(ctx, configMap(), client.RawPatch(types.MergePatchType, nil)); err == nil || err.Error() != "status: injected" {
		t.Error(err)
	}
	if err := c.Create(ctx, client.NewUnstructured(widget)); err == nil {
		t.Error("a namespaced object without a namespace was created")
	}
	if err := c.Get(ctx, client.ObjectKey{Namespace: "default", Name: "a"}, &corev1.ConfigMap{}); err != nil || len(s.requests) != 1 {
		t.Errorf("%v after %d requests", err, len(s.requests))
	}
}
