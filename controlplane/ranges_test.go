// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/steer-dev/steer/controlplane"
)

const (
	ranges   = "/apis/networking.k8s.io/v1/servicecidrs"
	services = "/api/v1/namespaces/default/services"
)

// readiness is the condition Ready of a ServiceCIDR: status, reason, message.
func readiness(r *unstructured.Unstructured) [3]string {
	conditions, _, _ := unstructured.NestedSlice(r.Object, "status", "conditions")
	if len(conditions) != 1 {
		return [3]string{}
	}
	var out [3]string
	for i, field := range []string{"status", "reason", "message"} {
		out[i], _ = conditions[0].(map[string]any)[field].(string)
	}
	return out
}

// TestServiceCIDRStaysWhileServicesUseIt: words, order and times are those
// of oracle/cmd/controllers.
func TestServiceCIDRStaysWhileServicesUseIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		plane, api := newPlane(t)
		settle := func() {
			t.Helper()
			if _, err := plane.Settle(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		there := func(name string) bool {
			code, _ := api.do("GET", ranges+"/"+name, "")
			return code == http.StatusOK
		}
		ready := [3]string{"True", "", "Kubernetes Service CIDR is ready"}
		held := [3]string{"False", "Terminating", "There are still IPAddresses referencing the ServiceCIDR, please remove them or create a new ServiceCIDR"}
		settle()
		equal(t, "the range of the server", ready, readiness(api.must("GET", ranges+"/kubernetes", "")))

		create := func(name, cidr string) {
			t.Helper()
			api.must("POST", ranges, "{apiVersion: networking.k8s.io/v1, kind: ServiceCIDR, metadata: {name: "+name+"}, spec: {cidrs: ["+cidr+"]}}")
			settle()
		}
		create("more", "10.1.0.0/28")
		more := api.must("GET", ranges+"/more", "")
		equal(t, "a new range", ready, readiness(more))
		equal(t, "its finalizers", []string{"networking.k8s.io/service-cidr-finalizer"}, more.GetFinalizers())
		var writers []string
		for _, m := range more.GetManagedFields() {
			writers = append(writers, m.Manager+" "+string(m.Operation)+" "+m.Subresource)
		}
		for _, writer := range []string{"service-cidr-controller Apply status", "kube-controller-manager Update "} {
			if !slices.Contains(writers, writer) {
				t.Errorf("writers are %q, without %q", writers, writer)
			}
		}

		api.must("POST", services, "{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {clusterIP: 10.1.0.3, ports: [{port: 80}]}}")
		api.must("DELETE", ranges+"/more", "")
		settle()
		time.Sleep(time.Minute)
		settle()
		equal(t, "while a Service has an address", held, readiness(api.must("GET", ranges+"/more", "")))
		api.must("DELETE", services+"/a", "")
		settle()
		equal(t, "there when no Service has one", false, there("more"))

		// No Service has an address, but one may be under way.
		create("unused", "10.2.0.0/28")
		api.must("DELETE", ranges+"/unused", "")
		settle()
		equal(t, "there at once", true, there("unused"))
		time.Sleep(11 * time.Second)
		settle()
		equal(t, "there later", false, there("unused"))

		// Another range has all of it.
		create("inner", "10.3.0.0/28")
		api.must("POST", services, "{apiVersion: v1, kind: Service, metadata: {name: b}, spec: {clusterIP: 10.3.0.3, ports: [{port: 80}]}}")
		api.must("DELETE", ranges+"/inner", "")
		settle()
		equal(t, "alone", held, readiness(api.must("GET", ranges+"/inner", "")))
		time.Sleep(11 * time.Second)
		create("outer", "10.3.0.0/24")
		equal(t, "there when another has it", false, there("inner"))
	})
}

// TestServiceCIDRKubernetesIsAsItsControllerLeavesIt: it costs a start nothing, and comes
// back as it was.
func TestServiceCIDRKubernetesIsAsItsControllerLeavesIt(t *testing.T) {
	t.Parallel()
	plane, api := newPlane(t)
	before := api.must("GET", ranges+"/kubernetes", "")
	if _, err := plane.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	equal(t, "revision", before.GetResourceVersion(), api.must("GET", ranges+"/kubernetes", "").GetResourceVersion())
	api.must("PATCH", ranges+"/kubernetes", "metadata: {finalizers: null}")
	api.must("DELETE", ranges+"/kubernetes", "")
	after := api.must("GET", ranges+"/kubernetes", "")
	equal(t, "another object", true, before.GetUID() != after.GetUID())
	equal(t, "spec", before.Object["spec"], after.Object["spec"])
	equal(t, "finalizers", before.GetFinalizers(), after.GetFinalizers())
	api.must("DELETE", services+"/kubernetes", "")
	equal(t, "its address", "IPAddress", api.must("GET", "/apis/networking.k8s.io/v1/ipaddresses/10.0.0.1", "").GetKind())
}

// TestServiceCIDRKubernetesWithoutControllers is as kube-apiserver alone leaves it; the
// conversation kinds-boot has the whole of it.
func TestServiceCIDRKubernetesWithoutControllers(t *testing.T) {
	t.Parallel()
	plane, err := controlplane.New(controlplane.Options{ManualControllers: true, Disable: []string{"service-cidr-controller"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = plane.Stop(t.Context()) })
	first := apiOf(t, plane.RESTConfig()).must("GET", ranges+"/kubernetes", "")
	equal(t, "ready", [3]string{"True", "", "Kubernetes default Service CIDR is ready"}, readiness(first))
	equal(t, "finalizers", 0, len(first.GetFinalizers()))
}
