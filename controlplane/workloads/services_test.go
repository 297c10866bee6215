// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/steer-dev/steer/controlplane/workloads"
)

// slicesOf are the EndpointSlices of a Service, their endpoints without what is
// alike in all of them.
func (c *cluster) slicesOf(service string) []string {
	c.Helper()
	var list discoveryv1.EndpointSliceList
	c.list(&list)
	var out []string
	for i := range list.Items {
		s := &list.Items[i]
		if s.Labels[discoveryv1.LabelServiceName] != service {
			continue
		}
		line := fmt.Sprintf("%s %v", s.AddressType, ports(s.Ports))
		for _, e := range s.Endpoints {
			line += fmt.Sprintf(", %s %v %v %v", strings.Join(e.Addresses, " "), *e.Conditions.Ready, *e.Conditions.Serving, *e.Conditions.Terminating)
			if e.Hostname != nil {
				line += " " + *e.Hostname
			}
			if *e.NodeName != workloads.NodeName || e.TargetRef.Kind != "Pod" || e.TargetRef.UID == "" || e.Zone != nil {
				c.Errorf("endpoint %+v", e)
			}
		}
		out = append(out, line)
	}
	return out
}

func ports(list []discoveryv1.EndpointPort) (out []string) {
	for _, p := range list {
		out = append(out, fmt.Sprintf("%s:%d/%s", *p.Name, *p.Port, *p.Protocol))
	}
	return out
}

// endpointsOf are the Endpoints of a Service in one line for each subset.
func (c *cluster) endpointsOf(service string) []string {
	c.Helper()
	var e corev1.Endpoints
	c.get(service, &e)
	var out []string
	for _, s := range e.Subsets {
		line := ""
		for _, p := range s.Ports {
			line += fmt.Sprintf("%s:%d/%s ", p.Name, p.Port, p.Protocol)
		}
		for _, a := range s.Addresses {
			line += a.IP + " " + a.Hostname
		}
		for _, a := range s.NotReadyAddresses {
			line += "not " + a.IP + " "
		}
		out = append(out, strings.TrimSpace(line))
	}
	return out
}

func service(name, app string, ports ...corev1.ServicePort) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"},
		Spec:       corev1.ServiceSpec{Selector: map[string]string{"app": app}, Ports: ports},
	}
}

func TestServicesHaveEndpointsAndSlicesOfTheirPods(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, workloads.Outcome{Selector: "app=web", After: 5 * time.Second})
		s := service("web", "web", corev1.ServicePort{Name: "http", Port: 80, TargetPort: intstr.FromString("http")},
			corev1.ServicePort{Name: "metrics", Port: 90, TargetPort: intstr.FromInt32(9090)})
		s.Labels = map[string]string{"tier": "front"}
		c.Create(s)
		headless := service("early", "web")
		headless.Spec.ClusterIP, headless.Spec.PublishNotReadyAddresses = corev1.ClusterIPNone, true
		c.Create(headless)
		c.settle()
		equal(t, "slices without Pods", []string{"IPv4 []"}, c.slicesOf("web"))
		equal(t, "Endpoints without Pods", []string(nil), c.endpointsOf("web"))
		var list discoveryv1.EndpointSliceList
		c.list(&list)
		for i := range list.Items {
			o := &list.Items[i]
			name := o.Labels[discoveryv1.LabelServiceName]
			if name != "web" && name != "early" {
				continue
			}
			want := map[string]string{"kubernetes.io/service-name": name, "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io"}
			if name == "web" {
				want["tier"] = "front"
			} else {
				want["service.kubernetes.io/headless"] = ""
			}
			equal(t, "labels", want, o.Labels)
			equal(t, "generateName", name+"-", o.GenerateName)
			if ref := metav1.GetControllerOf(o); ref == nil || ref.Kind != "Service" || ref.Name != name {
				t.Errorf("owner of %s: %+v", name, ref)
			}
			equal(t, "annotations", []string{"endpoints.kubernetes.io/last-change-trigger-time"}, slices.Sorted(maps.Keys(o.Annotations)))
		}
		d := deployment("web", 2)
		d.Spec.Template.Spec.Containers[0].Ports = []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}}
		c.Create(d)
		c.settle()
		const where = "IPv4 [http:8080/TCP metrics:9090/TCP]"
		equal(t, "slices before the Pods are ready", []string{where + ", 10.244.0.2 false false false, 10.244.0.3 false false false"}, c.slicesOf("web"))
		equal(t, "Endpoints before", []string{"http:8080/TCP metrics:9090/TCP not 10.244.0.2 not 10.244.0.3"}, c.endpointsOf("web"))
		equal(t, "what is published early", []string{"IPv4 [], 10.244.0.2 true false false, 10.244.0.3 true false false"}, c.slicesOf("early"))
		equal(t, "Endpoints that are published early", []string{"10.244.0.2 10.244.0.3"}, c.endpointsOf("early"))
		time.Sleep(5 * time.Second)
		c.settle()
		equal(t, "slices when the Pods are ready", []string{where + ", 10.244.0.2 true true false, 10.244.0.3 true true false"}, c.slicesOf("web"))
		equal(t, "Endpoints when the Pods are ready", []string{"http:8080/TCP metrics:9090/TCP 10.244.0.2 10.244.0.3"}, c.endpointsOf("web"))
		c.get("web", d)
		*d.Spec.Replicas = 0
		c.update(d)
		c.settle()
		equal(t, "slices after the Pods", []string{"IPv4 []"}, c.slicesOf("web"))
		equal(t, "Endpoints after the Pods", []string(nil), c.endpointsOf("web"))
		if err := c.Client.Delete(c.Context(), s); err != nil {
			t.Fatal(err)
		}
		c.settle()
		equal(t, "slices after the Service", []string(nil), c.slicesOf("web"))
		var all corev1.EndpointsList
		c.list(&all)
		var names []string
		for i := range all.Items {
			names = append(names, all.Items[i].Name)
		}
		equal(t, "Endpoints after the Service", []string{"early"}, names)
	})
}

func TestEndpointsNameThePodsOfAStatefulSet(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	s := service("db", "db", corev1.ServicePort{Port: 5432})
	s.Spec.ClusterIP = corev1.ClusterIPNone
	c.Create(s)
	set := statefulSet(2)
	set.Spec.ServiceName = "db"
	c.Create(set)
	c.settle()
	equal(t, "slices", []string{"IPv4 [:5432/TCP], 10.244.0.2 true true false db-0, 10.244.0.3 true true false db-1"}, c.slicesOf("db"))
}

// TestServicesWithRefusedRequestsDelayNoOthers: requests that are refused are sent again and
// again, later and later.
func TestServicesWithRefusedRequestsDelayNoOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newLoop(t)
		full := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "full"}}
		c.Create(full)
		c.Create(&corev1.ResourceQuota{
			ObjectMeta: metav1.ObjectMeta{Name: "q", Namespace: "full"}, Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: {}}},
		})
		time.Sleep(time.Second)
		refused := statefulSet(1)
		refused.Namespace = "full"
		c.Create(refused)
		time.Sleep(time.Minute)
		c.Create(service("web", "web", corev1.ServicePort{Port: 80}))
		c.Create(deployment("web", 1))
		time.Sleep(time.Second)
		equal(t, "slices", []string{"IPv4 [:80/TCP], 10.244.0.2 true true false"}, c.slicesOf("web"))
	})
}

func TestEndpointSlicesSplitManyPods(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.Create(service("many", "many", corev1.ServicePort{Port: 80}))
	d := deployment("many", 130)
	c.Create(d)
	c.settle()
	sizes := func() (out []int) {
		for _, line := range c.slicesOf("many") {
			out = append(out, strings.Count(line, ", "))
		}
		slices.Sort(out)
		return out
	}
	equal(t, "sizes", []int{30, 100}, sizes())
	c.get("many", d)
	*d.Spec.Replicas = 135
	c.update(d)
	c.settle()
	equal(t, "sizes with five more", []int{35, 100}, sizes())
	*d.Spec.Replicas = 20
	c.get("many", d)
	*d.Spec.Replicas = 20
	c.update(d)
	c.settle()
	total := 0
	for _, n := range sizes() {
		total += n
	}
	equal(t, "endpoints in the end", 20, total)
}

func TestEndpointsAndSlicesAreRestored(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.Create(service("web", "web", corev1.ServicePort{Port: 80}))
	c.Create(deployment("web", 1))
	c.settle()
	before := c.slicesOf("web")
	var list discoveryv1.EndpointSliceList
	c.list(&list)
	for i := range list.Items {
		if list.Items[i].Labels[discoveryv1.LabelServiceName] == "web" {
			if err := c.Client.Delete(c.Context(), &list.Items[i]); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := c.Client.Delete(c.Context(), &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default"}}); err != nil {
		t.Fatal(err)
	}
	c.settle()
	equal(t, "slices", before, c.slicesOf("web"))
	equal(t, "Endpoints", []string{":80/TCP 10.244.0.2"}, c.endpointsOf("web"))
}

// TestEndpointSlicesCarryTopologyHints has the steps of a conversation with
// oracle/cmd/controllers: hints are those of there, and so is that nodes that change later change none.
func TestEndpointSlicesCarryTopologyHints(t *testing.T) {
	t.Parallel()
	c := newCluster(t, workloads.Outcome{Selector: "late=yes", Fate: workloads.Never})
	c.settle()
	c.node("n1", map[string]string{corev1.LabelTopologyZone: "a"})
	c.node("n2", nil)
	pod := func(name, node string, more map[string]string) {
		t.Helper()
		of := template("web")
		of.Spec.NodeName = node
		for key, value := range more {
			of.Labels[key] = value
		}
		c.Create(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", Labels: of.Labels}, Spec: of.Spec})
	}
	pod("p1", "n1", nil)
	pod("p2", "n2", nil)
	pod("p3", "n1", map[string]string{"late": "yes"})
	pod("p4", "n9", nil) // which is not there
	s := service("web", "web", corev1.ServicePort{Port: 80})
	c.Create(s)
	told := func() (out []string) {
		t.Helper()
		c.settle()
		var list discoveryv1.EndpointSliceList
		c.list(&list)
		for i := range list.Items {
			for _, e := range list.Items[i].Endpoints {
				if e.TargetRef == nil {
					continue
				}
				line := e.TargetRef.Name
				if e.Zone != nil {
					line += " in " + *e.Zone
				}
				if e.Hints != nil {
					line += fmt.Sprint(" for ", e.Hints.ForZones, e.Hints.ForNodes)
				}
				out = append(out, line)
			}
		}
		slices.Sort(out)
		return out
	}
	plain := []string{"p1 in a", "p2", "p3 in a"}
	equal(t, "hints without an annotation", plain, told())
	for _, step := range []struct {
		distribution, mode string
		want               []string
	}{
		{corev1.ServiceTrafficDistributionPreferClose, "", []string{"p1 in a for [{a}] []", "p2", "p3 in a"}},
		{corev1.ServiceTrafficDistributionPreferSameNode, "", []string{"p1 in a for [{a}] [{n1}]", "p2 for [] [{n2}]", "p3 in a"}},
		{corev1.ServiceTrafficDistributionPreferSameZone, "", []string{"p1 in a for [{a}] []", "p2", "p3 in a"}},
		{corev1.ServiceTrafficDistributionPreferSameZone, "Auto", plain},
		{"", "", plain},
	} {
		c.get("web", s)
		s.Spec.TrafficDistribution, s.Annotations = nil, nil
		if step.distribution != "" {
			s.Spec.TrafficDistribution = &step.distribution
		}
		if step.mode != "" {
			s.Annotations = map[string]string{corev1.AnnotationTopologyMode: step.mode}
		}
		c.update(s)
		equal(t, "hints with "+step.distribution+step.mode, step.want, told())
	}
	c.changeNode("n2", func(n *corev1.Node) { n.Labels = map[string]string{corev1.LabelTopologyZone: "b"} })
	equal(t, "after a node has moved", plain, told())
	c.node("n9", nil)
	equal(t, "with the node that was not there", []string{"p1 in a", "p2 in b", "p3 in a", "p4"}, told())
}
