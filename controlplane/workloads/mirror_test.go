// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/controlplane/workloads"
)

// mirrors are the EndpointSlices that say what the Endpoints of the Service db say.
func (c *cluster) mirrors() []string {
	c.Helper()
	var out []string
	for _, s := range c.mirrorObjects() {
		line := fmt.Sprintf("%s %v", s.AddressType, ports(s.Ports))
		for _, e := range s.Endpoints {
			line += fmt.Sprintf(", %s %v", strings.Join(e.Addresses, " "), *e.Conditions.Ready)
			if e.Hostname != nil {
				line += " " + *e.Hostname
			}
			if e.NodeName != nil {
				line += " " + *e.NodeName
			}
			if e.TargetRef != nil {
				line += " " + e.TargetRef.Name
			}
			if e.Conditions.Serving != nil || e.Conditions.Terminating != nil {
				c.Errorf("endpoint %+v", e)
			}
		}
		out = append(out, line)
	}
	slices.Sort(out)
	return out
}

// mirrorObjects are the EndpointSlices of the Service db that mirror its Endpoints.
func (c *cluster) mirrorObjects() (out []discoveryv1.EndpointSlice) {
	c.Helper()
	var list discoveryv1.EndpointSliceList
	c.list(&list)
	for _, s := range list.Items {
		if s.Labels[discoveryv1.LabelServiceName] == "db" && s.Labels[discoveryv1.LabelManagedBy] == "endpointslicemirroring-controller.k8s.io" {
			out = append(out, s)
		}
	}
	return out
}

// TestMirrorCopiesEndpointsWithoutASelector has the steps and the answers of a conversation with
// oracle/cmd/controllers, but for names.
func TestMirrorCopiesEndpointsWithoutASelector(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	appProtocol, node := "x/y", "n1"
	two := []corev1.EndpointPort{{Name: "b", Port: 5432}, {Name: "a", Port: 5433, Protocol: corev1.ProtocolUDP, AppProtocol: &appProtocol}}
	e := &corev1.Endpoints{
		ObjectMeta: metav1.ObjectMeta{
			Name: "db", Namespace: "default", Labels: map[string]string{"app": "db"},
			Annotations: map[string]string{"a": "b", corev1.LastAppliedConfigAnnotation: "{}"},
		},
		Subsets: []corev1.EndpointSubset{{ //nolint:staticcheck // clients still write them
			Addresses: []corev1.EndpointAddress{
				{IP: "192.0.2.7", Hostname: "h", NodeName: &node, TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: "default", Name: "x", UID: "u"}},
				{IP: "192.0.2.8"},
			},
			NotReadyAddresses: []corev1.EndpointAddress{{IP: "192.0.2.9"}, {IP: "2001:db8::1"}},
			Ports:             two,
		}, {Addresses: []corev1.EndpointAddress{{IP: "192.0.2.10"}}}},
	}
	c.Create(e)
	c.settle()
	equal(t, "without a Service", []string(nil), c.mirrors())

	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "db", Namespace: "default", Labels: map[string]string{"svc": "1"}},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
	}
	c.Create(s)
	c.settle()
	equal(t, "with one", []string{
		"IPv4 [], 192.0.2.10 true",
		"IPv4 [a:5433/UDP b:5432/TCP], 192.0.2.7 true h n1 x, 192.0.2.8 true, 192.0.2.9 false",
		"IPv6 [a:5433/UDP b:5432/TCP], 2001:db8::1 false",
	}, c.mirrors())
	one := c.mirrorObjects()[0]
	equal(t, "labels", map[string]string{
		"app": "db", "endpointslice.kubernetes.io/managed-by": "endpointslicemirroring-controller.k8s.io", "kubernetes.io/service-name": "db",
	}, one.Labels)
	equal(t, "annotations", map[string]string{"a": "b"}, one.Annotations)
	equal(t, "prefix", "db-", one.GenerateName)
	if ref := metav1.GetControllerOf(&one); ref == nil || ref.Kind != "Endpoints" || ref.UID != e.UID || ref.BlockOwnerDeletion == nil || !*ref.BlockOwnerDeletion {
		t.Errorf("owner: %+v", ref)
	}

	change := func(what string, f func(), want ...string) {
		t.Helper()
		c.get("db", e)
		f()
		c.update(e)
		c.settle()
		equal(t, what, want, c.mirrors())
	}
	address := []corev1.EndpointAddress{{IP: "192.0.2.8"}}
	change("fewer", func() { e.Subsets = []corev1.EndpointSubset{{Addresses: address, Ports: two}} }, "IPv4 [a:5433/UDP b:5432/TCP], 192.0.2.8 true") //nolint:staticcheck // clients still write them
	before := c.mirrorObjects()[0]
	change("another port", func() { e.Subsets[0].Ports = []corev1.EndpointPort{{Port: 1}} }, "IPv4 [:1/TCP], 192.0.2.8 true")
	equal(t, "the slice is used again", before.UID, c.mirrorObjects()[0].UID)
	change("not to be mirrored", func() { e.Labels[discoveryv1.LabelSkipMirror] = "true" })
	change("to be mirrored again", func() { delete(e.Labels, discoveryv1.LabelSkipMirror) }, "IPv4 [:1/TCP], 192.0.2.8 true")
	c.delete(&c.mirrorObjects()[0])
	c.settle()
	equal(t, "deleted by others", []string{"IPv4 [:1/TCP], 192.0.2.8 true"}, c.mirrors())
	was := c.mirrorObjects()[0]
	change("a label", func() { e.Labels["more"] = "yes" }, "IPv4 [:1/TCP], 192.0.2.8 true")
	is := c.mirrorObjects()[0]
	equal(t, "labels then", true, is.UID == was.UID && is.Labels["more"] == "yes")
	change("no addresses", func() { e.Subsets = nil })
	change("ports at the same addresses are together, and who is not ready anywhere is not", func() {
		e.Subsets = []corev1.EndpointSubset{ //nolint:staticcheck // clients still write them
			{Addresses: address, Ports: []corev1.EndpointPort{{Name: "a", Port: 1}}},
			{Addresses: address, Ports: []corev1.EndpointPort{{Name: "b", Port: 2}}},
			{NotReadyAddresses: address, Ports: []corev1.EndpointPort{{Name: "c", Port: 3}}},
			{Addresses: address, Ports: []corev1.EndpointPort{{Name: "c", Port: 3}}},
		}
	}, "IPv4 [a:1/TCP b:2/TCP], 192.0.2.8 true", "IPv4 [c:3/TCP], 192.0.2.8 false")

	c.get("db", s)
	s.Spec.Selector = map[string]string{"app": "db"}
	c.update(s)
	c.settle()
	equal(t, "with a selector", []string(nil), c.mirrors())
	equal(t, "the slice of the selector", []string{"IPv4 []"}, c.slicesOf("db"))
	c.delete(s)
	c.settle()
	equal(t, "without the Service", []string(nil), c.slicesOf("db"))
}

func TestMirrorLimitsTheAddressesOfASlice(t *testing.T) {
	t.Parallel()
	c := newCluster(t, workloads.Outcome{})
	e := &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{Name: "db", Namespace: "default"}, Subsets: []corev1.EndpointSubset{{}}} //nolint:staticcheck // clients still write them
	for i := range 1003 {
		e.Subsets[0].Addresses = append(e.Subsets[0].Addresses, corev1.EndpointAddress{IP: fmt.Sprintf("198.18.%d.%d", i/250, i%250+1)})
	}
	c.Create(e)
	c.Create(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "db", Namespace: "default"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}})
	c.settle()
	found := map[string]bool{}
	for _, s := range c.mirrorObjects() {
		for _, endpoint := range s.Endpoints {
			found[endpoint.Addresses[0]] = true
		}
	}
	equal(t, "endpoints", 1000, len(slices.Collect(maps.Keys(found))))
	// The helper takes the second word for the random end of a name.
	equal(t, "events", []string{"! endpoint-*-mirroring-controller Endpoints TooManyAddressesToMirror: " +
		"A max of 1000 addresses can be mirrored to EndpointSlices per Endpoints subset. 3 addresses were skipped"}, c.events())
}
