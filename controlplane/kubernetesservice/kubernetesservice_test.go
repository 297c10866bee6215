// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetesservice

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/controlplane/internal/step/steptest"
	"github.com/steer-dev/steer/storage"
)

// serving returns a server whose requests are kept instead of sent.
func serving() (*Server, *[]step.Request) {
	var sent []step.Request
	return &Server{
		Store:   storage.NewMemory(storage.MemoryOptions{}),
		NewUID:  func() types.UID { return "uid" },
		Send:    func(_ context.Context, r step.Request) error { sent = append(sent, r); return nil },
		Service: Service{Ranges: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/24")}, Listen: "127.0.0.1:6443"},
	}, &sent
}

func stored[T any](t *testing.T, s *Server, key storage.Key) *T {
	t.Helper()
	rec := s.Store.Latest().Get(key)
	if rec == nil {
		t.Fatalf("there is no %s %s", key.Bucket, key.Name)
	}
	obj := new(T)
	if err := json.Unmarshal(rec.Value, obj); err != nil {
		t.Fatal(err)
	}
	return obj
}

// begin stores the objects of an empty store.
func begin(t *testing.T, s *Server) {
	t.Helper()
	for _, write := range s.missing(s.Store.Latest(), time.Now()) {
		if _, err := s.Store.Commit(t.Context(), write); err != nil {
			t.Fatal(err)
		}
	}
}

func TestServerBootCreatesTheServiceWithItsRange(t *testing.T) {
	t.Parallel()
	s, _ := serving()
	begin(t, s)
	service := stored[corev1.Service](t, s, serviceKey())
	if service.Spec.ClusterIP != "10.0.0.1" || service.Spec.Ports[0].Port != 443 || service.Spec.Ports[0].TargetPort.IntVal != 6443 ||
		service.Labels["component"] != "apiserver" || service.ManagedFields[0].Manager != "kube-apiserver" {
		t.Errorf("the Service is %+v", service)
	}
	r := stored[networkingv1.ServiceCIDR](t, s, rangeKey())
	if r.Spec.CIDRs[0] != "10.0.0.0/24" || r.Status.Conditions[0].Type != "Ready" || len(r.Finalizers) > 0 {
		t.Errorf("the ServiceCIDR is %+v", r)
	}
	ip := stored[networkingv1.IPAddress](t, s, storage.Key{Bucket: "networking.k8s.io/ipaddresses", Name: "10.0.0.1"})
	if ip.Spec.ParentRef.Name != "kubernetes" {
		t.Errorf("the IPAddress is %+v", ip)
	}
	if writes := s.missing(s.Store.Latest(), time.Now()); len(writes) > 0 {
		t.Errorf("a second start creates %d objects", len(writes))
	}
}

func TestServerBootSetsTheFinalizerOfTheRangeController(t *testing.T) {
	t.Parallel()
	s, _ := serving()
	s.RangeFinalizer = "networking.k8s.io/service-cidr-finalizer"
	begin(t, s)
	r := stored[networkingv1.ServiceCIDR](t, s, rangeKey())
	if len(r.Finalizers) != 1 || r.Finalizers[0] != s.RangeFinalizer || r.Status.Conditions[0].Message != "Kubernetes Service CIDR is ready" {
		t.Errorf("the ServiceCIDR is %+v", r)
	}
}

func TestServerAnnounceWritesEndpointsAndPort(t *testing.T) {
	t.Parallel()
	s, sent := serving()
	begin(t, s)
	at := &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 7443}
	if err := s.Announce(t.Context(), at); err != nil {
		t.Fatal(err)
	}
	e := stored[corev1.Endpoints](t, s, endpointsKey()) // clients still read it
	if e.Subsets[0].Addresses[0].IP != "192.0.2.1" || e.Subsets[0].Ports[0].Port != 7443 || e.Labels["endpointslice.kubernetes.io/skip-mirror"] != "true" {
		t.Errorf("the Endpoints are %+v", e)
	}
	slice := stored[discoveryv1.EndpointSlice](t, s, sliceKey())
	if slice.AddressType != "IPv4" || slice.Endpoints[0].Addresses[0] != "192.0.2.1" || *slice.Ports[0].Port != 7443 {
		t.Errorf("the slice is %+v", slice)
	}
	if err := s.Redirect(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(*sent) != 1 || (*sent)[0].Method != "PATCH" || !strings.Contains(string((*sent)[0].Body), `"value":7443`) {
		t.Errorf("sent is %v, want a patch of the port", *sent)
	}
	before := s.Store.Latest().Revision()
	*sent = nil
	at.Port = 6443 // the port of the Service
	s.Service.Listen = ""
	if err := errors.Join(s.Announce(t.Context(), at), s.Redirect(t.Context())); err != nil || len(*sent) > 0 {
		t.Errorf("for the port that the Service has: %v, sent %v", err, *sent)
	}
	if slice := stored[discoveryv1.EndpointSlice](t, s, sliceKey()); slice.Generation != 2 || s.Store.Latest().Revision() == before {
		t.Errorf("the changed slice has generation %d, want 2", slice.Generation)
	}
}

// TestServerKeepTakesNoAnnotationForALabel: the text is the same, and Endpoints without the
// label are mirrored as an EndpointSlice.
func TestServerKeepTakesNoAnnotationForALabel(t *testing.T) {
	t.Parallel()
	s, _ := serving()
	begin(t, s)
	if err := s.Announce(t.Context(), &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 6443}); err != nil {
		t.Fatal(err)
	}
	e := stored[corev1.Endpoints](t, s, endpointsKey()) // clients still read it
	want := maps.Clone(e.Labels)
	e.Annotations, e.Labels = e.Labels, nil
	steptest.Put(t, s.Store, endpointsKey(), e)
	if err := s.keep(namespace)(t.Context(), resource.Change{Object: e, Old: e}); err != nil {
		t.Fatal(err)
	}
	if e := stored[corev1.Endpoints](t, s, endpointsKey()); !maps.Equal(e.Labels, want) {
		t.Errorf("the labels are %v, want %v", e.Labels, want)
	}
}

func TestLeasesOfServersAreWrittenByServersAlone(t *testing.T) {
	t.Parallel()
	lease := func(address, holder string) resource.Object {
		l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "apiserver-1"}}
		if address != "" {
			l.Annotations = map[string]string{addressKey: address}
		}
		if holder != "" {
			l.Spec.HolderIdentity = &holder
		}
		return l
	}
	labelled := lease("192.0.2.1:6443", "a")
	labelled.SetLabels(map[string]string{"a": "b"})
	for _, c := range []struct {
		what      string
		obj, old  resource.Object
		operation resource.Operation
		forbidden bool
	}{
		{what: "a Lease of a client", obj: lease("", "a"), operation: resource.Create},
		{what: "its renewal", obj: lease("", "b"), old: lease("", "a"), operation: resource.Update},
		{what: "an address", obj: lease("203.0.113.1:6443", ""), operation: resource.Create, forbidden: true},
		{what: "an address for a Lease that is there", obj: lease("203.0.113.1:6443", "a"), old: lease("", "a"), operation: resource.Update, forbidden: true},
		{what: "another address", obj: lease("203.0.113.1:6443", "a"), old: lease("192.0.2.1:6443", "a"), operation: resource.Update, forbidden: true},
		{what: "no address", obj: lease("", "a"), old: lease("192.0.2.1:6443", "a"), operation: resource.Update, forbidden: true},
		{what: "a renewal for a server", obj: lease("192.0.2.1:6443", "b"), old: lease("192.0.2.1:6443", "a"), operation: resource.Update, forbidden: true},
		{what: "a label", obj: labelled, old: lease("192.0.2.1:6443", "a"), operation: resource.Update},
		{what: "a deletion", old: lease("192.0.2.1:6443", "a"), operation: resource.Delete},
	} {
		for _, user := range []string{"admin", step.APIServer} {
			err := Leases{}.Validate(t.Context(), &resource.AdmissionRequest{
				Request: &resource.Request{
					Resource: &resource.Resource{Names: resource.Names{Group: "coordination.k8s.io", Plural: "leases"}},
					Name:     "apiserver-1", Namespace: "kube-system", User: &auth.User{Name: user},
				},
				Operation: c.operation, Object: c.obj, Old: c.old,
			})
			if want := c.forbidden && user != step.APIServer; apierrors.IsForbidden(err) != want || !want && err != nil {
				t.Errorf("%s, by %s: %v, forbidden is to be %t", c.what, user, err, want)
			}
		}
	}
}

func TestServerKeepRestoresDeletedObjects(t *testing.T) {
	t.Parallel()
	s, _ := serving()
	begin(t, s)
	committed := s.keep(namespace)
	service := stored[corev1.Service](t, s, serviceKey())
	steptest.Put(t, s.Store, serviceKey(), nil)
	change := func(name string) {
		t.Helper()
		obj := service.DeepCopy()
		obj.Name = name
		if err := committed(t.Context(), resource.Change{Object: obj, Deleted: true}); err != nil {
			t.Fatal(err)
		}
	}
	change("other")
	if s.Store.Latest().Get(serviceKey()) != nil {
		t.Error("the deletion of another Service restores it")
	}
	change("kubernetes")
	if again := stored[corev1.Service](t, s, serviceKey()); again.Spec.ClusterIP != service.Spec.ClusterIP {
		t.Errorf("the Service is %+v", again.Spec)
	}
}

func TestServerPublishWritesTheAuthorities(t *testing.T) {
	t.Parallel()
	s, _ := serving()
	if err := s.Publish(t.Context(), Trust{ClientCA: []byte("ca")}); err != nil {
		t.Fatal(err)
	}
	trust := stored[corev1.ConfigMap](t, s, storage.Key{Bucket: "configmaps", Name: "kube-system/" + TrustName})
	if trust.Data["client-ca-file"] != "ca" || len(trust.Data) != 1 {
		t.Errorf("without a front proxy the data is %v", trust.Data)
	}
	key := storage.Key{Bucket: "configmaps", Name: "kube-system/" + trackingName}
	if _, err := time.Parse(time.DateOnly, stored[corev1.ConfigMap](t, s, key).Data["since"]); err != nil {
		t.Error(err)
	}
	before := s.Store.Latest().Get(key).Modified
	if err := s.Publish(t.Context(), Trust{}); err != nil {
		t.Fatal(err)
	}
	if after := s.Store.Latest().Get(key).Modified; after != before {
		t.Error("a second start writes the time again")
	}
}

func TestComponentsReportHealth(t *testing.T) {
	t.Parallel()
	backend := Components{Scheduler: errors.New("disabled"), Store: func() error { return nil }}.Component().Resources[0].Backend
	list, err := backend.(resource.Lister).List(t.Context(), &resource.Request{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, item := range list.Items {
		c := item.(*corev1.ComponentStatus)
		got[c.Name] = string(c.Conditions[0].Status) + " " + c.Conditions[0].Message
	}
	want := map[string]string{"controller-manager": "True ok", "scheduler": "False disabled", "etcd-0": "True ok"}
	for name, text := range want {
		if got[name] != text {
			t.Errorf("%s: %q, want %q", name, got[name], text)
		}
	}
	if _, err := backend.(resource.Getter).Get(t.Context(), &resource.Request{Name: "moon"}); !apierrors.IsNotFound(err) {
		t.Errorf("an unknown component: %v", err)
	}
}

// TestServerOfOtherRangesThanBefore starts a server over the objects of one that had other ranges: a
// second family is added by a request, everything else stays, the address of the Service too.
func TestServerOfOtherRangesThanBefore(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		was, is string
		want    string // what the range becomes; empty: it stays
	}{
		{"10.0.0.0/24", "10.0.0.0/24", ""},
		{"10.0.0.0/24", "10.0.0.0/24 fd00::/112", `["10.0.0.0/24","fd00::/112"]`},
		{"fd00::/112", "fd00::/112 10.0.0.0/24", `["fd00::/112","10.0.0.0/24"]`},
		{"10.0.0.0/24", "fd00::/112 10.0.0.0/24", ""},
		{"10.0.0.0/24", "10.1.0.0/24 fd00::/112", ""},
		{"10.0.0.0/24 fd00::/112", "10.0.0.0/24", ""},
		{"10.0.0.0/24 fd00::/112", "10.0.0.0/24 fd01::/112", ""},
	} {
		s, _ := serving()
		set := func(text string) {
			s.Service.Ranges = nil
			for _, cidr := range strings.Fields(text) {
				s.Service.Ranges = append(s.Service.Ranges, netip.MustParsePrefix(cidr))
			}
		}
		set(test.was)
		begin(t, s)
		view := s.Store.Latest()
		set(test.is)
		if writes := s.missing(view, time.Now()); len(writes) > 0 {
			t.Errorf("from %s to %s: it writes %s", test.was, test.is, writes[0].Key)
		}
		requests := s.widening(view)
		if test.want == "" {
			if len(requests) > 0 {
				t.Errorf("from %s to %s: it asks for %s", test.was, test.is, requests[0].Body)
			}
			continue
		}
		if len(requests) != 1 || requests[0].User != step.APIServer || !strings.Contains(string(requests[0].Body), `"value":`+test.want) {
			t.Errorf("from %s to %s: requests %+v, want one for %s", test.was, test.is, requests, test.want)
		}
	}
}
