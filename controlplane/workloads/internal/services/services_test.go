// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package services_test

import (
	"encoding/json"
	"net/netip"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/controlplane/workloads/internal/cluster"
	"github.com/steer-dev/steer/controlplane/workloads/internal/cluster/clustertest"
	"github.com/steer-dev/steer/controlplane/workloads/internal/services"
)

const service = "spec: {type: ClusterIP, clusterIP: 10.0.0.1, ipFamilies: [IPv4], selector: {a: b}, ports: [{name: http, port: 80, targetPort: 8080, protocol: TCP}]}"

func looking(t *testing.T, manifest string) (*clustertest.World, func() []step.Request) {
	t.Helper()
	w, c := clustertest.New(), services.New(netip.Prefix{})
	key := w.Put(t, cluster.Services, "web", manifest)
	return w, func() []step.Request { return w.Step(t, func(turn *cluster.Turn) { c.Look(turn, key) }) }
}

// find returns the request with a method and a beginning of the path.
func find(t *testing.T, requests []step.Request, method, path string) step.Request {
	t.Helper()
	for _, r := range requests {
		if r.Method == method && strings.HasPrefix(r.Path, path) {
			return r
		}
	}
	t.Fatalf("no %s %s in\n%s", method, path, clustertest.Lines(requests))
	return step.Request{}
}

const (
	slices    = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
	endpoints = "/api/v1/namespaces/default/endpoints"
)

func TestServiceHasASliceOfItsPods(t *testing.T) {
	t.Parallel()
	w, look := looking(t, service)
	w.Put(t, cluster.Nodes, "node1", "{}")
	w.Put(t, cluster.Pods, "ready", "metadata: {labels: {a: b}}\nspec: {nodeName: node1}\nstatus: {phase: Running, podIP: 10.1.0.1, podIPs: [{ip: 10.1.0.1}], conditions: [{type: Ready, status: 'True'}]}")
	w.Put(t, cluster.Pods, "unready", "metadata: {labels: {a: b}}\nspec: {nodeName: node1}\nstatus: {phase: Running, podIP: 10.1.0.2, podIPs: [{ip: 10.1.0.2}]}")
	w.Put(t, cluster.Pods, "ended", "metadata: {labels: {a: b}}\nspec: {nodeName: node1}\nstatus: {phase: Succeeded, podIP: 10.1.0.3, podIPs: [{ip: 10.1.0.3}]}")
	w.Put(t, cluster.Pods, "other", "metadata: {labels: {a: c}}\nspec: {nodeName: node1}\nstatus: {phase: Running, podIP: 10.1.0.4, podIPs: [{ip: 10.1.0.4}]}")
	requests := look()
	s := clustertest.Body[discoveryv1.EndpointSlice](t, find(t, requests, "POST", slices))
	if s.GenerateName != "web-" || s.Labels["kubernetes.io/service-name"] != "web" || s.AddressType != discoveryv1.AddressTypeIPv4 ||
		len(s.Ports) != 1 || *s.Ports[0].Port != 8080 || *s.Ports[0].Name != "http" {
		t.Errorf("the slice is %+v", s)
	}
	got := map[string]bool{}
	for _, e := range s.Endpoints {
		got[e.Addresses[0]] = *e.Conditions.Ready
	}
	if ready, ok := got["10.1.0.2"]; len(got) != 2 || !got["10.1.0.1"] || !ok || ready {
		t.Errorf("ready by address is %v", got)
	}
	e := clustertest.Body[corev1.Endpoints](t, find(t, requests, "POST", endpoints)) // clients still read it
	if len(e.Subsets) != 1 || e.Subsets[0].Addresses[0].IP != "10.1.0.1" || e.Subsets[0].NotReadyAddresses[0].IP != "10.1.0.2" {
		t.Errorf("the Endpoints are %+v", e.Subsets)
	}
}

func TestServiceWithoutASelectorHasNoSlice(t *testing.T) {
	t.Parallel()
	_, look := looking(t, strings.Replace(service, "selector: {a: b}, ", "", 1))
	if requests := look(); len(requests) > 0 {
		t.Errorf("requests:\n%s", clustertest.Lines(requests))
	}
}

func TestServiceOfAnExternalNameHasNoSlice(t *testing.T) {
	t.Parallel()
	_, look := looking(t, "spec: {type: ExternalName, externalName: example.com, selector: {a: b}}")
	if requests := look(); len(requests) > 0 {
		t.Errorf("requests:\n%s", clustertest.Lines(requests))
	}
}

func TestMirrorCopiesEndpointsOfUsers(t *testing.T) {
	t.Parallel()
	w, look := looking(t, strings.Replace(service, "selector: {a: b}, ", "", 1))
	w.Put(t, cluster.Endpoints, "web", "subsets: [{addresses: [{ip: 192.0.2.1}], ports: [{name: http, port: 80, protocol: TCP}]}]")
	s := clustertest.Body[discoveryv1.EndpointSlice](t, find(t, look(), "POST", slices))
	if s.Labels["endpointslice.kubernetes.io/managed-by"] != "endpointslicemirroring-controller.k8s.io" || len(s.Endpoints) != 1 || s.Endpoints[0].Addresses[0] != "192.0.2.1" {
		t.Errorf("the slice is %+v", s)
	}
}

func TestBalancerGivesDistinctAddresses(t *testing.T) {
	t.Parallel()
	w, c := clustertest.New(), services.New(netip.MustParsePrefix("192.0.2.0/30"))
	seen := map[string]bool{}
	for _, name := range []string{"one", "two"} {
		key := w.Put(t, cluster.Services, name, "spec: {type: LoadBalancer, ipFamilies: [IPv4], ports: [{port: 80}]}")
		r := find(t, w.Step(t, func(turn *cluster.Turn) { c.Look(turn, key) }), "PATCH", "/api/v1/namespaces/default/services/"+name+"/status")
		var s corev1.Service
		if err := json.Unmarshal(r.Body, &s); err != nil {
			t.Fatal(err)
		}
		ingress := s.Status.LoadBalancer.Ingress
		if len(ingress) != 1 || seen[ingress[0].IP] || !netip.MustParsePrefix("192.0.2.0/30").Contains(netip.MustParseAddr(ingress[0].IP)) {
			t.Errorf("%s has %s", name, r.Body)
			continue
		}
		seen[ingress[0].IP] = true
	}
}
