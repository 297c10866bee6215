// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package readiness_test

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/client/readiness"
	"github.com/steer-dev/steer/steertest"
)

func TestStatusSaysWhyAnObjectIsNotReady(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 300)
	for name, c := range map[string]struct{ kind, content, want string }{
		"a Deployment":              {"apps/Deployment", "spec: {replicas: 3}\nstatus: {readyReplicas: 1}", "1 of 3 ready"},
		"one without a number":      {"apps/Deployment", "status: {}", "0 of 1 ready"},
		"one that is ready":         {"apps/Deployment", "spec: {replicas: 1}\nstatus: {readyReplicas: 1}", ""},
		"one of none":               {"apps/StatefulSet", "spec: {replicas: 0}", ""},
		"a quota":                   {"apps/ReplicaSet", "status: {conditions: [{type: ReplicaFailure, status: 'True', reason: FailedCreate, message: exceeded quota}]}", "0 of 1 ready, FailedCreate: exceeded quota"},
		"a DaemonSet":               {"apps/DaemonSet", "status: {numberReady: 1, desiredNumberScheduled: 2}", "1 of 2 ready"},
		"a Job":                     {"batch/Job", "spec: {completions: 2}\nstatus: {succeeded: 1}", "1 of 2 succeeded"},
		"a Job that failed":         {"batch/Job", "status: {conditions: [{type: Failed, status: 'True', reason: BackoffLimitExceeded}]}", "0 of 1 succeeded, BackoffLimitExceeded"},
		"a Job that ended early":    {"batch/Job", "spec: {completions: 2}\nstatus: {conditions: [{type: Complete, status: 'True'}]}", ""},
		"a claim":                   {"/PersistentVolumeClaim", "status: {phase: Pending}", "Pending"},
		"a claim that is bound":     {"/PersistentVolumeClaim", "status: {phase: Bound}", ""},
		"another kind":              {"example.com/Shop", "status: {conditions: [{type: Ready, status: 'False', reason: NoStaff, message: none came}]}", "NoStaff: none came"},
		"a long message":            {"example.com/Shop", "status: {conditions: [{type: Ready, status: 'False', reason: R, message: " + long + "}]}", "R: " + long[:200] + "..."},
		"no reason":                 {"example.com/Shop", "status: {conditions: [{type: Available, status: Unknown}]}", "Available is Unknown"},
		"no status":                 {"example.com/Shop", "{}", ""},
		"another group":             {"example.com/Deployment", "spec: {replicas: 3}", ""},
		"a Pod in a loop":           {"/Pod", "status: {phase: Running, containerStatuses: [{name: a, ready: false, state: {waiting: {reason: ContainerCreating}}}, {name: b, state: {waiting: {reason: CrashLoopBackOff}}}]}", "CrashLoopBackOff"},
		"a Pod without an image":    {"/Pod", "status: {phase: Pending, initContainerStatuses: [{name: a, state: {waiting: {reason: ImagePullBackOff}}}]}", "ImagePullBackOff"},
		"a Pod whose program ended": {"/Pod", "status: {phase: Failed, containerStatuses: [{name: a, state: {terminated: {reason: Error, exitCode: 1}}}]}", "Error"},
		"a Pod without a node":      {"/Pod", "status: {phase: Pending, conditions: [{type: PodScheduled, status: 'False', reason: Unschedulable, message: 0/1 nodes}]}", "Unschedulable: 0/1 nodes"},
		"a Pod that fails a probe":  {"/Pod", "status: {phase: Running, containerStatuses: [{name: a, ready: false, state: {running: {}}}]}", "container a is not ready"},
		"a Pod that is ready":       {"/Pod", "status: {phase: Running, conditions: [{type: Ready, status: 'True'}]}", ""},
		"a Pod that is done":        {"/Pod", "status: {phase: Succeeded}", ""},
		"a Pod without a status":    {"/Pod", "{}", ""},
	} {
		group, kind, _ := strings.Cut(c.kind, "/")
		var content map[string]any
		if err := yaml.Unmarshal([]byte(c.content), &content); err != nil {
			t.Fatal(err)
		}
		of := schema.GroupKind{Group: group, Kind: kind}
		if got := readiness.Of(of, content); got != c.want {
			t.Errorf("%s, as encoding/json decodes it: %q, want %q", name, got, c.want)
		}
		whole(content)
		if got := readiness.Of(of, content); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// whole makes integers of the numbers, as objects of the API server have them.
func whole(content map[string]any) {
	for key, value := range content {
		switch value := value.(type) {
		case float64:
			content[key] = int64(value)
		case map[string]any:
			whole(value)
		case []any:
			for _, one := range value {
				if one, ok := one.(map[string]any); ok {
					whole(one)
				}
			}
		}
	}
}

func TestExplanationsGoDownToThePod(t *testing.T) {
	t.Parallel()
	scheme, err := client.NewScheme(appsv1.AddToScheme, batchv1.AddToScheme, corev1.AddToScheme)
	if err != nil {
		t.Fatal(err)
	}
	labels := map[string]string{"app": "db"}
	pod := func(name, reason string) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "a"}}}}
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		if reason != "" {
			p.Status = corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "a", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}}}}
		}
		return p
	}
	env := steertest.New(t, steertest.Options{Scheme: scheme, Objects: []client.Object{pod("db-0", ""), pod("db-1", "CrashLoopBackOff"), pod("db-2", "ImagePullBackOff")}})
	set := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "db", Namespace: "default"},
		Spec:       appsv1.StatefulSetSpec{Replicas: new(int32(3)), Selector: &metav1.LabelSelector{MatchLabels: labels}},
		Status:     appsv1.StatefulSetStatus{ReadyReplicas: 1},
	}
	for _, c := range []struct {
		pods   client.Reader
		scheme *runtime.Scheme
		obj    client.Object
		want   string
		fails  bool
	}{
		{env.Client, scheme, set, "StatefulSet db: 1 of 3 ready, Pod db-1: CrashLoopBackOff", false},
		{nil, scheme, set, "StatefulSet db: 1 of 3 ready", false},
		{env.Client, scheme, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "one"}}, "ConfigMap one", false},
		{env.Client, scheme, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "fill"}}, "Job fill: 0 of 1 succeeded", false},
		{env.Client, runtime.NewScheme(), set, "db", true},
	} {
		if got, err := readiness.Explain(t.Context(), c.scheme, c.pods, c.obj); got != c.want || (err != nil) != c.fails {
			t.Errorf("%q (%v), want %q", got, err, c.want)
		}
	}
}
