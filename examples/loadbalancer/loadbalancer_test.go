// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package loadbalancer_test

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/examples/loadbalancer"
	"github.com/steer-dev/steer/examples/loadbalancer/cloud"
	"github.com/steer-dev/steer/steertest"
)

// inBubble runs a test in virtual time: a cloud, and the operator on a control plane.
func inBubble(t *testing.T, body func(t *testing.T, env *steertest.Env, c *cloud.Memory)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &cloud.Memory{Latency: 200 * time.Millisecond, Lag: 3 * time.Second, Provisioning: 20 * time.Second}
		env := steertest.New(t, steertest.Options{Operator: loadbalancer.Operator(loadbalancer.Options{Cloud: c})})
		env.NeedPlane()
		body(t, env, c)
	})
}

func service(env *steertest.Env, name string, class *string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: env.Namespace, Name: name},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeLoadBalancer, LoadBalancerClass: class,
			Ports: []corev1.ServicePort{{Port: 80, Protocol: corev1.ProtocolTCP}},
		},
	}
}

func ours() *string { class := loadbalancer.Class; return &class }

func node(name, address string, ready corev1.ConditionStatus) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status: corev1.NodeStatus{
			Addresses:  []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address}},
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}},
		},
	}
}

// address waits until a Service has one.
func address(env *steertest.Env, name string) *corev1.Service {
	return steertest.Wait(env, env.Namespace+"/"+name, func(s *corev1.Service) bool { return len(s.Status.LoadBalancer.Ingress) == 1 })
}

// reason of a condition of a Service.
func reason(s *corev1.Service, condition string) string {
	if c := meta.FindStatusCondition(s.Status.Conditions, condition); c != nil && c.Status == metav1.ConditionTrue {
		return c.Reason
	}
	return ""
}

// only returns the one balancer of a cloud.
func only(t *testing.T, c *cloud.Memory) cloud.Balancer {
	t.Helper()
	all := c.Balancers()
	if len(all) != 1 {
		t.Fatalf("%d balancers: %v", len(all), all)
	}
	for _, b := range all {
		return b
	}
	return cloud.Balancer{}
}

func TestServiceGetsAnAddressAndLosesIt(t *testing.T) {
	inBubble(t, func(t *testing.T, env *steertest.Env, c *cloud.Memory) {
		env.Create(node("a", "10.0.0.1", corev1.ConditionTrue))
		env.Create(node("b", "10.0.0.2", corev1.ConditionFalse))
		env.Settled() // an event of a node has the Service reconciled once more
		env.Create(service(env, "foreign", nil))
		env.Create(service(env, "web", ours()))
		s := address(env, "web")
		if got, want := s.Status.LoadBalancer.Ingress[0].IP, "192.0.2.1"; got != want {
			t.Errorf("address %s, not %s", got, want)
		}
		b := only(t, c)
		if want := []cloud.Port{{Protocol: "TCP", Port: 80, NodePort: s.Spec.Ports[0].NodePort}}; !slices.Equal(b.Spec.Ports, want) || want[0].NodePort == 0 {
			t.Errorf("ports %v, not %v", b.Spec.Ports, want)
		}
		if want := []string{"10.0.0.1"}; !slices.Equal(b.Spec.Nodes, want) {
			t.Errorf("nodes %v, not %v", b.Spec.Nodes, want)
		}
		// Reads were behind the creation for three seconds, and it was not repeated.
		if got := c.Calls("Create"); got != 1 {
			t.Errorf("%d creations", got)
		}

		before := s.DeepCopy()
		s.Spec.Type, s.Spec.LoadBalancerClass = corev1.ServiceTypeClusterIP, nil
		if err := env.Client.Patch(env.Context(), s, client.MergeFrom(before)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		if got := len(c.Balancers()); got != 0 {
			t.Errorf("%d balancers after the type changed", got)
		}
	})
}

// On any server, in real time.
func TestServiceIsServedAnywhere(t *testing.T) {
	t.Parallel()
	c := &cloud.Memory{}
	env := steertest.New(t, steertest.Options{Operator: loadbalancer.Operator(loadbalancer.Options{Cloud: c, Settle: time.Millisecond})})
	env.Create(service(env, "web", ours()))
	s := address(env, "web")
	if reason(s, "Ready") != "Provisioned" {
		t.Errorf("conditions %v", s.Status.Conditions)
	}
	if err := env.Client.Delete(env.Context(), s); err != nil {
		t.Fatal(err)
	}
	steertest.WaitGone[*corev1.Service](env, env.Namespace+"/web")
	if got := len(c.Balancers()); got != 0 {
		t.Errorf("%d balancers are left", got)
	}
}

func TestServiceIsHeldUntilItsBalancerIsDeleted(t *testing.T) {
	inBubble(t, func(t *testing.T, env *steertest.Env, c *cloud.Memory) {
		env.Create(service(env, "web", ours()))
		s := address(env, "web")
		c.Fail(errors.New("the cloud is down"))
		if err := env.Client.Delete(env.Context(), s); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if err := env.Client.Get(env.Context(), client.ObjectKeyFromObject(s), s); err != nil {
			t.Fatal("the Service went before its balancer:", err)
		}
		c.Fail(nil)
		time.Sleep(30 * time.Minute) // the longest back-off is some minutes
		steertest.WaitGone[*corev1.Service](env, env.Namespace+"/web")
		if got := len(c.Balancers()); got != 0 {
			t.Errorf("%d balancers are left", got)
		}
	})
}

func TestBalancersFollowNodes(t *testing.T) {
	inBubble(t, func(t *testing.T, env *steertest.Env, c *cloud.Memory) {
		a := node("a", "10.0.0.1", corev1.ConditionTrue)
		env.Create(a)
		env.Create(service(env, "web", ours()))
		address(env, "web")
		env.Create(node("b", "10.0.0.2", corev1.ConditionTrue))
		time.Sleep(10 * time.Second)
		if got, want := only(t, c).Spec.Nodes, []string{"10.0.0.1", "10.0.0.2"}; !slices.Equal(got, want) {
			t.Errorf("nodes %v, not %v", got, want)
		}

		status := func(change func(*corev1.Node)) {
			t.Helper()
			before := a.DeepCopy()
			change(a)
			if err := env.Client.Status().Patch(env.Context(), a, client.MergeFrom(before)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Second)
		}
		looks := c.Calls("Get")
		status(func(n *corev1.Node) { n.Status.Conditions[0].LastHeartbeatTime = metav1.Now() })
		if got := c.Calls("Get"); got != looks {
			t.Errorf("a heartbeat made %d calls of the cloud", got-looks)
		}
		status(func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown })
		if got, want := only(t, c).Spec.Nodes, []string{"10.0.0.2"}; !slices.Equal(got, want) {
			t.Errorf("nodes %v, not %v", got, want)
		}
	})
}

func TestChangesFromOutsideLastUntilTheNextLook(t *testing.T) {
	inBubble(t, func(t *testing.T, env *steertest.Env, c *cloud.Memory) {
		env.Create(service(env, "web", ours()))
		address(env, "web")
		env.Settled()
		b := only(t, c)
		if err := c.Update(env.Context(), b.Name, cloud.Spec{Nodes: []string{"203.0.113.9"}}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(6 * time.Minute)
		if got := only(t, c).Spec; !got.Equal(b.Spec) {
			t.Errorf("%v is left of the change from outside, not %v", got, b.Spec)
		}
		if err := c.Delete(env.Context(), b.Name); err != nil {
			t.Fatal(err)
		}
		time.Sleep(6 * time.Minute)
		if got := only(t, c).Spec; !got.Equal(b.Spec) {
			t.Errorf("%v after a deletion from outside, not %v", got, b.Spec)
		}
	})
}

func TestErrorsAreRetriedByTheirClass(t *testing.T) {
	t.Run("quota", func(t *testing.T) {
		inBubble(t, func(t *testing.T, env *steertest.Env, c *cloud.Memory) {
			c.SetQuota(1)
			env.Create(service(env, "first", ours()))
			address(env, "first")
			env.Create(service(env, "second", ours()))
			steertest.Wait(env, env.Namespace+"/second", func(s *corev1.Service) bool { return reason(s, "Stalled") == "QuotaExceeded" })
			looks := c.Calls("Create")
			time.Sleep(time.Hour)
			if got := c.Calls("Create") - looks; got > 12 {
				t.Errorf("%d attempts in an hour", got)
			}
			c.SetQuota(2)
			time.Sleep(6 * time.Minute)
			if s := address(env, "second"); reason(s, "Stalled") != "" || reason(s, "Ready") != "Provisioned" {
				t.Errorf("conditions %v", s.Status.Conditions)
			}
		})
	})
	t.Run("throttled", func(t *testing.T) {
		inBubble(t, func(t *testing.T, env *steertest.Env, c *cloud.Memory) {
			c.Throttle(10 * time.Minute)
			began := time.Now()
			env.Create(service(env, "web", ours()))
			time.Sleep(15 * time.Minute)
			address(env, "web")
			if got := c.Calls("Get"); got > 8 || time.Since(began) < 10*time.Minute {
				t.Errorf("%d calls after %v", got, time.Since(began))
			}
		})
	})
	t.Run("invalid", func(t *testing.T) {
		inBubble(t, func(t *testing.T, env *steertest.Env, c *cloud.Memory) {
			s := service(env, "web", ours())
			s.Spec.Ports[0].Protocol = corev1.ProtocolSCTP
			env.Create(s)
			steertest.Wait(env, env.Namespace+"/web", func(s *corev1.Service) bool { return reason(s, "Stalled") == "NotSupported" })
			tries := c.Calls("Create")
			time.Sleep(time.Hour)
			if got := c.Calls("Create"); got != tries {
				t.Errorf("tried %d times more", got-tries)
			}
		})
	})
	t.Run("temporary", func(t *testing.T) {
		inBubble(t, func(t *testing.T, env *steertest.Env, c *cloud.Memory) {
			c.Fail(errors.New("the cloud is down"))
			env.Create(service(env, "web", ours()))
			time.Sleep(time.Minute)
			if got := len(c.Balancers()); got != 0 {
				t.Errorf("%d balancers", got)
			}
			c.Fail(nil)
			time.Sleep(5 * time.Minute)
			address(env, "web")
		})
	})
}

func TestOtherClassesAreLeftAlone(t *testing.T) {
	inBubble(t, func(t *testing.T, env *steertest.Env, c *cloud.Memory) {
		s := service(env, "foreign", nil)
		env.Create(s)
		env.Settled()
		if err := env.Client.Get(env.Context(), client.ObjectKeyFromObject(s), s); apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
		if len(s.Finalizers) != 0 || len(s.Status.Conditions) != 0 || c.Calls("Get") != 0 {
			t.Errorf("finalizers %v, conditions %v, %d calls", s.Finalizers, s.Status.Conditions, c.Calls("Get"))
		}
	})
}
