// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/controlplane/workloads"
)

// random are the parts of names and uids that differ between runs.
var random = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}|-[0-9a-z]{5}\b`)

// events are the Events in the order in which they were recorded: who says what of
// which kind of object.
func (c *cluster) events() []string {
	c.Helper()
	var list corev1.EventList
	c.list(&list)
	slices.SortFunc(list.Items, func(a, b corev1.Event) int {
		moment := func(e *corev1.Event) string { return e.Name[strings.LastIndexByte(e.Name, '.'):] }
		return strings.Compare(moment(&a), moment(&b))
	})
	var out []string
	for i := range list.Items {
		e := &list.Items[i]
		line := fmt.Sprintf("%s %s %s: %s", e.ReportingController, e.InvolvedObject.Kind, e.Reason, e.Message)
		if e.Type == corev1.EventTypeWarning {
			line = "! " + line
		}
		if e.Count > 1 {
			line += fmt.Sprintf(" (%d)", e.Count)
		}
		out = append(out, random.ReplaceAllString(line, "-*"))
	}
	return out
}

func TestEventsReportARollout(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.Create(deployment("web", 2))
	c.settle()
	said := c.events()
	name := regexp.MustCompile(`web-[0-9a-z]+`).FindString(said[0])
	start := []string{
		"default-scheduler Pod Scheduled: Successfully assigned default/" + name + "-* to steer-node",
		`kubelet Pod Pulled: Container image "example.com/main:1" already present on machine and can be accessed by the pod`,
		"kubelet Pod Created: Container created",
		"kubelet Pod Started: Container started",
	}
	want := []string{
		"deployment-controller Deployment ScalingReplicaSet: Scaled up replica set " + name + " from 0 to 2",
		"replicaset-controller ReplicaSet SuccessfulCreate: Created pod: " + name + "-*",
	}
	slices.Sort(said)
	equal(t, "events of a start", slices.Sorted(slices.Values(append(append(want, want[1]), append(start, start...)...))), said)
	var list corev1.EventList
	c.list(&list)
	for i := range list.Items {
		e := &list.Items[i]
		ref := e.InvolvedObject
		if ref.UID == "" || ref.ResourceVersion == "" || ref.APIVersion == "" || ref.Namespace != "default" || !strings.HasPrefix(e.Name, ref.Name+".") {
			t.Errorf("%s is about %+v", e.Name, ref)
		}
		switch e.ReportingController {
		case "default-scheduler":
			if e.EventTime.IsZero() || e.Action != "Binding" || e.Count != 0 || e.ReportingInstance == "" {
				t.Errorf("of the scheduler: %+v", e)
			}
		case "kubelet":
			if e.Source.Host != workloads.NodeName || e.ReportingInstance != workloads.NodeName || ref.FieldPath != "spec.containers{main}" {
				t.Errorf("of the kubelet: %+v", e)
			}
		default:
			if e.Source.Component != e.ReportingController || e.Count != 1 || e.FirstTimestamp.IsZero() {
				t.Errorf("of a controller: %+v", e)
			}
		}
	}
	d := deployment("web", 0)
	c.get("web", d)
	*d.Spec.Replicas = 1
	c.update(d)
	c.settle()
	said = c.events()
	equal(t, "events of a scale-down", []string{
		"deployment-controller Deployment ScalingReplicaSet: Scaled down replica set " + name + " from 2 to 1",
		"replicaset-controller ReplicaSet SuccessfulDelete: Deleted pod: " + name + "-*",
		"kubelet Pod Killing: Stopping container main",
	}, said[len(said)-3:])
}

func TestEventsReportCrashesAndFailedScheduling(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, workloads.Outcome{Selector: "app=bad", Fate: workloads.CrashLoop}, workloads.Outcome{Selector: "app=big", Fate: workloads.Unschedulable})
		pod := func(name string) {
			of := template(name)
			c.Create(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", Labels: of.Labels}, Spec: of.Spec})
		}
		pod("big")
		c.settle()
		pod("bad")
		c.settle()
		time.Sleep(15 * time.Second)
		c.settle()
		equal(t, "events", []string{
			"! default-scheduler Pod FailedScheduling: 0/1 nodes are available: 1 node(s) are scripted not to take the pod. no new claims to deallocate, preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.",
			"default-scheduler Pod Scheduled: Successfully assigned default/bad to steer-node",
			`kubelet Pod Pulled: Container image "example.com/main:1" already present on machine and can be accessed by the pod (2)`,
			"kubelet Pod Created: Container created (2)",
			"kubelet Pod Started: Container started (2)",
			"! kubelet Pod BackOff: Back-off restarting failed container main in pod bad_default(-*) (2)",
		}, c.events())
	})
}

func TestEventsReportJobsAndTheirFailures(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, workloads.Outcome{Selector: "app=bad", Fate: workloads.Fail})
		c.Create(job("ok"))
		c.settle()
		bad := job("bad")
		bad.Spec.BackoffLimit = new(int32(0))
		c.Create(bad)
		c.settle()
		var said []string
		for _, line := range c.events() {
			if strings.Contains(line, " Job ") {
				said = append(said, line)
			}
		}
		equal(t, "events", []string{
			"job-controller Job SuccessfulCreate: Created pod: ok-*",
			"job-controller Job Completed: Job completed",
			"job-controller Job SuccessfulCreate: Created pod: bad-*",
			"! job-controller Job BackoffLimitExceeded: Job has reached the specified backoff limit",
		}, said)
	})
}

func TestEventsReportSchedules(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.Create(&batchv1.CronJob{
			ObjectMeta: metav1.ObjectMeta{Name: "hello", Namespace: "default"},
			Spec:       batchv1.CronJobSpec{Schedule: "* * * * *", JobTemplate: batchv1.JobTemplateSpec{Spec: job("x").Spec}},
		})
		c.settle()
		time.Sleep(61 * time.Second)
		c.settle()
		var said []string
		for _, line := range c.events() {
			if strings.Contains(line, " CronJob ") {
				said = append(said, line)
			}
		}
		name := fmt.Sprintf("hello-%d", time.Now().Unix()/60)
		equal(t, "events", []string{
			"cronjob-controller CronJob SuccessfulCreate: Created job " + name,
			"cronjob-controller CronJob SawCompletedJob: Saw completed job: " + name + ", condition: Complete",
		}, said)
	})
}

func TestEventsReportRefusedPodsOncePerSeries(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.Create(&corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "q", Namespace: "default"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: {}}},
	})
	c.settle()
	c.Create(statefulSet(1))
	_, _ = c.Plane.Settle(c.Context()) // gives up, as requests keep failing
	equal(t, "events", []string{
		`! statefulset-controller StatefulSet FailedCreate: Create Pod db-0 in StatefulSet db failed error: pods "db-0" is forbidden: exceeded quota: q, requested: pods=1, used: pods=0, limited: pods=0`,
	}, c.events())
	c.Create(job("x"))
	_, _ = c.Plane.Settle(c.Context()) // as above
	var j batchv1.Job
	c.get("x", &j)
	equal(t, "active Pods of a Job that can make none", int32(0), j.Status.Active)
}
