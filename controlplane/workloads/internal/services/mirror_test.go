// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package services_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/controlplane/internal/step/steptest"
	"github.com/steer-dev/steer/controlplane/workloads/internal/cluster"
	"github.com/steer-dev/steer/controlplane/workloads/internal/cluster/clustertest"
	"github.com/steer-dev/steer/storage"
)

// unselective is a Service without a selector.
const unselective = "spec: {type: ClusterIP, clusterIP: 10.0.0.1, ipFamilies: [IPv4], ports: [{port: 80}]}"

// sent renders requests: slices with family, ports, and ready and other addresses.
func sent(t *testing.T, requests []step.Request) string {
	t.Helper()
	var out []string
	for _, r := range requests {
		line := r.Method + " " + r.Path[strings.LastIndex(r.Path, "/")+1:]
		if r.Method == "POST" || r.Method == "PUT" {
			s := clustertest.Body[discoveryv1.EndpointSlice](t, r)
			line += fmt.Sprint(" ", s.AddressType)
			for _, p := range s.Ports {
				line += fmt.Sprintf(" %s:%d", *p.Name, *p.Port)
			}
			for _, e := range s.Endpoints {
				line += map[bool]string{true: " +", false: " -"}[*e.Conditions.Ready] + e.Addresses[0]
			}
		}
		out = append(out, line)
	}
	return strings.Join(out, "\n")
}

func same(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestMirrorGroupsAddressesByFamilyAndPorts(t *testing.T) {
	t.Parallel()
	const ports = "ports: [{name: http, port: 80, protocol: TCP}]"
	for what, tt := range map[string]struct{ endpoints, want string }{
		"nothing":       {"{}", ""},
		"no addresses":  {"subsets: [{" + ports + "}]", ""},
		"both families": {"subsets: [{addresses: [{ip: 192.0.2.1}, {ip: '2001:db8::1'}], " + ports + "}]", "POST endpointslices IPv4 http:80 +192.0.2.1\nPOST endpointslices IPv6 http:80 +2001:db8::1"},
		"unready after ready": {
			"subsets: [{notReadyAddresses: [{ip: 192.0.2.1}], addresses: [{ip: 192.0.2.3}, {ip: 192.0.2.2}], " + ports + "}]",
			"POST endpointslices IPv4 http:80 +192.0.2.2 +192.0.2.3 -192.0.2.1",
		},
		"ready and unready is unready": {"subsets: [{notReadyAddresses: [{ip: 192.0.2.1}], addresses: [{ip: 192.0.2.1}], " + ports + "}]", "POST endpointslices IPv4 http:80 -192.0.2.1"},
		"ports of the same addresses together": {
			"subsets: [{addresses: [{ip: 192.0.2.1}], " + ports + "}, {addresses: [{ip: 192.0.2.1}], ports: [{name: dns, port: 53, protocol: UDP}]}]",
			"POST endpointslices IPv4 http:80 dns:53 +192.0.2.1",
		},
		"one port of two subsets": {
			"subsets: [{addresses: [{ip: 192.0.2.1}], " + ports + "}, {addresses: [{ip: 192.0.2.2}], " + ports + "}]",
			"POST endpointslices IPv4 http:80 +192.0.2.1 +192.0.2.2",
		},
		"no ports":            {"subsets: [{addresses: [{ip: 192.0.2.1}]}]", "POST endpointslices IPv4 +192.0.2.1"},
		"one that is skipped": {"metadata: {labels: {endpointslice.kubernetes.io/skip-mirror: 'true'}}\nsubsets: [{addresses: [{ip: 192.0.2.1}], " + ports + "}]", ""},
		"one that is not":     {"metadata: {labels: {endpointslice.kubernetes.io/skip-mirror: 'maybe'}}\nsubsets: [{addresses: [{ip: 192.0.2.1}], " + ports + "}]", "POST endpointslices IPv4 http:80 +192.0.2.1"},
		"a lock":              {"metadata: {annotations: {control-plane.alpha.kubernetes.io/leader: x}}\nsubsets: [{addresses: [{ip: 192.0.2.1}], " + ports + "}]", ""},
		"one that is deleted": {"metadata: {deletionTimestamp: '2026-01-01T00:00:00Z'}\nsubsets: [{addresses: [{ip: 192.0.2.1}], " + ports + "}]", ""},
	} {
		w, look := looking(t, unselective)
		w.Put(t, cluster.Endpoints, "web", tt.endpoints)
		got := strings.Split(sent(t, look()), "\n")
		want := strings.Split(tt.want, "\n")
		if what == "ports of the same addresses together" { // by the hash of each port
			want = []string{strings.Replace(tt.want, "http:80 dns:53", got[0][len("POST endpointslices IPv4 "):len("POST endpointslices IPv4 http:80 dns:53")], 1)}
		}
		same(t, what, want, got)
	}
}

func TestMirrorUpdatesItsCopies(t *testing.T) {
	t.Parallel()
	const endpoints = "metadata: {labels: {own: x}, annotations: {note: text, endpoints.kubernetes.io/last-change-trigger-time: z, kubectl.kubernetes.io/last-applied-configuration: c}}\n" +
		"subsets: [{addresses: [{ip: 192.0.2.1, hostname: h, nodeName: node1, targetRef: {kind: Pod, name: p, uid: p}}], ports: [{name: http, port: 80, protocol: TCP}]}]"
	w, look := looking(t, unselective)
	w.Put(t, cluster.Endpoints, "web", endpoints)
	created := clustertest.Body[discoveryv1.EndpointSlice](t, look()[0])
	same(t, "the name", "web-", created.GenerateName)
	same(t, "labels", map[string]string{
		"own": "x", "kubernetes.io/service-name": "web", "endpointslice.kubernetes.io/managed-by": "endpointslicemirroring-controller.k8s.io",
	}, created.Labels)
	same(t, "annotations", map[string]string{"note": "text"}, created.Annotations)
	same(t, "its owner", "v1 Endpoints web", fmt.Sprint(created.OwnerReferences[0].APIVersion, " ", created.OwnerReferences[0].Kind, " ", created.OwnerReferences[0].UID))
	e := created.Endpoints[0]
	same(t, "its endpoint", []string{"h", "node1", "p"}, []string{*e.Hostname, *e.NodeName, e.TargetRef.Name})
	put := func(name string) {
		t.Helper()
		text, err := json.Marshal(created)
		if err != nil {
			t.Fatal(err)
		}
		w.Put(t, cluster.EndpointSlices, name, string(text))
	}
	put("web-1")
	same(t, "requests once it is stored", "", sent(t, look()))
	put("web-2")
	same(t, "requests about a second one", "DELETE web-2", sent(t, look()))
	w.Memory.Index.Remove(storage.Key{Bucket: cluster.EndpointSlices, Name: "default/web-2"})
	for change, want := range map[[2]string]string{
		{"192.0.2.1", "192.0.2.9"}:      "PUT web-1 IPv4 http:80 +192.0.2.9",
		{"note: text", "note: changed"}: "PUT web-1 IPv4 http:80 +192.0.2.1",
		{"own: x", "own: changed"}:      "PUT web-1 IPv4 http:80 +192.0.2.1",
		{"port: 80", "port: 81"}:        "PUT web-1 IPv4 http:81 +192.0.2.1", // the slice of the other port is used again
		{"addresses", "none"}:           "DELETE web-1",
		{"subsets", "none"}:             "DELETE web-1",
	} {
		w.Put(t, cluster.Endpoints, "web", strings.Replace(endpoints, change[0], change[1], 1))
		same(t, "requests after a change of "+change[0], want, sent(t, look()))
	}
}

func TestMirrorCopiesThousandAddresses(t *testing.T) {
	t.Parallel()
	w, look := looking(t, unselective)
	steptest.Put(t, w.Store, storage.Key{Bucket: cluster.Namespaces, Name: "default"}, map[string]any{"metadata": map[string]any{"uid": "u"}})
	var list []string
	for i := range 1003 {
		list = append(list, fmt.Sprintf("{ip: 10.9.%d.%d}", i/250, i%250))
	}
	w.Put(t, cluster.Endpoints, "web", "subsets: [{addresses: ["+strings.Join(list, ", ")+"], ports: [{name: http, port: 80}]}]")
	same(t, "addresses", 1000, len(clustertest.Body[discoveryv1.EndpointSlice](t, look()[0]).Endpoints))
	e := clustertest.Body[corev1.Event](t, w.Step(t, func(turn *cluster.Turn) { turn.Record() })[0])
	same(t, "the Event", "Warning TooManyAddressesToMirror: A max of 1000 addresses can be mirrored to EndpointSlices per Endpoints subset. 3 addresses were skipped", e.Type+" "+e.Reason+": "+e.Message)
	same(t, "its object", "Endpoints web", e.InvolvedObject.Kind+" "+e.InvolvedObject.Name)
}
