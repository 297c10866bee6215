// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package webhookclient_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/controlplane/webhookclient"
	"github.com/steer-dev/steer/storage"
)

// service is a Service of the namespace "default" with the port 443.
func service(name string, spec corev1.ServiceSpec) (storage.Key, any) {
	spec.Ports = []corev1.ServicePort{{Name: "web", Port: 443}, {Name: "other", Port: 80}}
	return storage.Key{Bucket: "services", Name: "default/" + name},
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: spec}
}

func behind(name string, port int32) *webhookclient.Service {
	return &webhookclient.Service{Namespace: "default", Name: name, Port: port}
}

func endpointSlice(name, of string, port int32, endpoints ...discoveryv1.Endpoint) (storage.Key, any) {
	web := "web"
	return storage.Key{Bucket: "discovery.k8s.io/endpointslices", Name: "default/" + name}, &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: of}},
		AddressType: discoveryv1.AddressTypeIPv4, Endpoints: endpoints,
		Ports: []discoveryv1.EndpointPort{{Name: &web, Port: &port}},
	}
}

func TestClientFindsTheEndpointsOfAService(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	w := serve(t, a.issue(t, hour(), "sliced.default.svc", "plain.default.svc", "external.default.svc"), answers)
	ready, unready := true, false
	here := []string{"127.0.0.1"}
	objects := map[storage.Key]any{}
	add := func(key storage.Key, obj any) { objects[key] = obj }
	add(service("sliced", corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, ClusterIP: "192.0.2.1", IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol}}))
	add(endpointSlice("a", "sliced", w.port(),
		// Nothing listens on the first; the second must not be tried.
		discoveryv1.Endpoint{Addresses: []string{"127.0.0.2"}},
		discoveryv1.Endpoint{Addresses: []string{"192.0.2.2"}, Conditions: discoveryv1.EndpointConditions{Ready: &unready}},
		discoveryv1.Endpoint{Addresses: here, Conditions: discoveryv1.EndpointConditions{Ready: &ready}}))
	add(endpointSlice("b", "another", 1, discoveryv1.Endpoint{Addresses: []string{"192.0.2.3"}}))
	add(service("plain", corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP}))
	objects[storage.Key{Bucket: "endpoints", Name: "default/plain"}] = &corev1.Endpoints{Subsets: []corev1.EndpointSubset{{ //nolint:staticcheck // what is tested
		Addresses: []corev1.EndpointAddress{{IP: "127.0.0.1"}}, NotReadyAddresses: []corev1.EndpointAddress{{IP: "192.0.2.1"}},
		Ports: []corev1.EndpointPort{{Name: "web", Port: w.port()}, {Name: "other", Port: 1}},
	}}}
	add(service("external", corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"}))
	add(service("empty", corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, ClusterIP: "192.0.2.1"}))
	c := newClient(t, webhookclient.Options{}, false, objects)

	for _, name := range []string{"sliced", "plain"} {
		if got := mustPost(t, c, webhookclient.Target{Service: behind(name, 0), Path: "/p", CABundle: a.bundle()}); got != "/p?timeout=30s review" {
			t.Errorf("%s: the webhook got %q", name, got)
		}
	}
	mustPost(t, c, webhookclient.Target{Service: behind("external", w.port()), CABundle: a.bundle()})
	wantError(t, c, webhookclient.Target{Service: behind("empty", 0)}, `Post "https://empty.default.svc:443/?timeout=30s": no endpoints available for service "empty"`)
	wantError(t, c, webhookclient.Target{Service: behind("sliced", 8443)}, `Post "https://sliced.default.svc:8443/?timeout=30s": no service port 8443 found for service "sliced"`)
	wantError(t, c, webhookclient.Target{Service: behind("absent", 0)}, `Post "https://absent.default.svc:443/?timeout=30s": service "absent" not found`)
	wantError(t, c, webhookclient.Target{}, "webhook configuration must have either service or URL")
}

func TestClientVerifiesTheNameOfAService(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	w := serve(t, a.issue(t, hour(), "127.0.0.1", "other.default.svc"), answers)
	c := newClient(t, webhookclient.Options{Resolve: func(context.Context, webhookclient.Service) (webhookclient.Backend, bool) {
		return webhookclient.Backend{Address: w.Listener.Addr().String()}, true
	}}, false, nil)
	wantError(t, c, webhookclient.Target{Service: behind("hook", 0), CABundle: a.bundle()}, "not hook.default.svc")
	mustPost(t, c, webhookclient.Target{Service: behind("other", 0), CABundle: a.bundle()})
}

func TestClientCallsAServiceInProcess(t *testing.T) {
	t.Parallel()
	c := newClient(t, webhookclient.Options{Resolve: func(_ context.Context, s webhookclient.Service) (webhookclient.Backend, bool) {
		return webhookclient.Backend{Transport: inProcess(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, s.Namespace+"/"+s.Name)
		})}, s.Name == "hook"
	}}, false, nil)
	if got := mustPost(t, c, webhookclient.Target{Service: behind("hook", 0)}); got != "default/hook" {
		t.Errorf("the answer is %q", got)
	}
	wantError(t, c, webhookclient.Target{Service: behind("other", 0)}, `service "other" not found`)
}

// inProcess answers requests with a handler.
type inProcess http.HandlerFunc

func (h inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	h(w, r)
	return w.Result(), nil
}

func TestClientAsksOnceWhereAServiceIs(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	first := serve(t, a.issue(t, hour(), "hook.default.svc"), answers)
	second := serve(t, a.issue(t, hour(), "hook.default.svc"), answers)
	at, asked := first, 0
	c := newClient(t, webhookclient.Options{Resolve: func(context.Context, webhookclient.Service) (webhookclient.Backend, bool) {
		asked++
		return webhookclient.Backend{Address: at.Listener.Addr().String()}, true
	}}, false, nil)
	target := webhookclient.Target{Service: behind("hook", 443), CABundle: a.bundle()}
	for requests := 1; requests <= 2; requests++ {
		if mustPost(t, c, target); asked != requests {
			t.Errorf("asked %d times for %d requests", asked, requests)
		}
	}
	at = second // the Service has moved: no connection to its former address is used
	if mustPost(t, c, target); second.connections.Load() != 1 {
		t.Error("the request after the move went to the former address")
	}
}
