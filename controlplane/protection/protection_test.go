// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package protection

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/controlplane/admission"
	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/controlplane/internal/step/steptest"
	"github.com/steer-dev/steer/storage"
)

// world is a store with a protector that follows it.
type world struct {
	t         *testing.T
	store     *storage.Memory
	cursor    storage.Cursor
	protector *Protector
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, store: storage.NewMemory(storage.MemoryOptions{}), protector: New(steptest.Decode)}
	cursor, err := w.store.Watch(storage.Range{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	w.cursor = cursor
	t.Cleanup(cursor.Close)
	return w
}

func (w *world) put(bucket, name string, obj any) {
	w.t.Helper()
	steptest.Put(w.t, w.store, storage.Key{Bucket: bucket, Name: name}, obj)
}

// asks returns what the protector wants to be done.
func (w *world) asks() []string {
	w.t.Helper()
	batch, err := w.cursor.Poll()
	if err != nil {
		w.t.Fatal(err)
	}
	for _, e := range batch.Events {
		steptest.Observe(w.protector, e)
	}
	return texts(w.protector.Sync(w.store.Latest(), time.Time{}))
}

func texts(requests []step.Request) []string {
	var out []string
	for _, r := range requests {
		var obj metav1.PartialObjectMetadata
		if err := json.Unmarshal(r.Body, &obj); err != nil {
			panic(err)
		}
		if !strings.HasPrefix(obj.ResourceVersion, "0") {
			obj.ResourceVersion = "N"
		}
		out = append(out, fmt.Sprintf("%s %s %s@%s %v", r.Method, r.Path, obj.UID, obj.ResourceVersion, obj.Finalizers))
	}
	return out
}

func meta(name string, deleting bool, finalizers ...string) metav1.ObjectMeta {
	m := metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-" + name), Finalizers: finalizers}
	if deleting {
		at := metav1.Unix(1_000_000, 0)
		m.DeletionTimestamp = &at
	}
	return m
}

func claim(name string, deleting bool, finalizers ...string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: meta(name, deleting, finalizers...)}
}

func pod(name, node string, volumes ...corev1.Volume) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: meta(name, false), Spec: corev1.PodSpec{NodeName: node, Volumes: volumes}}
}

func uses(claim string) corev1.Volume {
	return corev1.Volume{Name: "v", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
	}}
}

func (w *world) want(what string, want ...string) {
	w.t.Helper()
	if diff := cmp.Diff(want, w.asks()); diff != "" {
		w.t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

const (
	release = `PUT /api/v1/namespaces/default/persistentvolumeclaims/c uid-c@N []`
	protect = `PUT /api/v1/namespaces/default/persistentvolumeclaims/c uid-c@N [x/y kubernetes.io/pvc-protection]`
)

func TestProtectorReleasesClaimsWithoutPods(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put(claims, "default/c", claim("c", false, admission.ClaimFinalizer))
	w.put(pods, "default/p", pod("p", "node", uses("c")))
	w.put(pods, "default/other", pod("other", "node", uses("cc")))
	w.want("nothing is deleted")
	w.put(claims, "default/c", claim("c", true, admission.ClaimFinalizer))
	w.want("a Pod holds it")
	w.put(pods, "default/other", nil)
	w.want("another Pod went")
	w.put(pods, "default/p", pod("p", "node", uses("c")))
	w.want("the Pod still holds it")
	w.put(pods, "default/p", nil)
	w.want("the Pod went", release)
}

func TestProtectorIgnoresUnscheduledPods(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put(pods, "default/p", pod("p", "", uses("c")))
	w.put(claims, "default/c", claim("c", true, admission.ClaimFinalizer))
	w.want("no node has the Pod", release)
}

func TestProtectorKeepsEphemeralVolumesOfPods(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put(pods, "default/p", pod("p", "node", corev1.Volume{Name: "v", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}}))
	w.put(claims, "default/p-v", claim("p-v", true, admission.ClaimFinalizer))
	w.want("held")
	w.put(claims, "default/p-w", claim("p-w", true, admission.ClaimFinalizer))
	w.want("the Pod has no such volume", `PUT /api/v1/namespaces/default/persistentvolumeclaims/p-w uid-p-w@N []`)
}

func TestProtectorAddsMissingFinalizers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put(claims, "default/c", claim("c", false, "x/y"))
	w.want("it is added", protect)
	w.want("asked once")
}

func TestProtectorRepeatsRefusedRequests(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put(claims, "default/c", claim("c", true, admission.ClaimFinalizer))
	w.want("first", release)
	w.protector.Done(step.Request{Subject: step.Subject{Key: storage.Key{Bucket: claims, Name: "default/c"}}}, errors.New("busy"))
	w.want("again", release)
}

func TestProtectorKeepsBoundVolumes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	volume := &corev1.PersistentVolume{ObjectMeta: meta("v", true, admission.VolumeFinalizer), Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeBound}}
	w.put(volumes, "v", volume)
	w.want("bound")
	volume.Status.Phase = corev1.VolumeReleased
	w.put(volumes, "v", volume)
	w.want("released", `PUT /api/v1/persistentvolumes/v uid-v@N []`)
}

// TestProtectorIndexEqualsRebuild: what a protector knows is what a snapshot
// tells.
func TestProtectorIndexEqualsRebuild(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put(pods, "default/p", pod("p", "node", uses("held")))
	w.put(claims, "default/held", claim("held", true, admission.ClaimFinalizer))
	w.put(claims, "default/c", claim("c", true, admission.ClaimFinalizer))
	w.put(volumes, "v", &corev1.PersistentVolume{ObjectMeta: meta("v", true, admission.VolumeFinalizer)})
	fresh := New(steptest.Decode)
	fresh.Reset(w.store.Latest())
	if diff := cmp.Diff(w.asks(), texts(fresh.Sync(w.store.Latest(), time.Time{}))); diff != "" {
		t.Errorf("(-followed +fresh):\n%s", diff)
	}
}
