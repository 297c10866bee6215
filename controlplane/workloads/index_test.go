// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/controlplane/internal/step/steptest"
	"github.com/steer-dev/steer/controlplane/workloads/internal/cluster"
	"github.com/steer-dev/steer/controlplane/workloads/internal/scheduler"
	"github.com/steer-dev/steer/storage"
)

// TestIndexEqualsRebuild drives a controller through random histories: its
// index must be that of one that starts from the snapshot, and it must have
// looked at all that the other one would send requests for.
func TestIndexEqualsRebuild(t *testing.T) {
	t.Parallel()
	for seed := range uint64(15) {
		store := storage.NewMemory(storage.MemoryOptions{})
		cursor, err := store.Watch(storage.Range{}, 0)
		if err != nil {
			t.Fatal(err)
		}
		kept := newController(t)
		chance := rand.New(rand.NewPCG(seed, 0))
		now := time.Unix(1000, 0)
		asked := map[string]bool{}
		for round := range 60 {
			randomWrite(t, store, chance)
			batch, err := cursor.Poll()
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range batch.Events {
				steptest.Observe(kept, e)
			}
			view := store.Latest()
			rebuilt := newController(t)
			rebuilt.Reset(view)
			options := cmp.Options{
				cmp.AllowUnexported(cluster.Index{}, cluster.Object{}, cluster.Owner{}), cmpopts.EquateEmpty(),
				cmp.Transformer("holders", func(p scheduler.Pool) map[string]int { return p.Holders() }),
				cmpopts.IgnoreFields(cluster.Index{}, "free", "addresses", "Numbers"), // addresses are given out before they are written
			}
			if diff := cmp.Diff(rebuilt.Index, kept.Index, options); diff != "" {
				t.Fatalf("seed %d, round %d: the kept index differs (-rebuilt +kept):\n%s", seed, round, diff)
			}
			for key, n := range rebuilt.Index.Numbers {
				if kept.Index.Numbers[key] != n {
					t.Fatalf("seed %d, round %d: the address of %s is lost", seed, round, key)
				}
			}
			// A turn leaves out what it has already asked for, which is the case
			// for everything that it does not look at again.
			for _, line := range requests(kept, view, now) {
				asked[line] = true
			}
			for _, line := range requests(rebuilt, view, now) {
				if !asked[line] {
					t.Fatalf("seed %d, round %d: the kept index never led to %s", seed, round, line)
				}
			}
		}
		cursor.Close()
	}
}

func newController(t *testing.T) *Controller {
	t.Helper()
	c, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	c.Due.Add(cluster.NodeKey())
	return c
}

// requests steps until nothing is due, and returns what is asked for by method
// and path. Nothing is stored: the controller is told that bindings failed, and that the
// outcome of all others is known.
func requests(c *Controller, view storage.View, now time.Time) []string {
	var out []string
	for range 10 {
		for _, r := range c.Sync(view, now) {
			out = append(out, r.Method+" "+r.Path)
			var err error
			if strings.HasSuffix(r.Path, "/binding") {
				err = errors.New("not carried out")
			}
			c.Done(r, err)
		}
	}
	return out
}

// randomWrite creates, changes or deletes one of a few objects.
func randomWrite(t *testing.T, store storage.Store, chance *rand.Rand) {
	t.Helper()
	n := chance.IntN(6)
	uid := types.UID(fmt.Sprint("p", n))
	key := storage.Key{Bucket: cluster.Pods, Name: fmt.Sprint("default/p", n)}
	if chance.IntN(3) == 0 {
		key, uid = storage.Key{Bucket: cluster.Jobs, Name: fmt.Sprint("default/j", n%2)}, types.UID(fmt.Sprint("j", n%2))
	}
	if chance.IntN(8) == 0 {
		key, uid = storage.Key{Bucket: cluster.Services, Name: fmt.Sprint("default/s", n%2)}, types.UID(fmt.Sprint("s", n%2))
	}
	if chance.IntN(6) == 0 {
		name := []string{cluster.NodeName, "n1", "n2"}[n%3]
		key, uid = storage.Key{Bucket: cluster.Nodes, Name: name}, types.UID(name)
	}
	if chance.IntN(5) == 0 {
		if store.Latest().Get(key) != nil {
			steptest.Put(t, store, key, nil)
		}
		return
	}
	if key.Bucket == cluster.Nodes {
		steptest.Put(t, store, key, randomNode(key.Name, chance))
		return
	}
	meta := metav1.ObjectMeta{Name: key.Name[len("default/"):], Namespace: "default", UID: uid, Labels: map[string]string{"job": fmt.Sprint(chance.IntN(2))}}
	if key.Bucket == cluster.Services {
		steptest.Put(t, store, key, &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{
			Selector: map[string]string{"job": fmt.Sprint(n % 2)}, IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol},
		}})
		return
	}
	if key.Bucket == cluster.Jobs {
		steptest.Put(t, store, key, &batchv1.Job{ObjectMeta: meta, Spec: batchv1.JobSpec{
			Parallelism: new(int32(1)), Completions: new(int32(2)), BackoffLimit: new(int32(6)),
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"job": fmt.Sprint(n % 2)}},
		}})
		return
	}
	if chance.IntN(3) > 0 {
		job := fmt.Sprint("j", chance.IntN(2))
		ref := steptest.Owner("batch/v1", "Job", job, types.UID(job), true)
		ref.Controller = new(true)
		meta.OwnerReferences = []metav1.OwnerReference{ref}
		meta.Finalizers = []string{batchv1.JobTrackingFinalizer}
	}
	if chance.IntN(5) == 0 {
		meta.DeletionTimestamp, meta.DeletionGracePeriodSeconds = &metav1.Time{Time: time.Unix(900, 0)}, new(int64(30))
	}
	meta.Generation = chance.Int64N(3)
	pod := &corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{SchedulerName: corev1.DefaultSchedulerName}}
	pod.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
		// A spec changes with its generation only.
		corev1.ResourceCPU: *resource.NewQuantity(meta.Generation*int64(1+n), resource.DecimalSI),
	}}}}
	if n == 5 {
		pod.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"job": "1"}}, TopologyKey: "zone",
		}}}}
	}
	pod.Status.Phase = []corev1.PodPhase{corev1.PodPending, corev1.PodRunning, corev1.PodSucceeded, corev1.PodFailed}[chance.IntN(4)]
	if pod.Status.Phase != corev1.PodPending {
		pod.Spec.NodeName, pod.Status.PodIP = []string{cluster.NodeName, "n1"}[n%2], fmt.Sprint("10.244.1.", n)
	}
	steptest.Put(t, store, key, pod)
}

// randomNode takes a few Pods, or none.
func randomNode(name string, chance *rand.Rand) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Labels: map[string]string{"zone": fmt.Sprint(chance.IntN(2))}}}
	n.Status.Allocatable = corev1.ResourceList{
		corev1.ResourceCPU: *resource.NewQuantity(int64(chance.IntN(10)), resource.DecimalSI), corev1.ResourcePods: *resource.NewQuantity(int64(chance.IntN(4)), resource.DecimalSI),
	}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	return n
}

func TestOutcomesThatAreInvalidAreRefused(t *testing.T) {
	t.Parallel()
	for _, o := range []Outcome{{Selector: "a in"}, {Fate: "sad"}, {After: -1}} {
		if _, err := New(Options{Outcomes: []Outcome{o}}); err == nil {
			t.Errorf("%+v was accepted", o)
		}
	}
}
