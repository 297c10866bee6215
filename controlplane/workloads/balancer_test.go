// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/controlplane"
	"github.com/steer-dev/steer/controlplane/workloads"
)

// TestLoadBalancersGetDistinctAddresses for as long as they are load balancers.
func TestLoadBalancersGetDistinctAddresses(t *testing.T) {
	t.Parallel()
	c := start(t, controlplane.Options{ManualControllers: true, Workloads: &workloads.Options{LoadBalancers: "198.51.100.0/30"}})
	create := func(name string, change func(*corev1.ServiceSpec)) {
		s := service(name, name, corev1.ServicePort{Port: 80})
		s.Spec.Type = corev1.ServiceTypeLoadBalancer
		if change != nil {
			change(&s.Spec)
		}
		c.Create(s)
		c.settle()
	}
	ingress := func() string {
		t.Helper()
		c.settle()
		var list corev1.ServiceList
		c.list(&list)
		var out []string
		for i := range list.Items {
			for _, in := range list.Items[i].Status.LoadBalancer.Ingress {
				out = append(out, list.Items[i].Name+" "+in.IP+" "+string(*in.IPMode))
			}
		}
		return strings.Join(out, ", ")
	}
	create("a", nil)
	create("asks", func(s *corev1.ServiceSpec) { s.LoadBalancerIP = "198.51.100.2" })
	create("classy", func(s *corev1.ServiceSpec) { s.LoadBalancerClass = new("example.com/lb") })
	create("inside", func(s *corev1.ServiceSpec) { s.Type = corev1.ServiceTypeClusterIP })
	equal(t, "two addresses", "a 198.51.100.1 VIP, asks 198.51.100.2 VIP", ingress())
	create("late", nil)
	create("elsewhere", func(s *corev1.ServiceSpec) { s.LoadBalancerIP = "192.0.2.1" })
	equal(t, "none is left", "a 198.51.100.1 VIP, asks 198.51.100.2 VIP", ingress())
	equal(t, "and that is told", []string{
		"service-controller Service EnsuringLoadBalancer: Ensuring load balancer",
		"service-controller Service EnsuredLoadBalancer: Ensured load balancer",
		"service-controller Service EnsuringLoadBalancer: Ensuring load balancer",
		"service-controller Service EnsuredLoadBalancer: Ensured load balancer",
		"! service-controller Service SyncLoadBalancerFailed: Error syncing load balancer: failed to ensure load balancer: no address is left of 198.51.100.0/30",
		"! service-controller Service SyncLoadBalancerFailed: Error syncing load balancer: failed to ensure load balancer: spec.loadBalancerIP 192.0.2.1 is taken, or not in 198.51.100.0/30",
	}, c.said("service-controller"))
	var s corev1.Service
	c.get("a", &s)
	s.Spec.Type = corev1.ServiceTypeClusterIP
	c.update(&s)
	equal(t, "another type", "asks 198.51.100.2 VIP, late 198.51.100.1 VIP", ingress())
	create("waits", nil)
	c.delete(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "asks", Namespace: "default"}})
	equal(t, "gone", "late 198.51.100.1 VIP, waits 198.51.100.2 VIP", ingress())
}

func TestLoadBalancersAreLeftAloneWithoutARange(t *testing.T) {
	t.Parallel()
	c := start(t, controlplane.Options{ManualControllers: true, Workloads: &workloads.Options{LoadBalancers: "none"}})
	s := service("a", "a", corev1.ServicePort{Port: 80})
	s.Spec.Type = corev1.ServiceTypeLoadBalancer
	c.Create(s)
	c.settle()
	c.get("a", s)
	equal(t, "addresses", 0, len(s.Status.LoadBalancer.Ingress))
	if _, err := workloads.New(workloads.Options{LoadBalancers: "all of them"}); err == nil || !strings.Contains(err.Error(), "203.0.113.0/24") {
		t.Errorf("a range that is none: %v", err)
	}
}
