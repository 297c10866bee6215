// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package services_test

import (
	"encoding/json"
	"net/netip"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/steer-dev/steer/controlplane/internal/step/steptest"
	"github.com/steer-dev/steer/controlplane/workloads/internal/cluster"
	"github.com/steer-dev/steer/controlplane/workloads/internal/cluster/clustertest"
	"github.com/steer-dev/steer/controlplane/workloads/internal/services"
	"github.com/steer-dev/steer/storage"
)

// balancing looks at Services with a balancer of some addresses.
type balancing struct {
	*clustertest.World
	t *testing.T
	c *services.Controllers
}

func balance(t *testing.T, addresses string) *balancing {
	t.Helper()
	var all netip.Prefix
	if addresses != "" {
		all = netip.MustParsePrefix(addresses)
	}
	w := clustertest.New()
	steptest.Put(t, w.Store, storage.Key{Bucket: cluster.Namespaces, Name: "default"}, map[string]any{"metadata": map[string]any{"uid": "u"}})
	return &balancing{w, t, services.New(all)}
}

const balanced = "spec: {type: LoadBalancer, ipFamilies: [IPv4], ports: [{port: 80}]}"

// look stores a Service, or deletes it for "", and returns the addresses that are given: "name address".
func (b *balancing) look(name, manifest string) string {
	b.t.Helper()
	key := storage.Key{Bucket: cluster.Services, Name: "default/" + name}
	if manifest != "" {
		b.Put(b.t, cluster.Services, name, manifest)
	} else {
		steptest.Put(b.t, b.Store, key, nil)
		b.Memory.Index.Remove(key)
	}
	var out []string
	for _, r := range b.Step(b.t, func(turn *cluster.Turn) { b.c.Look(turn, key) }) {
		if !strings.HasSuffix(r.Path, "/status") {
			continue
		}
		b.Memory.Reported(r, "", true, b.Now)
		var s corev1.Service
		if err := json.Unmarshal(r.Body, &s); err != nil {
			b.t.Fatal(err)
		}
		out = append(out, strings.Split(r.Path, "/")[6]+" "+s.Status.LoadBalancer.Ingress[0].IP)
	}
	return strings.Join(out, ", ")
}

// events returns the Events that wait, without what they are about.
func (b *balancing) events() string {
	b.t.Helper()
	var out []string
	for _, r := range b.Step(b.t, func(turn *cluster.Turn) { turn.Record() }) {
		e := clustertest.Body[corev1.Event](b.t, r)
		out = append(out, e.Type+" "+e.Reason+": "+e.Message)
	}
	return strings.Join(out, "\n")
}

func TestBalancerGivesAddressesBackToThoseThatWait(t *testing.T) {
	t.Parallel()
	b := balance(t, "192.0.2.0/30")
	same(t, "the first", "one 192.0.2.1", b.look("one", balanced))
	same(t, "its Events", "Normal EnsuringLoadBalancer: Ensuring load balancer\nNormal EnsuredLoadBalancer: Ensured load balancer", b.events())
	same(t, "the first again", "one 192.0.2.1", b.look("one", balanced))
	same(t, "the second", "two 192.0.2.2", b.look("two", balanced))
	b.events()
	same(t, "the third", "", b.look("three", balanced))
	const none = "Warning SyncLoadBalancerFailed: Error syncing load balancer: failed to ensure load balancer: no address is left of 192.0.2.0/30"
	same(t, "its Events", none, b.events())
	same(t, "the third again", "", b.look("three", balanced))
	same(t, "its Events", "", b.events())
	same(t, "once the first has gone", "three 192.0.2.1", b.look("one", ""))
	same(t, "once the second is of another type", "", b.look("two", "spec: {type: ClusterIP}"))
	same(t, "a fourth", "four 192.0.2.2", b.look("four", balanced))
}

func TestBalancerGivesWhatIsAskedFor(t *testing.T) {
	t.Parallel()
	asking := func(at string) string {
		return strings.Replace(balanced, "ports:", "loadBalancerIP: '"+at+"', ports:", 1)
	}
	for manifest, want := range map[string]string{
		asking("192.0.2.7"): "x 192.0.2.7",
		asking("192.0.3.7"): "Warning SyncLoadBalancerFailed: Error syncing load balancer: failed to ensure load balancer: spec.loadBalancerIP 192.0.3.7 is taken, or not in 192.0.2.0/24",
		asking("192.0.2.9"): "Warning SyncLoadBalancerFailed: Error syncing load balancer: failed to ensure load balancer: spec.loadBalancerIP 192.0.2.9 is taken, or not in 192.0.2.0/24",
		asking("nowhere"):   "Warning SyncLoadBalancerFailed: Error syncing load balancer: failed to ensure load balancer: spec.loadBalancerIP nowhere is taken, or not in 192.0.2.0/24",
		balanced:            "x 192.0.2.1",
		balanced + "\nstatus: {loadBalancer: {ingress: [{ip: 192.0.2.5}]}}":                "",
		strings.Replace(balanced, "IPv4", "IPv6", 1):                                       "",
		strings.Replace(balanced, "ports:", "loadBalancerClass: example.com/x, ports:", 1): "",
	} {
		b := balance(t, "192.0.2.0/24")
		b.Put(t, cluster.Services, "other", "status: {loadBalancer: {ingress: [{ip: 192.0.2.9}]}}") // by another balancer
		got := b.look("x", manifest)
		if got == "" {
			got = b.events()
		}
		same(t, manifest, want, got)
	}
}

func TestBalancerKeepsAddressesThatWereGivenBefore(t *testing.T) {
	t.Parallel()
	b := balance(t, "192.0.2.0/30")
	same(t, "one that has an address", "", b.look("old", balanced+"\nstatus: {loadBalancer: {ingress: [{ip: 192.0.2.1}]}}"))
	b.Memory.Index.Remove(storage.Key{Bucket: cluster.Services, Name: "default/old"}) // seen in no index: the balancer knows it
	same(t, "another", "new 192.0.2.2", b.look("new", balanced))
	same(t, "without addresses", "", balance(t, "").look("x", balanced))
	six := balance(t, "2001:db8::/126")
	same(t, "of the other family", "", six.look("four", balanced))
	same(t, "of its family", "x 2001:db8::1", six.look("x", strings.Replace(balanced, "IPv4", "IPv6", 1)))
	whole := balance(t, "192.0.2.0/31")
	same(t, "of two addresses", "x 192.0.2.1", whole.look("x", balanced))
}
