// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/controlplane/workloads"
)

func claim(name string, change func(*corev1.PersistentVolumeClaimSpec)) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}}
	c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	c.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	change(&c.Spec)
	return c
}

// attributes are what a claim and its volume say of them.
func (c *cluster) attributes(name string) string {
	c.Helper()
	c.settle()
	text := func(s *string) string {
		if s == nil {
			return "none"
		}
		return *s
	}
	var claim corev1.PersistentVolumeClaim
	c.get(name, &claim)
	out := fmt.Sprintf("%s, current %s", claim.Status.Phase, text(claim.Status.CurrentVolumeAttributesClassName))
	if m := claim.Status.ModifyVolumeStatus; m != nil {
		out += fmt.Sprintf(", %s to %s", m.Status, m.TargetVolumeAttributesClassName)
	}
	var v corev1.PersistentVolume
	if claim.Spec.VolumeName != "" && c.Client.Get(c.Context(), key("", claim.Spec.VolumeName), &v) == nil {
		out += ", of the volume " + text(v.Spec.VolumeAttributesClassName)
	}
	return out
}

func TestClaimsAreBoundWithAttributesOfVolumes(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	class := func(name string) {
		c.Create(&storagev1.VolumeAttributesClass{ObjectMeta: metav1.ObjectMeta{Name: name}, DriverName: "example.com", Parameters: map[string]string{"iops": name}})
	}
	c.Create(claim("data", func(s *corev1.PersistentVolumeClaimSpec) { s.VolumeAttributesClassName = new("silver") }))
	equal(t, "without the class", "Pending, current none", c.attributes("data"))
	equal(t, "and that is told", []string{
		`! persistentvolume-controller PersistentVolumeClaim ProvisioningFailed: failed to provision volume: volumeattributesclass.storage.k8s.io "silver" not found`,
	}, c.said("persistentvolume-controller"))
	class("silver")
	equal(t, "with it", "Bound, current silver, of the volume silver", c.attributes("data"))
	change := func(to string) {
		t.Helper()
		var claim corev1.PersistentVolumeClaim
		c.get("data", &claim)
		claim.Spec.VolumeAttributesClassName = &to
		c.update(&claim)
	}
	change("gold")
	equal(t, "another that is not there", "Bound, current silver, Pending to gold, of the volume silver", c.attributes("data"))
	class("gold")
	equal(t, "another", "Bound, current gold, of the volume gold", c.attributes("data"))

	c.Create(claim("plain", func(*corev1.PersistentVolumeClaimSpec) {}))
	c.settle()
	for name, want := range map[string]string{"data": "gold", "plain": "none"} {
		var claim corev1.PersistentVolumeClaim
		c.get(name, &claim)
		claim.Status.CurrentVolumeAttributesClassName = new("silver")
		if err := c.Client.Status().Update(c.Context(), &claim); err != nil {
			t.Fatal(err)
		}
		equal(t, name+", whose status another client has written", "Bound, current "+want+", of the volume "+want, c.attributes(name))
	}
}

// TestClaimsAreBoundToNamedVolumes: if those are for them.
func TestClaimsAreBoundToNamedVolumes(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	volume := func(name string, change func(*corev1.PersistentVolumeSpec)) {
		v := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}}
		v.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
		v.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("2Gi")}
		v.Spec.HostPath = &corev1.HostPathVolumeSource{Path: "/tmp/x"}
		change(&v.Spec)
		c.Create(v)
		c.Create(claim(name, func(s *corev1.PersistentVolumeClaimSpec) { s.VolumeName, s.StorageClassName = name, new("") }))
		c.settle()
	}
	volume("plain", func(*corev1.PersistentVolumeSpec) {})
	volume("reserved", func(s *corev1.PersistentVolumeSpec) {
		s.ClaimRef = &corev1.ObjectReference{Namespace: "default", Name: "reserved"}
	})
	volume("other", func(s *corev1.PersistentVolumeSpec) {
		s.ClaimRef = &corev1.ObjectReference{Namespace: "default", Name: "another"}
	})
	volume("classy", func(s *corev1.PersistentVolumeSpec) { s.StorageClassName = "fast" })
	volume("small", func(s *corev1.PersistentVolumeSpec) {
		s.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Mi")}
	})
	got := map[string]string{}
	for _, name := range []string{"plain", "reserved", "other", "classy", "small"} {
		var claim corev1.PersistentVolumeClaim
		c.get(name, &claim)
		got[name] = string(claim.Status.Phase)
	}
	equal(t, "claims", map[string]string{"plain": "Bound", "reserved": "Bound", "other": "Pending", "classy": "Pending", "small": "Pending"}, got)
	equal(t, "and why", []string{
		`! persistentvolume-controller PersistentVolumeClaim VolumeMismatch: Cannot bind to requested volume "classy": storageClassName does not match`,
		`! persistentvolume-controller PersistentVolumeClaim VolumeMismatch: Cannot bind to requested volume "small": requested PV is too small`,
	}, c.said("persistentvolume-controller"))
}

// TestSchedulerGivesOneOfTwoPodsAClaimForOnePod, also when it looks at both in one step.
func TestSchedulerGivesOneOfTwoPodsAClaimForOnePod(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.Create(claim("data", func(s *corev1.PersistentVolumeClaimSpec) {
		s.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}
	}))
	c.settle()
	for _, name := range []string{"p1", "p2"} {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}, Spec: template("p").Spec}
		p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"},
		}}}
		c.Create(p)
	}
	c.settle()
	equal(t, "the first Pod", workloads.NodeName, c.fate("default", "p1"))
	const used = "0/1 nodes are available: 1 node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
	if got := c.fate("default", "p2"); !strings.HasPrefix(got, used) {
		t.Errorf("the other Pod: %q, want %q", got, used)
	}
}
