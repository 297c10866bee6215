// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"context"
	"log/slog"
	"net/http"
	"strconv"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/steer-dev/steer/cache"
	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/steertest"
)

// rig is a cache on a control plane, with a wire between them.
type rig struct {
	t      testing.TB
	server *server
	live   client.Client
	cache  *cache.Cache
	client client.Client
}

// server is the control plane, past the wire, and the wire.
type server struct {
	*wire
	env   *steertest.Env
	minor string // that /version names; empty leaves it to the server
	terse bool
	floor uint64 // watches from before it are refused
}

func newServer(t testing.TB) *server {
	t.Helper()
	scheme, err := client.NewScheme(corev1.AddToScheme, addWidgets)
	if err != nil {
		t.Fatal(err)
	}
	var namespaces []client.Object
	for _, name := range []string{"one", "two", "three", "other"} {
		namespaces = append(namespaces, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	s := &server{env: steertest.New(t, steertest.Options{Scheme: scheme, Objects: namespaces})}
	transport, err := rest.TransportFor(s.env.Config)
	if err != nil {
		t.Fatal(err)
	}
	s.wire = newWire(answering{s, transport})
	return s
}

// answering is the server, except for what a test has it say.
type answering struct {
	*server
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (a answering) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Path == "/version" && a.minor != "" {
		return answerWith(http.StatusOK, `{"major":"1","minor":"`+a.minor+`"}`), nil
	}
	if resp := expired(a.floor)(r); resp != nil {
		return resp, nil
	}
	resp, err := a.next.RoundTrip(r)
	if err == nil && a.terse && r.Method == http.MethodDelete {
		_ = resp.Body.Close()
		return answerWith(http.StatusOK, `{"kind":"Status","apiVersion":"v1","status":"Success"}`), nil
	}
	return resp, err
}

func newRig(t testing.TB, opts cache.Options) *rig {
	t.Helper()
	s := newServer(t)
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	live, err := client.New(&rest.Config{Host: s.env.Config.Host, Transport: s.wire}, client.Options{Scheme: s.env.Client.Scheme(), JSONOnly: true, Log: opts.Log})
	if err != nil {
		t.Fatal(err)
	}
	opts.DetectMutation = true
	c, err := cache.New(live, opts)
	if err != nil {
		t.Fatal(err)
	}
	return &rig{t, s, live, c, cache.NewClient(live, c)}
}

// inBubble runs the test with virtual time; the cache is stopped at its end.
func inBubble(t *testing.T, opts cache.Options, test func(t *testing.T, r *rig)) {
	t.Parallel()
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, opts)
		defer r.cache.Stop()
		test(t, r)
	})
}

// Watches is the number of open watches, once nothing else in the bubble can go on.
func (s *server) Watches() int {
	synctest.Wait()
	return s.wire.Watches()
}

// ServeWatchList has the server name a minor version.
func (s *server) ServeWatchList(minor string) { s.minor = minor }

// AnswerTersely has deletions of all answered by a Status, without the objects.
func (s *server) AnswerTersely(on bool) { s.terse = on }

// Compact has the server refuse watches from before now, with 410. What open watches
// have not delivered yet stays theirs.
func (s *server) Compact() { s.floor = s.Revision() }

// Revision is the newest revision.
func (s *server) Revision() uint64 {
	s.env.Helper()
	var list corev1.ConfigMapList
	s.must(s.env.Client.List(context.Background(), &list, client.InNamespace("default"), client.Limit(1)))
	n, _ := strconv.ParseUint(list.ResourceVersion, 10, 64)
	return n
}

func (s *server) must(err error) {
	s.env.Helper()
	if err != nil {
		s.env.Fatal(err)
	}
}

// ServeWidgets installs, or removes, the custom kind Widget.
func (s *server) ServeWidgets(on bool) {
	s.env.Helper()
	const definition = "widgets.example.com"
	if on {
		s.env.Apply("testdata/widgets.yaml")
		return
	}
	crd := client.NewMetadata(metav1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	crd.APIVersion, crd.Name = "apiextensions.k8s.io/v1", definition
	s.must(s.env.Client.Delete(context.Background(), crd))
}

// object is a ConfigMap or a Widget with a value.
func (s *server) object(resource, namespace, name string, data, labels map[string]string) client.Object {
	metadata := metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels}
	if resource == "widgets" {
		return &widget{ObjectMeta: metadata, Spec: widgetSpec{Value: data["v"]}}
	}
	return &corev1.ConfigMap{ObjectMeta: metadata, Data: data}
}

// Put creates or replaces an object behind the client's back and returns its revision.
func (s *server) Put(resource, namespace, name string, data, labels map[string]string) string {
	s.env.Helper()
	obj := s.object(resource, namespace, name, data, labels)
	err := s.env.Client.Create(context.Background(), obj)
	if apierrors.IsAlreadyExists(err) {
		obj = s.object(resource, namespace, name, data, labels)
		err = s.env.Client.Update(context.Background(), obj)
	}
	s.must(err)
	return obj.GetResourceVersion()
}

// Delete removes an object behind the client's back.
func (s *server) Delete(resource, namespace, name string) {
	s.env.Helper()
	s.must(client.IgnoreNotFound(s.env.Client.Delete(context.Background(), s.object(resource, namespace, name, nil, nil))))
}
