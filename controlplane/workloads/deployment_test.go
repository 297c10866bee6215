// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/steer-dev/steer/apiserver"
	"github.com/steer-dev/steer/controlplane"
	"github.com/steer-dev/steer/controlplane/workloads"
	"github.com/steer-dev/steer/steertest"
)

// object and list are what the client reads and writes.
type (
	object interface {
		metav1.Object
		runtime.Object
	}
	list interface {
		metav1.ListInterface
		runtime.Object
	}
)

// cluster is a control plane with workloads that are moved by hand.
type cluster struct{ *steertest.Env }

func newCluster(t *testing.T, outcomes ...workloads.Outcome) *cluster {
	t.Helper()
	return start(t, controlplane.Options{ManualControllers: true, Workloads: &workloads.Options{Outcomes: outcomes}})
}

// newLoop returns a cluster that moves by itself.
func newLoop(t *testing.T, outcomes ...workloads.Outcome) *cluster {
	t.Helper()
	return start(t, controlplane.Options{Workloads: &workloads.Options{Outcomes: outcomes}})
}

func start(t testing.TB, o controlplane.Options) *cluster {
	t.Helper()
	o.Entropy = apiserver.SeededEntropy(1)
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{appsv1.AddToScheme, batchv1.AddToScheme, coordinationv1.AddToScheme, corev1.AddToScheme, discoveryv1.AddToScheme, policyv1.AddToScheme, schedulingv1.AddToScheme, storagev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return &cluster{steertest.New(t, steertest.Options{Scheme: scheme, Plane: o})}
}

func (c *cluster) settle() {
	c.Helper()
	if _, err := c.Plane.Settle(c.Context()); err != nil {
		c.Fatal(err)
	}
}

func (c *cluster) get(name string, into object) {
	c.Helper()
	if err := c.Client.Get(c.Context(), key("default", name), into); err != nil {
		c.Fatal(err)
	}
}

func key(namespace, name string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: name}
}

func (c *cluster) update(obj object) {
	c.Helper()
	if err := c.Client.Update(c.Context(), obj); err != nil {
		c.Fatal(err)
	}
}

func (c *cluster) delete(obj object) {
	c.Helper()
	if err := c.Client.Delete(c.Context(), obj); err != nil {
		c.Fatal(err)
	}
}

func (c *cluster) list(into list) {
	c.Helper()
	if err := c.Client.List(c.Context(), into); err != nil {
		c.Fatal(err)
	}
}

// pods are the Pods in one line each, without the random part of their names.
func (c *cluster) pods() []string {
	c.Helper()
	var list corev1.PodList
	c.list(&list)
	var out []string
	for _, p := range list.Items {
		name := p.Name
		if p.GenerateName != "" {
			name = p.GenerateName + "*"
		}
		line := fmt.Sprintf("%s %s", name, p.Status.Phase)
		for _, condition := range p.Status.Conditions {
			if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue {
				line += " ready"
			}
		}
		out = append(out, line)
	}
	slices.Sort(out)
	return out
}

func equal(t testing.TB, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func template(app string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": app}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.com/main:1"}}},
	}
}

func intOrString(s string) *intstr.IntOrString { return new(intstr.Parse(s)) }

func selector(app string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
}

func deployment(name string, replicas int32) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"},
		Spec:       appsv1.DeploymentSpec{Replicas: &replicas, Selector: selector(name), Template: template(name)},
	}
}

// conditions of a Deployment in one line each.
func conditions(d *appsv1.Deployment) []string {
	var out []string
	for _, c := range d.Status.Conditions {
		out = append(out, fmt.Sprintf("%s=%s %s", c.Type, c.Status, c.Reason))
	}
	slices.Sort(out)
	return out
}

func TestDeploymentBecomesAvailable(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.Create(deployment("web", 3))
	c.settle()
	var d appsv1.Deployment
	c.get("web", &d)
	equal(t, "conditions", []string{"Available=True MinimumReplicasAvailable", "Progressing=True NewReplicaSetAvailable"}, conditions(&d))
	zero := int32(0)
	d.Status.Conditions = nil
	equal(t, "status", appsv1.DeploymentStatus{
		ObservedGeneration: 1, Replicas: 3, UpdatedReplicas: 3, ReadyReplicas: 3, AvailableReplicas: 3, TerminatingReplicas: &zero,
	}, d.Status)
	equal(t, "revision", "1", d.Annotations["deployment.kubernetes.io/revision"])
	var sets appsv1.ReplicaSetList
	c.list(&sets)
	if len(sets.Items) != 1 {
		t.Fatalf("%d ReplicaSets, want 1", len(sets.Items))
	}
	name := sets.Items[0].Name
	line := name + "-* Running ready"
	equal(t, "pods", []string{line, line, line}, c.pods())
	if hash := sets.Items[0].Labels["pod-template-hash"]; name != "web-"+hash {
		t.Errorf("ReplicaSet %s has the hash %q", name, hash)
	}
}

func TestDeploymentScales(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.Create(deployment("web", 3))
	c.settle()
	for _, n := range []int32{5, 1, 0, 2} {
		var d appsv1.Deployment
		c.get("web", &d)
		d.Spec.Replicas = &n
		c.update(&d)
		c.settle()
		c.get("web", &d)
		equal(t, "available", n, d.Status.AvailableReplicas)
		equal(t, "pods", int(n), len(c.pods()))
		equal(t, "observed generation", d.Generation, d.Status.ObservedGeneration)
	}
}

// TestRollingUpdateKeepsItsBounds follows a rollout step by step.
func TestRollingUpdateKeepsItsBounds(t *testing.T) {
	t.Parallel()
	for _, bounds := range [][2]int{{1, 0}, {0, 1}, {2, 1}, {0, 4}, {4, 4}} {
		t.Run(fmt.Sprintf("surge %d, unavailable %d", bounds[0], bounds[1]), func(t *testing.T) {
			t.Parallel()
			c := newCluster(t)
			surge, unavailable := intstr.FromInt(bounds[0]), intstr.FromInt(bounds[1])
			d := deployment("web", 4)
			d.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{MaxSurge: &surge, MaxUnavailable: &unavailable}
			c.Create(d)
			c.settle()
			c.get("web", d)
			d.Spec.Template.Spec.Containers[0].Image = "example.com/main:2"
			c.update(d)
			for range 100 {
				n, err := c.Plane.Step(c.Context())
				if err != nil {
					t.Fatal(err)
				}
				if n == 0 {
					break
				}
				living, ready := 0, 0
				for _, p := range c.pods() {
					living++
					if strings.HasSuffix(p, " ready") {
						ready++
					}
				}
				if living > 4+bounds[0] || ready < 4-bounds[1] {
					// A Pod that is being deleted is not counted by the strategy.
					var list corev1.PodList
					c.list(&list)
					for _, p := range list.Items {
						if p.DeletionTimestamp != nil {
							living--
						}
					}
					if living > 4+bounds[0] || ready < 4-bounds[1] {
						t.Errorf("%d Pods, %d of them ready", living, ready)
					}
				}
			}
			c.get("web", d)
			equal(t, "conditions", []string{"Available=True MinimumReplicasAvailable", "Progressing=True NewReplicaSetAvailable"}, conditions(d))
			equal(t, "updated", int32(4), d.Status.UpdatedReplicas)
			equal(t, "all", int32(4), d.Status.Replicas)
			equal(t, "revision", "2", d.Annotations["deployment.kubernetes.io/revision"])
		})
	}
}
