// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"maps"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/utils/dump"

	"github.com/steer-dev/steer/storage"
)

// Burst is how many Pods a ReplicaSet creates or deletes in one step.
const Burst = 500

// PodOf makes a Pod of a template.
func PodOf(template *corev1.PodTemplateSpec, generateName string, owner metav1.OwnerReference) *corev1.Pod {
	return &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: generateName, Labels: template.Labels, Annotations: template.Annotations,
			Finalizers: template.Finalizers, OwnerReferences: []metav1.OwnerReference{owner},
		},
		Spec: *template.Spec.DeepCopy(),
	}
}

// With returns labels with one more.
func With(labels map[string]string, key, value string) map[string]string {
	out := maps.Clone(labels)
	if out == nil {
		out = map[string]string{}
	}
	out[key] = value
	return out
}

// HashOf returns the pod-template-hash of a template.
func HashOf(template *corev1.PodTemplateSpec, collisions *int32) string {
	h := fnv.New32a()
	fmt.Fprintf(h, "%v", dump.ForHash(*template))
	if collisions != nil {
		var b [8]byte
		binary.LittleEndian.PutUint32(b[:], uint32(*collisions))
		_, _ = h.Write(b[:]) // a hash does not fail
	}
	return rand.SafeEncodeString(fmt.Sprint(h.Sum32()))
}

// Available reports whether a Pod has been ready for long enough; an owner that
// has to wait for that is looked at again.
func (t *Turn) Available(owner storage.Key, p *Object, minReady int32) bool {
	if !p.Ready {
		return false
	}
	at := p.ReadyAt.Add(time.Duration(minReady) * time.Second)
	if minReady == 0 || !at.After(t.Now) {
		return true
	}
	t.Later(owner, at)
	return false
}

// FirstToGo orders Pods as a ReplicaSet that is scaled down deletes them.
func FirstToGo(a, b *Object) int {
	yes := func(v bool) int {
		if v {
			return 1
		}
		return 0
	}
	phase := func(p *Object) int {
		switch p.Phase {
		case corev1.PodPending, "":
			return 0
		case corev1.PodUnknown:
			return 1
		}
		return 2
	}
	return cmp.Or(
		cmp.Compare(yes(a.Node != ""), yes(b.Node != "")),
		cmp.Compare(phase(a), phase(b)),
		cmp.Compare(yes(a.Ready), yes(b.Ready)),
		cmp.Compare(a.cost, b.cost),
		b.readySince().Compare(a.readySince()),
		cmp.Compare(b.Restarts, a.Restarts),
		cmp.Compare(b.Created, a.Created),
	)
}

// KindOf is the kind of a type of the group apps.
func KindOf(name string) schema.GroupVersionKind { return appsv1.SchemeGroupVersion.WithKind(name) }
