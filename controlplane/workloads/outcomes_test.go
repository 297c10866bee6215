// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane"
	"github.com/steer-dev/steer/controlplane/workloads"
)

// podLine is the state of a Pod in one line.
func (c *cluster) podLine(name string) string {
	c.Helper()
	var p corev1.Pod
	c.get(name, &p)
	out := string(p.Status.Phase)
	for _, condition := range p.Status.Conditions {
		if condition.Status == corev1.ConditionTrue {
			out += " " + string(condition.Type)
		}
	}
	for _, s := range p.Status.ContainerStatuses {
		switch {
		case s.State.Waiting != nil:
			out += fmt.Sprintf(", %s %s after %d restarts", s.Name, s.State.Waiting.Reason, s.RestartCount)
		case s.State.Terminated != nil:
			out += fmt.Sprintf(", %s %s %d", s.Name, s.State.Terminated.Reason, s.State.Terminated.ExitCode)
		default:
			out += ", " + s.Name + " running"
		}
	}
	return out
}

func TestPodsRunToTheirOutcome(t *testing.T) {
	t.Parallel()
	const starting = " PodReadyToStartContainers Initialized"
	for _, test := range []struct {
		outcome workloads.Outcome
		policy  corev1.RestartPolicy
		states  string // after 0 s, 10 s, 20 s, 60 s
	}{
		{workloads.Outcome{}, corev1.RestartPolicyAlways, `
Running PodScheduled` + starting + ` Ready ContainersReady, main running`},
		{workloads.Outcome{Fate: workloads.Ready, After: 15 * time.Second}, corev1.RestartPolicyAlways, `
Running PodScheduled` + starting + `, main running
Running PodScheduled` + starting + `, main running
Running PodScheduled` + starting + ` Ready ContainersReady, main running`},
		{workloads.Outcome{Fate: workloads.Never}, corev1.RestartPolicyAlways, `
Running PodScheduled` + starting + `, main running`},
		{workloads.Outcome{Fate: workloads.Unschedulable}, corev1.RestartPolicyAlways, `
Pending`},
		{workloads.Outcome{Fate: workloads.CrashLoop}, corev1.RestartPolicyAlways, `
Running PodScheduled` + starting + `, main CrashLoopBackOff after 1 restarts
Running PodScheduled` + starting + `, main CrashLoopBackOff after 2 restarts
Running PodScheduled` + starting + `, main CrashLoopBackOff after 2 restarts
Running PodScheduled` + starting + `, main CrashLoopBackOff after 3 restarts`},
		{workloads.Outcome{Fate: workloads.Complete, After: 10 * time.Second}, corev1.RestartPolicyNever, `
Running PodScheduled` + starting + ` Ready ContainersReady, main running
Succeeded PodScheduled Initialized, main Completed 0`},
		{workloads.Outcome{Fate: workloads.Fail}, corev1.RestartPolicyNever, `
Failed PodScheduled Initialized, main Error 1`},
	} {
		name := fmt.Sprintf("%s after %s, restart %s", test.outcome.Fate, test.outcome.After, test.policy)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				test.outcome.Selector = "app=x"
				c := newCluster(t, test.outcome)
				pod := template("x")
				pod.Spec.RestartPolicy = test.policy
				c.Create(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "x", Namespace: "default", Labels: pod.Labels}, Spec: pod.Spec})
				states := strings.Split(strings.TrimSpace(test.states), "\n")
				for i, at := range []time.Duration{0, 10 * time.Second, 20 * time.Second, 60 * time.Second} {
					if i > 0 {
						time.Sleep(at - []time.Duration{0, 10 * time.Second, 20 * time.Second}[i-1])
					}
					c.settle()
					equal(t, fmt.Sprint("after ", at), states[min(i, len(states)-1)], c.podLine("x"))
				}
				if err := c.Client.Delete(c.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "x", Namespace: "default"}}); err != nil {
					t.Fatal(err)
				}
				c.settle()
				equal(t, "pods", []string(nil), c.pods())
			})
		})
	}
}

func TestRolloutOfAnImageThatCrashesTimesOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, workloads.Outcome{Selector: "app=web,version=bad", Fate: workloads.CrashLoop})
		d := deployment("web", 4)
		d.Spec.ProgressDeadlineSeconds = new(int32(60))
		c.Create(d)
		c.settle()
		c.get("web", d)
		d.Spec.Template.Labels["version"] = "bad"
		c.update(d)
		c.settle()
		c.get("web", d)
		equal(t, "conditions", []string{"Available=True MinimumReplicasAvailable", "Progressing=True ReplicaSetUpdated"}, conditions(d))
		equal(t, "ready", int32(3), d.Status.ReadyReplicas)
		time.Sleep(62 * time.Second)
		c.settle()
		c.get("web", d)
		equal(t, "conditions", []string{"Available=True MinimumReplicasAvailable", "Progressing=False ProgressDeadlineExceeded"}, conditions(d))
		delete(d.Spec.Template.Labels, "version") // back to what works
		c.update(d)
		c.settle()
		c.get("web", d)
		equal(t, "conditions", []string{"Available=True MinimumReplicasAvailable", "Progressing=True NewReplicaSetAvailable"}, conditions(d))
		equal(t, "revision", "3", d.Annotations["deployment.kubernetes.io/revision"])
	})
}

func TestDeploymentRecreateEndsTheOldPodsFirst(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	d := deployment("web", 2)
	d.Spec.Strategy.Type = appsv1.RecreateDeploymentStrategyType
	c.Create(d)
	c.settle()
	c.get("web", d)
	d.Spec.Template.Spec.Containers[0].Image = "example.com/main:2"
	c.update(d)
	empty := false
	for _, state := range c.history() {
		empty = empty || state == ""
		if strings.Count(state, "-*") > 2 {
			t.Errorf("old and new Pods together: %s", state)
		}
	}
	if !empty {
		t.Error("the old Pods were not gone before the new ones came")
	}
	c.get("web", d)
	equal(t, "conditions", []string{"Available=True MinimumReplicasAvailable", "Progressing=True NewReplicaSetAvailable"}, conditions(d))
}

func TestMinReadySecondsDelayAvailability(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		d := deployment("web", 2)
		d.Spec.MinReadySeconds = 30
		c.Create(d)
		c.settle()
		for _, want := range []int32{0, 2} {
			c.get("web", d)
			equal(t, "ready", int32(2), d.Status.ReadyReplicas)
			equal(t, "available", want, d.Status.AvailableReplicas)
			time.Sleep(30 * time.Second)
			c.settle()
		}
	})
}

func TestPausedDeploymentScalesButDoesNotRoll(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	d := deployment("web", 2)
	c.Create(d)
	c.settle()
	c.get("web", d)
	d.Spec.Paused, d.Spec.Replicas = true, new(int32(3))
	d.Spec.Template.Spec.Containers[0].Image = "example.com/main:2"
	c.update(d)
	c.settle()
	c.get("web", d)
	equal(t, "conditions", []string{"Available=True MinimumReplicasAvailable", "Progressing=Unknown DeploymentPaused"}, conditions(d))
	equal(t, "counts", []int32{3, 0}, []int32{d.Status.Replicas, d.Status.UpdatedReplicas})
	d.Spec.Paused = false
	c.update(d)
	c.settle()
	c.get("web", d)
	equal(t, "counts", []int32{3, 3}, []int32{d.Status.Replicas, d.Status.UpdatedReplicas})
}

func TestDeploymentHistoryIsLimited(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	d := deployment("web", 1)
	d.Spec.RevisionHistoryLimit = new(int32(2))
	c.Create(d)
	for i := range 5 {
		c.settle()
		c.get("web", d)
		d.Spec.Template.Spec.Containers[0].Image = fmt.Sprint("example.com/main:", i+2)
		c.update(d)
	}
	c.settle()
	var sets appsv1.ReplicaSetList
	c.list(&sets)
	equal(t, "ReplicaSets", 3, len(sets.Items))
}

func TestPodsAreAdoptedAndReleased(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	pod := template("web")
	c.Create(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "orphan", Namespace: "default", Labels: pod.Labels}, Spec: pod.Spec})
	c.settle()
	c.Create(&appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default"},
		Spec:       appsv1.ReplicaSetSpec{Replicas: new(int32(1)), Selector: selector("web"), Template: pod},
	})
	c.settle()
	var p corev1.Pod
	c.get("orphan", &p)
	if len(c.pods()) > 2 || len(p.OwnerReferences) != 1 {
		t.Fatalf("the orphan has the owners %v beside %v", p.OwnerReferences, c.pods())
	}
	p.Labels["app"] = "other"
	c.update(&p)
	c.settle()
	c.get("orphan", &p)
	equal(t, "owners", 0, len(p.OwnerReferences))
	equal(t, "pods", []string{"orphan Running ready", "web-* Running ready"}, c.pods())
}

func TestReplicationControllerKeepsItsPods(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	pod := template("old")
	rc := &corev1.ReplicationController{
		ObjectMeta: metav1.ObjectMeta{Name: "old", Namespace: "default"},
		Spec:       corev1.ReplicationControllerSpec{Replicas: new(int32(2)), Template: &pod},
	}
	c.Create(rc)
	c.settle()
	c.get("old", rc)
	equal(t, "status", corev1.ReplicationControllerStatus{
		Replicas: 2, FullyLabeledReplicas: 2, ReadyReplicas: 2, AvailableReplicas: 2, ObservedGeneration: 1,
	}, rc.Status)
	equal(t, "pods", []string{"old-* Running ready", "old-* Running ready"}, c.pods())
}

func TestDaemonSetRunsOnTheNode(t *testing.T) {
	t.Parallel()
	for _, surge := range []bool{false, true} {
		t.Run(fmt.Sprint("surge ", surge), func(t *testing.T) {
			t.Parallel()
			c := newCluster(t)
			d := &appsv1.DaemonSet{
				ObjectMeta: metav1.ObjectMeta{Name: "agent", Namespace: "default"},
				Spec:       appsv1.DaemonSetSpec{Selector: selector("agent"), Template: template("agent")},
			}
			most := 1
			if surge {
				most = 2
				d.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateDaemonSet{MaxSurge: intOrString("1"), MaxUnavailable: intOrString("0")}
			}
			c.Create(d)
			c.settle()
			c.get("agent", d)
			want := appsv1.DaemonSetStatus{
				DesiredNumberScheduled: 1, CurrentNumberScheduled: 1, NumberReady: 1, NumberAvailable: 1, UpdatedNumberScheduled: 1, ObservedGeneration: 1,
			}
			equal(t, "status", want, d.Status)
			d.Spec.Template.Spec.Containers[0].Image = "example.com/main:2"
			c.update(d)
			for _, state := range c.history() {
				if n := strings.Count(state, "agent-*"); n > most || surge && n == 0 {
					t.Errorf("Pods during the update: %s", state)
				}
			}
			c.get("agent", d)
			want.ObservedGeneration = 2
			equal(t, "status", want, d.Status)
		})
	}
}

func TestCronJobStartsJobsOnTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		cron := &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Name: "tick", Namespace: "default"}}
		cron.Spec.Schedule = "*/5 * * * *"
		cron.Spec.JobTemplate.Spec = job("tick").Spec
		c.Create(cron)
		c.settle()
		jobs := func() int {
			var list batchv1.JobList
			c.list(&list)
			return len(list.Items)
		}
		equal(t, "jobs at first", 0, jobs())
		for i, want := range []int{1, 2, 3, 3} { // three are kept
			time.Sleep(5 * time.Minute)
			c.settle()
			equal(t, fmt.Sprint("jobs after tick ", i+1), want, jobs())
		}
		c.get("tick", cron)
		if cron.Status.LastScheduleTime == nil || !cron.Status.LastScheduleTime.Time.Equal(time.Now()) || cron.Status.LastSuccessfulTime == nil {
			t.Errorf("status %+v at %s", cron.Status, time.Now())
		}
	})
}

func TestNamespaceWithWorkloadsGoesAway(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "doomed"}}
	c.Create(ns)
	d, s, j := deployment("web", 3), statefulSet(2), job("x")
	for _, obj := range []object{d, s, j} {
		obj.SetNamespace("doomed")
		c.Create(obj)
	}
	c.settle()
	equal(t, "pods", 6, len(c.pods()))
	if err := c.Client.Delete(c.Context(), ns); err != nil {
		t.Fatal(err)
	}
	c.settle()
	equal(t, "pods", 0, len(c.pods()))
	if err := c.Client.Get(c.Context(), key("", "doomed"), ns); !apierrors.IsNotFound(err) {
		t.Errorf("the namespace is still there: %v, %+v", err, ns.Status)
	}
}

// noPods refuses Pods while it is closed.
type noPods struct{ open bool }

func (n *noPods) Admit(_ context.Context, r *resource.AdmissionRequest) error {
	if r.Resource.Plural == "pods" && r.Operation == resource.Create && r.Subresource == "" && !n.open {
		return apierrors.NewForbidden(r.Resource.GroupResource(), r.Name, errors.New("closed today"))
	}
	return nil
}

func (n *noPods) Validate(context.Context, *resource.AdmissionRequest) error { return nil }

func TestDeploymentStatusShowsRefusedPods(t *testing.T) {
	t.Parallel()
	gate := &noPods{}
	c := start(t, controlplane.Options{ManualControllers: true, Admission: gate, Workloads: &workloads.Options{}})
	d := deployment("web", 1)
	c.Create(d)
	for range 10 {
		if _, err := c.Plane.Step(c.Context()); err != nil {
			t.Fatal(err)
		}
	}
	c.get("web", d)
	equal(t, "conditions", []string{
		"Available=False MinimumReplicasUnavailable", "Progressing=True NewReplicaSetCreated", "ReplicaFailure=True FailedCreate",
	}, conditions(d))
	if m := d.Status.Conditions[len(d.Status.Conditions)-1].Message; !strings.HasPrefix(m, "pods ") || !strings.HasSuffix(m, "closed today") {
		t.Errorf("message %q", m)
	}
	gate.open = true
	c.settle()
	c.get("web", d)
	equal(t, "conditions", []string{"Available=True MinimumReplicasAvailable", "Progressing=True NewReplicaSetAvailable"}, conditions(d))
}

// TestDeploymentCrashLongAfterTheRolloutLeavesTheLoopAtRest would not end if the passed
// deadline of the rollout kept the controller busy.
func TestDeploymentCrashLongAfterTheRolloutLeavesTheLoopAtRest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newLoop(t, workloads.Outcome{Selector: "app=web", Fate: workloads.CrashLoop, After: 20 * time.Minute})
		c.Create(deployment("web", 1))
		synctest.Wait()
		var d appsv1.Deployment
		c.get("web", &d)
		equal(t, "conditions", []string{"Available=True MinimumReplicasAvailable", "Progressing=True NewReplicaSetAvailable"}, conditions(&d))
		time.Sleep(25 * time.Minute)
		synctest.Wait()
		c.get("web", &d)
		equal(t, "conditions", []string{"Available=False MinimumReplicasUnavailable", "Progressing=True NewReplicaSetAvailable"}, conditions(&d))
	})
}

// TestLoopWakesWhenTimePasses lets the plane run by itself: nothing is written
// between the start of a Pod and the time at which it becomes ready.
func TestLoopWakesWhenTimePasses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newLoop(t, workloads.Outcome{Selector: "app=web", Fate: workloads.Ready, After: time.Minute})
		c.Create(deployment("web", 2))
		synctest.Wait()
		var d appsv1.Deployment
		c.get("web", &d)
		equal(t, "ready", int32(0), d.Status.ReadyReplicas)
		time.Sleep(time.Minute)
		synctest.Wait()
		c.get("web", &d)
		equal(t, "ready", int32(2), d.Status.ReadyReplicas)
	})
}
