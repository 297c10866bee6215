// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apiservice_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/steer-dev/steer/controlplane/apiservice"
	"github.com/steer-dev/steer/controlplane/component"
	"github.com/steer-dev/steer/controlplane/component/componenttest"
	"github.com/steer-dev/steer/controlplane/core"
	"github.com/steer-dev/steer/controlplane/internal/egress"
	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/controlplane/internal/step/steptest"
	"github.com/steer-dev/steer/storage"
)

// other is an API server in process. Its fields are set while no request is under way.
type other struct {
	mu sync.Mutex
	// answers has answers by path; a path that is not there is answered 404.
	answers map[string]func(*http.Request) (*http.Response, error)
	seen    []*http.Request
}

// RoundTrip implements [http.RoundTripper].
func (o *other) RoundTrip(r *http.Request) (*http.Response, error) {
	o.mu.Lock()
	o.seen = append(o.seen, r)
	answer := o.answers[r.URL.Path]
	o.mu.Unlock()
	if answer == nil {
		answer = text(http.StatusNotFound, "", "not found")
	}
	response, err := answer(r)
	if response != nil {
		response.Request = r
	}
	return response, err
}

// requests returns the requests since the last call, "method path" each.
func (o *other) requests() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	var out []string
	for _, r := range o.seen {
		out = append(out, r.Method+" "+r.URL.Path)
	}
	o.seen = nil
	return out
}

// text is an answer.
func text(code int, contentType, body string, header ...string) func(*http.Request) (*http.Response, error) {
	return func(*http.Request) (*http.Response, error) {
		h := http.Header{"Content-Type": {contentType}}
		for i := 0; i < len(header); i += 2 {
			h.Set(header[i], header[i+1])
		}
		return &http.Response{StatusCode: code, Status: fmt.Sprint(code, " ", http.StatusText(code)), ProtoMajor: 1, ProtoMinor: 1, Header: h, ContentLength: -1, Body: io.NopCloser(strings.NewReader(body))}, nil
	}
}

// down is a server that does not answer.
func down(*http.Request) (*http.Response, error) { return nil, errors.New("connection refused") }

// resolve says that a transport leads to the Service default/wings.
func resolve(transport http.RoundTripper) func(context.Context, egress.Service) (egress.Backend, bool) {
	return func(_ context.Context, s egress.Service) (egress.Backend, bool) {
		return egress.Backend{Transport: transport}, s.Namespace == "default" && s.Name == "wings"
	}
}

// world is a server with APIServices, and the aggregation that is told of them.
type world struct {
	*componenttest.Server
	t           *testing.T
	aggregation *apiservice.Aggregation
}

// newWorld returns a server whose parts are APIServices, the built-in kinds and the
// parts that declare returns.
func newWorld(t *testing.T, services egress.Services, declare func(*component.Deps, *apiservice.Aggregation) component.List) *world {
	t.Helper()
	w := &world{t: t}
	identity := apiservice.Identity{Certificate: func() (*tls.Certificate, error) { return &tls.Certificate{}, nil }}
	w.Server = componenttest.New(t, func(d *component.Deps) component.List {
		services.Store = d.Store
		w.aggregation = apiservice.NewAggregation(d.Store, d.Server, &services, identity, slog.New(slog.DiscardHandler))
		list := component.List{{Name: "kinds", Resources: core.Resources()}, w.aggregation.Component(*d)}
		if declare != nil {
			list = append(list, declare(d, w.aggregation)...)
		}
		return list
	})
	return w
}

// controllers are all of the package.
func controllers(_ *component.Deps, a *apiservice.Aggregation) component.List {
	return component.List{component.ServerController(apiservice.NewController()), component.ServerController(apiservice.NewAvailability(a)), a.DiscoveryComponent()}
}

// wings is an APIService that the Service default/wings serves.
func wings(change ...func(*v1.APIService)) *v1.APIService {
	port := int32(443)
	s := &v1.APIService{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apiregistration.k8s.io/v1", Kind: "APIService"},
		ObjectMeta: metav1.ObjectMeta{Name: "v1.example.com", UID: "uid-of-wings"},
		Spec: v1.APIServiceSpec{
			Group: "example.com", Version: "v1", GroupPriorityMinimum: 1000, VersionPriority: 100, InsecureSkipTLSVerify: true,
			Service: &v1.ServiceReference{Namespace: "default", Name: "wings", Port: &port},
		},
	}
	for _, c := range change {
		c(s)
	}
	return s
}

// is gives an APIService its condition.
func is(available v1.ConditionStatus) func(*v1.APIService) {
	return func(s *v1.APIService) {
		s.Status.Conditions = []v1.APIServiceCondition{{Type: v1.Available, Status: available}}
	}
}

// Keys of what tests store.
var (
	wingsKey   = storage.Key{Bucket: apiservice.Bucket, Name: "v1.example.com"}
	serviceKey = storage.Key{Bucket: "services", Name: "default/wings"}
	sliceKey   = storage.Key{Bucket: "discovery.k8s.io/endpointslices", Name: "default/wings-1"}

	endpointsKey = storage.Key{Bucket: "endpoints", Name: "default/wings"}
)

func serviceOf(kind corev1.ServiceType, port int32, name string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "wings"},
		Spec:       corev1.ServiceSpec{Type: kind, ExternalName: "wings.invalid", Ports: []corev1.ServicePort{{Port: port, Name: name}}},
	}
}

func sliceOf(port string, ready *bool) *discoveryv1.EndpointSlice {
	number := int32(8443)
	return &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "wings-1", Labels: map[string]string{discoveryv1.LabelServiceName: "wings"}},
		Endpoints:  []discoveryv1.Endpoint{{Addresses: []string{"127.0.0.1"}, Conditions: discoveryv1.EndpointConditions{Ready: ready}}},
		Ports:      []discoveryv1.EndpointPort{{Name: &port, Port: &number}},
	}
}

func endpointsOf(port string) *corev1.Endpoints { // what is tested
	return &corev1.Endpoints{ // what is tested
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "wings"},
		Subsets: []corev1.EndpointSubset{{ //nolint:staticcheck // what is tested
			Addresses: []corev1.EndpointAddress{{IP: "127.0.0.1"}}, Ports: []corev1.EndpointPort{{Name: port, Port: 8443}},
		}},
	}
}

// driven is a controller that sees each write, and whose steps the test takes.
type driven struct {
	*world
	controller step.Controller
	cursor     storage.Cursor
	now        time.Time
}

func drive(w *world, c step.Controller) *driven {
	w.t.Helper()
	cursor, err := w.Store.Watch(storage.Range{}, w.Store.Latest().Revision())
	if err != nil {
		w.t.Fatal(err)
	}
	c.Reset(w.Store.Latest())
	return &driven{w, c, cursor, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
}

// put stores an object, nil deletes it.
func (d *driven) put(key storage.Key, o any) {
	d.t.Helper()
	steptest.Put(d.t, d.Store, key, o)
	if err := d.aggregation.Load(d.t.Context()); err != nil {
		d.t.Fatal(err)
	}
}

// requests shows the controller what was written, and returns the requests of its step.
func (d *driven) requests() []step.Request {
	d.t.Helper()
	batch, err := d.cursor.Poll()
	if err != nil {
		d.t.Fatal(err)
	}
	for _, e := range batch.Events {
		steptest.Observe(d.controller, e)
	}
	return d.controller.Sync(d.Store.Latest(), d.now)
}

// step takes a step, carries out its requests and reports them. It returns a line for each.
func (d *driven) step() string {
	d.t.Helper()
	var lines []string
	for _, r := range d.requests() {
		lines = append(lines, rendered(d.t, r))
		d.controller.Done(r, d.carry(r))
	}
	return strings.Join(lines, "\n")
}

// carry carries a request out: those that replace an APIService change the store.
func (d *driven) carry(r step.Request) error {
	if r.Do != nil {
		return r.Do(d.t.Context())
	}
	var s v1.APIService
	switch r.Method {
	case http.MethodPut, http.MethodPost:
		if err := json.Unmarshal(r.Body, &s); err != nil {
			return err
		}
		d.put(storage.Key{Bucket: apiservice.Bucket, Name: s.Name}, &s)
	case http.MethodDelete:
		d.put(r.Subject.Key, nil)
	}
	return nil
}

// rendered is a request in one line, with what it says about availability.
func rendered(t *testing.T, r step.Request) string {
	t.Helper()
	line := r.Method + " " + r.Path
	switch {
	case r.Do != nil:
		return "ask: " + line
	case r.Method == http.MethodDelete:
		return line + " " + string(r.Body)
	}
	var s v1.APIService
	if err := json.Unmarshal(r.Body, &s); err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(r.Path, "/status") {
		return fmt.Sprintf("%s %s group=%s version=%s priorities=%d,%d labels=%v", line, s.Name, s.Spec.Group, s.Spec.Version, s.Spec.GroupPriorityMinimum, s.Spec.VersionPriority, s.Labels)
	}
	for _, c := range s.Status.Conditions {
		line += fmt.Sprintf(" %s=%s %s: %s (%s)", c.Type, c.Status, c.Reason, c.Message, c.LastTransitionTime.UTC().Format(time.TimeOnly))
	}
	return line
}
