// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane"
	"github.com/steer-dev/steer/controlplane/workloads"
)

// webhook is an admission that answers the requests that it selects only once it is released.
type webhook struct {
	selects  func(*resource.AdmissionRequest) bool
	released chan struct{}
	held     atomic.Int32
}

func (*webhook) Mutates(*resource.AdmissionRequest) bool { return false }

func (*webhook) Admit(context.Context, *resource.AdmissionRequest) error { return nil }

func (w *webhook) Validate(ctx context.Context, r *resource.AdmissionRequest) error {
	if !w.selects(r) {
		return nil
	}
	w.held.Add(1)
	defer w.held.Add(-1)
	select {
	case <-w.released:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// newHeld returns a cluster that moves by itself and the webhook that holds requests of its
// controllers back.
func newHeld(t *testing.T, selects func(r *resource.AdmissionRequest) bool) (*cluster, *webhook) {
	t.Helper()
	w := &webhook{selects: selects, released: make(chan struct{})}
	c := start(t, controlplane.Options{Workloads: &workloads.Options{}, Admission: w})
	c.Settled()
	return c, w
}

// isBy reports whether a controller of kube-system writes to a resource.
func isBy(r *resource.AdmissionRequest, controller, plural string) bool {
	return strings.HasSuffix(r.User.Name, ":"+controller) && r.Resource.Plural == plural && r.Subresource == ""
}

// available waits 5 seconds of the bubble's clock, and reports how many Pods of a Deployment are available.
func (c *cluster) availableSoon(name string) int32 {
	c.Helper()
	time.Sleep(5 * time.Second)
	synctest.Wait()
	var d appsv1.Deployment
	c.get(name, &d)
	return d.Status.AvailableReplicas
}

// TestDeploymentsRollOutWhileTheWebhookOfJobsPodsHangs holds the Pods of more Jobs back than
// the Job controller has senders.
func TestDeploymentsRollOutWhileTheWebhookOfJobsPodsHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, hook := newHeld(t, func(r *resource.AdmissionRequest) bool { return isBy(r, "job-controller", "pods") })
		const jobs = 7
		for i := range jobs {
			c.Create(job(fmt.Sprint("held-", i)))
		}
		time.Sleep(time.Second)
		synctest.Wait()
		c.Create(deployment("web", 3))
		equal(t, "available while the Pods of Jobs are held", int32(3), c.availableSoon("web"))
		var d appsv1.Deployment
		c.get("web", &d)
		d.Spec.Template.Spec.Containers[0].Image = "example.com/main:2"
		c.update(&d)
		c.availableSoon("web")
		c.get("web", &d)
		equal(t, "updated while the Pods of Jobs are held", int32(3), d.Status.UpdatedReplicas)
		equal(t, "conditions", []string{"Available=True MinimumReplicasAvailable", "Progressing=True NewReplicaSetAvailable"}, conditions(&d))
		equal(t, "Events of the Deployment", true, c.hasEvent("web", "ScalingReplicaSet"))
		equal(t, "requests of the Job controller under way", int32(5), hook.held.Load())
		close(hook.released)
		c.Settled()
		for i := range jobs {
			var j batchv1.Job
			c.get(fmt.Sprint("held-", i), &j)
			equal(t, j.Name+" succeeded", int32(1), j.Status.Succeeded)
		}
		equal(t, "Pods", jobs+3, len(c.pods()))
	})
}

// hasEvent reports whether there is an Event about an object.
func (c *cluster) hasEvent(about, reason string) bool {
	c.Helper()
	var events corev1.EventList
	c.list(&events)
	for _, e := range events.Items {
		if e.InvolvedObject.Name == about && e.Reason == reason {
			return true
		}
	}
	return false
}

// TestJobsGoOnWhileThePodOfOneHangs: objects of one kind do not wait for one another either.
func TestJobsGoOnWhileThePodOfOneHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, hook := newHeld(t, func(r *resource.AdmissionRequest) bool {
			p, ok := r.Object.(*corev1.Pod)
			return ok && isBy(r, "job-controller", "pods") && strings.HasPrefix(p.GenerateName, "held-")
		})
		c.Create(job("held"))
		time.Sleep(time.Second)
		c.Create(job("free"))
		time.Sleep(5 * time.Second)
		synctest.Wait()
		var j batchv1.Job
		c.get("free", &j)
		equal(t, "succeeded while another Job is held", int32(1), j.Status.Succeeded)
		c.get("held", &j)
		j.Labels = map[string]string{"changed": "meanwhile"}
		c.update(&j)
		synctest.Wait()
		equal(t, "requests under way for the held Job", int32(1), hook.held.Load())
		close(hook.released)
		c.Settled()
		equal(t, "Pods", 2, len(c.pods()))
	})
}

// TestWorkloadsGoOnWhileTheWebhookOfEventsHangs: nothing waits for Events.
func TestWorkloadsGoOnWhileTheWebhookOfEventsHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, hook := newHeld(t, func(r *resource.AdmissionRequest) bool { return r.Resource.Plural == "events" })
		for i := range 5 {
			c.Create(deployment(fmt.Sprint("web-", i), 3))
			equal(t, "available while Events are held", int32(3), c.availableSoon(fmt.Sprint("web-", i)))
		}
		close(hook.released)
		c.Settled()
		equal(t, "Events once they are not held", true, c.hasEvent("web-4", "ScalingReplicaSet"))
	})
}

// TestSchedulerCountsPodsWhoseBindingHangs: a node with 64 CPUs has room for one of two Pods.
func TestSchedulerCountsPodsWhoseBindingHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, hook := newHeld(t, func(r *resource.AdmissionRequest) bool { return r.Subresource == "binding" && r.Name == "held" })
		for _, name := range []string{"held", "other"} {
			p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}, Spec: template("p").Spec}
			p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: apiresource.MustParse("40")}
			c.Create(p)
			time.Sleep(time.Second)
			synctest.Wait()
		}
		equal(t, "bindings under way", int32(1), hook.held.Load())
		const full = "0/1 nodes are available: 1 Insufficient cpu."
		if got := c.fate("default", "other"); !strings.HasPrefix(got, full) {
			t.Errorf("the other Pod: %q, want %q", got, full)
		}
		c.delete(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "held", Namespace: "default"}})
		close(hook.released)
		c.Settled()
		equal(t, "the node of the other Pod once the first one is gone", workloads.NodeName, c.fate("default", "other"))
	})
}
