// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package steertest_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/controller"
	"github.com/steer-dev/steer/controlplane/workloads"
	"github.com/steer-dev/steer/internal/exampletest"
	"github.com/steer-dev/steer/manager"
	"github.com/steer-dev/steer/steertest"
)

// labeler marks every Pod that runs.
type labeler struct{ client.Client }

func (l labeler) Reconcile(ctx context.Context, pod *corev1.Pod) (controller.Result, error) {
	if pod.Status.Phase != corev1.PodRunning || pod.Labels["seen"] == "true" {
		return controller.Done(), nil
	}
	marked := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}
	return controller.Done(), l.Patch(ctx, marked, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"seen":"true"}}}`)))
}

func labelerSetup(_ context.Context, m *manager.Manager) error {
	return controller.Add(m, labeler{m.Client()})
}

func podScheme() *kruntime.Scheme {
	s, err := client.NewScheme(corev1.AddToScheme)
	if err != nil {
		panic(err)
	}
	return s
}

func examplePod() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "nginx"}}},
	}
}

func seen(pod *corev1.Pod) string { return pod.Labels["seen"] }

// A test has a control plane of its own, and the operator in it.
func ExampleNew() {
	exampletest.Run(func(t testing.TB) {
		env := steertest.New(t, steertest.Options{Scheme: podScheme(), Setup: labelerSetup})
		pod := examplePod()
		pod.Status.Phase = corev1.PodRunning // objects are seeded in any state
		env.Create(pod)
		got := steertest.Wait(env, "default/web", func(p *corev1.Pod) bool { return seen(p) != "" })
		fmt.Println(got.Name, "seen:", seen(got))
	})
	// Output: web seen: true
}

// Matchers say what is missing when a test fails.
func ExampleExpect() {
	exampletest.Run(func(t testing.TB) {
		env := steertest.New(t, steertest.Options{Scheme: podScheme(), Setup: labelerSetup, Workloads: steertest.Workloads()})
		env.Create(examplePod())
		pod := steertest.Expect[*corev1.Pod](env, "default/web",
			steertest.Ready,
			steertest.Condition("PodScheduled", metav1.ConditionTrue),
			steertest.Field(seen, "true"))
		fmt.Println(pod.Status.Phase)
	})
	// Output: Running
}

// Pods come to the end that is scripted for them.
func ExampleWorkloads() {
	exampletest.Run(func(t testing.TB) {
		env := steertest.New(t, steertest.Options{
			Scheme:    podScheme(),
			Workloads: steertest.Workloads(workloads.Outcome{Fate: workloads.Unschedulable}),
		})
		env.Create(examplePod())
		steertest.Expect[*corev1.Pod](env, "default/web", steertest.Condition("PodScheduled", metav1.ConditionFalse, "Unschedulable"))
		fmt.Println("nowhere to run")
	})
	// Output: nowhere to run
}

// After Settled nothing more will happen, so that a test can see that something
// has not.
func ExampleEnv_Settled() {
	exampletest.Run(func(t testing.TB) {
		env := steertest.New(t, steertest.Options{Scheme: podScheme(), Setup: labelerSetup})
		env.Create(examplePod()) // it does not run: it is not reconciled
		env.Settled()
		pod := examplePod()
		if err := env.Client.Get(env.Context(), client.ObjectKeyFromObject(pod), pod); err != nil {
			t.Fatal(err)
		}
		fmt.Printf("seen: %q\n", seen(pod))
	})
	// Output: seen: ""
}

// The API server fails by verb and kind, and a retry makes up for it.
func ExampleFault() {
	exampletest.Run(func(t testing.TB) {
		env := steertest.New(t, steertest.Options{
			Scheme: podScheme(), Setup: labelerSetup, Workloads: steertest.Workloads(),
			Faults: []steertest.Fault{{Verb: client.VerbPatch, Kind: "Pod", With: steertest.Conflict, Times: 2}},
		})
		env.Create(examplePod())
		pod := steertest.Expect[*corev1.Pod](env, "default/web", steertest.Field(seen, "true"))
		fmt.Println("seen:", seen(pod))
	})
	// Output: seen: true
}

// The operator is killed after each of its writes, and another one finishes.
func ExampleKillAfterEveryWrite() {
	exampletest.Run(func(t testing.TB) {
		env := steertest.New(t, steertest.Options{Scheme: podScheme(), Setup: labelerSetup, Workloads: steertest.Workloads()})
		killed := steertest.KillAfterEveryWrite[*corev1.Pod](env, "default/web", func() {
			env.Create(examplePod())
		}, steertest.Field(seen, "true"))
		fmt.Println("killed after:", killed)
	})
	// Output: killed after: [patch Pod web]
}

// Others may do what roles allow them to do.
func ExampleEnv_AsUser() {
	exampletest.Run(func(t testing.TB) {
		env := steertest.New(t, steertest.Options{Scheme: podScheme()})
		err := env.AsUser("eve").Create(env.Context(), examplePod())
		fmt.Println(apierrors.IsForbidden(err))
	})
	// Output: true
}

// Time is virtual in a bubble of testing/synctest: an hour goes by at once, and the
// operator needs no clock that a test can set. See docs/time.md.
func ExampleEnv_Settled_virtualTime() {
	_ = func(t *testing.T) { // the body of a test
		synctest.Test(t, func(t *testing.T) {
			env := steertest.New(t, steertest.Options{Scheme: podScheme(), Setup: labelerSetup})
			env.Create(examplePod())
			time.Sleep(time.Hour)
			env.Settled()
		})
	}
}

// What happens while the operator is away is made up for when it is back.
func ExampleEnv_StartOperator() {
	exampletest.Run(func(t testing.TB) {
		env := steertest.New(t, steertest.Options{Scheme: podScheme(), Setup: labelerSetup, Workloads: steertest.Workloads()})
		env.StopOperator()
		env.Create(examplePod())
		env.StartOperator()
		env.Settled()
		steertest.Expect[*corev1.Pod](env, "default/web", steertest.Field(seen, "true"))
		fmt.Println("seen")
	})
	// Output: seen
}
