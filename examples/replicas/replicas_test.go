// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package replicas_test

import (
	"maps"
	"slices"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/client/await"
	"github.com/steer-dev/steer/examples/replicas"
	v1 "github.com/steer-dev/steer/examples/replicas/api/v1"
	"github.com/steer-dev/steer/sim"
	"github.com/steer-dev/steer/steertest"
)

func TestAFleetIsKeptAtItsNumber(t *testing.T) {
	t.Parallel()
	keepsFleets(t)
}

// TestAFleetIsKeptWhateverGoesWrong crashes the operator at every write.
func TestAFleetIsKeptWhateverGoesWrong(t *testing.T) {
	t.Parallel()
	sim.Test(t, keepsFleets)
}

func keepsFleets(t *testing.T) {
	t.Helper()
	env := steertest.New(t, steertest.Options{CRDs: []string{"config/crd/bases"}, Operator: replicas.Operator()})
	fleet := &v1.Fleet{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       v1.FleetSpec{Replicas: 2, Image: "nginx"},
	}
	env.Create(fleet)
	status := func(replicas, ready int32) {
		t.Helper()
		fleet = steertest.Wait(env, "web", func(f *v1.Fleet) bool {
			return f.Status.Replicas == replicas && f.Status.Ready == ready && f.Status.ObservedGeneration == f.Generation
		})
	}
	scale := func(n int32) {
		t.Helper()
		before := fleet.DeepCopy()
		fleet.Spec.Replicas = n
		if err := env.Client.Patch(env.Context(), fleet, client.MergeFrom(before)); err != nil {
			t.Fatal(err)
		}
	}
	pods := func(n int) map[string]types.UID {
		t.Helper()
		list := steertest.WaitList(env, func(l *corev1.PodList) bool { return len(l.Items) == n }, client.InNamespace(env.Namespace))
		out := map[string]types.UID{}
		for _, p := range list.Items {
			out[p.Name] = p.UID
		}
		return out
	}
	status(2, 0)
	two := pods(2)

	// Desired three, actual two: the third is made and the others stay.
	scale(3)
	status(3, 0)
	three := pods(3)
	if three["web-0"] != two["web-0"] || three["web-1"] != two["web-1"] || three["web-2"] == "" {
		t.Errorf("%v became %v", two, three)
	}

	// The status follows the Pods.
	for _, name := range slices.Sorted(maps.Keys(three)) {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: env.Namespace, Name: name}}
		ready := client.RawPatch(types.MergePatchType, []byte(`{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`))
		if err := env.Client.Status().Patch(env.Context(), pod, ready); err != nil {
			t.Fatal(err)
		}
	}
	status(3, 3)
	if !await.Ready(fleet) {
		t.Errorf("%+v", fleet.Status.Conditions)
	}

	// A lost Pod is made again.
	if err := env.Client.Delete(env.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: env.Namespace, Name: "web-1"}}); err != nil {
		t.Fatal(err)
	}
	steertest.Wait(env, "web-1", func(p *corev1.Pod) bool { return p.UID != three["web-1"] })

	// Scaled down, the last one goes.
	scale(2)
	status(2, 1)
	steertest.WaitGone[*corev1.Pod](env, "web-2")
	if left := pods(2); left["web-0"] != three["web-0"] {
		t.Errorf("%v became %v", three, left)
	}

	// With the Fleet its Pods go.
	env.NeedControllers()
	if err := env.Client.Delete(env.Context(), fleet); err != nil {
		t.Fatal(err)
	}
	pods(0)
}

// TestTheOperatorLeadsUnderItsRole fails where the generated role lacks what leader
// election needs.
func TestTheOperatorLeadsUnderItsRole(t *testing.T) {
	t.Parallel()
	env := steertest.New(t, steertest.Options{
		CRDs: []string{"config/crd/bases"}, Operator: replicas.Operator(), Args: []string{"--leader-elect"},
	})
	env.Create(&v1.Fleet{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: v1.FleetSpec{Replicas: 1, Image: "nginx"}})
	steertest.Wait(env, "web", func(f *v1.Fleet) bool { return f.Status.Replicas == 1 })
	lease := client.NewMetadata(coordinationv1.SchemeGroupVersion.WithKind("Lease"))
	if err := env.Client.Get(env.Context(), client.ObjectKey{Namespace: env.Namespace, Name: replicas.Operator().Name}, lease); err != nil {
		t.Error(err)
	}
	env.Settled()
}
