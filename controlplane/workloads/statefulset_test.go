// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/controlplane/workloads"
)

// statefulSet is the StatefulSet db.
func statefulSet(replicas int32) *appsv1.StatefulSet {
	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "db", Namespace: "default"},
		Spec:       appsv1.StatefulSetSpec{Replicas: &replicas, ServiceName: "db", Selector: selector("db"), Template: template("db")},
	}
}

// history steps until nothing is left to do, and returns each state of the Pods
// that comes up.
func (c *cluster) history() []string {
	c.Helper()
	out := []string{strings.Join(c.pods(), ", ")}
	for range 200 {
		n, err := c.Plane.Step(c.Context())
		if err != nil {
			c.Fatal(err)
		}
		if n == 0 {
			return out
		}
		if now := strings.Join(c.pods(), ", "); now != out[len(out)-1] {
			out = append(out, now)
		}
	}
	c.Fatal("the controllers do not come to rest")
	return nil
}

func TestStatefulSetComesUpAndGoesDownInOrder(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.Create(statefulSet(3))
	equal(t, "way up", []string{
		"", "db-0 Pending", "db-0 Running ready",
		"db-0 Running ready, db-1 Pending", "db-0 Running ready, db-1 Running ready",
		"db-0 Running ready, db-1 Running ready, db-2 Pending", "db-0 Running ready, db-1 Running ready, db-2 Running ready",
	}, c.history())
	var s appsv1.StatefulSet
	c.get("db", &s)
	revision := s.Status.UpdateRevision
	if !strings.HasPrefix(revision, "db-") {
		t.Errorf("revision %q", revision)
	}
	equal(t, "status", appsv1.StatefulSetStatus{
		ObservedGeneration: 1, Replicas: 3, ReadyReplicas: 3, CurrentReplicas: 3, UpdatedReplicas: 3, AvailableReplicas: 3,
		CurrentRevision: revision, UpdateRevision: revision, CollisionCount: new(int32),
	}, s.Status)
	s.Spec.Replicas = new(int32(1))
	c.update(&s)
	equal(t, "way down", []string{
		"db-0 Running ready, db-1 Running ready, db-2 Running ready", "db-0 Running ready, db-1 Running ready", "db-0 Running ready",
	}, c.history())
}

func TestStatefulSetParallelDoesNotWait(t *testing.T) {
	t.Parallel()
	c := newCluster(t, workloads.Outcome{Selector: "apps.kubernetes.io/pod-index=0", Fate: workloads.Never})
	s := statefulSet(3)
	s.Spec.PodManagementPolicy = appsv1.ParallelPodManagement
	c.Create(s)
	c.settle()
	equal(t, "pods", []string{"db-0 Running", "db-1 Running ready", "db-2 Running ready"}, c.pods())
}

func TestStatefulSetOrderedWaitsForAPodThatIsNotReady(t *testing.T) {
	t.Parallel()
	c := newCluster(t, workloads.Outcome{Selector: "apps.kubernetes.io/pod-index=1", Fate: workloads.Never})
	c.Create(statefulSet(3))
	c.settle()
	equal(t, "pods", []string{"db-0 Running ready", "db-1 Running"}, c.pods())
}

func TestStatefulSetRollsFromTheEnd(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		partition int32
		want      string
	}{{0, "2 2 2"}, {1, "1 2 2"}, {3, "1 1 1"}} {
		t.Run(fmt.Sprintf("partition %d", test.partition), func(t *testing.T) {
			t.Parallel()
			c := newCluster(t)
			s := statefulSet(3)
			s.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: &test.partition}
			c.Create(s)
			c.settle()
			c.get("db", s)
			before := s.Status.CurrentRevision
			s.Spec.Template.Spec.Containers[0].Image = "example.com/main:2"
			c.update(s)
			for _, state := range c.history() {
				if n := strings.Count(state, " ready"); n < 2 {
					t.Errorf("only %d Pods are ready: %s", n, state)
				}
			}
			var list corev1.PodList
			c.list(&list)
			slices.SortFunc(list.Items, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
			var images []string
			for _, p := range list.Items {
				images = append(images, strings.TrimPrefix(p.Spec.Containers[0].Image, "example.com/main:"))
			}
			equal(t, "images", test.want, strings.Join(images, " "))
			c.get("db", s)
			equal(t, "current revision has moved on", test.partition == 0, s.Status.CurrentRevision != before)
			equal(t, "updated", 3-test.partition, s.Status.UpdatedReplicas)
			var revisions appsv1.ControllerRevisionList
			c.list(&revisions)
			equal(t, "revisions", 2, len(revisions.Items))
		})
	}
}

func TestStatefulSetClaimsAreBoundAndStay(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	s := statefulSet(2)
	s.Spec.VolumeClaimTemplates = claimTemplates()
	c.Create(s)
	c.settle()
	bound := func() []string {
		var list corev1.PersistentVolumeClaimList
		c.list(&list)
		var out []string
		for _, claim := range list.Items {
			var volume corev1.PersistentVolume
			if err := c.Client.Get(c.Context(), key("", claim.Spec.VolumeName), &volume); err != nil {
				t.Fatal(err)
			}
			out = append(out, fmt.Sprintf("%s %s, volume %s", claim.Name, claim.Status.Phase, volume.Status.Phase))
		}
		slices.Sort(out)
		return out
	}
	want := []string{"data-db-0 Bound, volume Bound", "data-db-1 Bound, volume Bound"}
	equal(t, "claims", want, bound())
	if err := c.Client.Delete(c.Context(), s); err != nil {
		t.Fatal(err)
	}
	c.settle()
	equal(t, "pods", []string(nil), c.pods())
	equal(t, "claims", want, bound())
	for _, name := range []string{"data-db-0", "data-db-1"} {
		if err := c.Client.Delete(c.Context(), &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}); err != nil {
			t.Fatal(err)
		}
	}
	c.settle()
	var left corev1.PersistentVolumeList
	c.list(&left)
	equal(t, "volumes", 0, len(left.Items))
}

func claimTemplates() []corev1.PersistentVolumeClaim {
	return []corev1.PersistentVolumeClaim{{
		ObjectMeta: metav1.ObjectMeta{Name: "data"},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}}
}

func TestStatefulSetClaimsFollowTheirRetentionPolicy(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	s := statefulSet(3)
	s.Spec.VolumeClaimTemplates = claimTemplates()
	s.Spec.PersistentVolumeClaimRetentionPolicy = &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{
		WhenDeleted: appsv1.DeletePersistentVolumeClaimRetentionPolicyType, WhenScaled: appsv1.DeletePersistentVolumeClaimRetentionPolicyType,
	}
	claims := func() int {
		c.settle()
		var list corev1.PersistentVolumeClaimList
		c.list(&list)
		return len(list.Items)
	}
	c.Create(s)
	equal(t, "claims", 3, claims())
	c.get("db", s)
	s.Spec.Replicas = new(int32(1))
	c.update(s)
	equal(t, "claims after scaling down", 1, claims())
	if err := c.Client.Delete(c.Context(), s); err != nil {
		t.Fatal(err)
	}
	equal(t, "claims after the set", 0, claims())
}
