// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package revisioned

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/steer-dev/steer/controlplane/workloads/internal/cluster"
	"github.com/steer-dev/steer/storage"
)

// revisionLabel names the hash of a ControllerRevision on itself.
const revisionLabel = "controller.kubernetes.io/hash"

// history is what templates a StatefulSet or DaemonSet has had, oldest first,
// and the one that it has now.
type history struct {
	past   []*appsv1.ControllerRevision
	latest *appsv1.ControllerRevision
}

// historyOf returns the history of an owner, with its current template as
// the newest revision. hash names a new one; nil: by its content.
func (t *turn) historyOf(user string, self *cluster.Object, owner metav1.Object, kind string, template *corev1.PodTemplateSpec, collisions *int32, hash func() string) history {
	var h history
	for _, o := range t.Index.ChildrenOf(self.UID, cluster.Revisions) {
		if r := cluster.Stored[appsv1.ControllerRevision](t.Turn, o.Key); r != nil {
			h.past = append(h.past, r)
		}
	}
	slices.SortStableFunc(h.past, func(a, b *appsv1.ControllerRevision) int { return int(a.Revision - b.Revision) })
	next := int64(1)
	if n := len(h.past); n > 0 {
		next = h.past[n-1].Revision + 1
	}
	for i, r := range slices.Backward(h.past) {
		if !equality.Semantic.DeepEqual(templateOf(r), template) {
			continue
		}
		h.latest = r
		if i < len(h.past)-1 && !self.Deleting { // a rollback to this revision
			r.Revision = next
			t.Update(user, storage.Key{Bucket: cluster.Revisions, Name: r.Namespace + "/" + r.Name}, "", r)
			t.Requests[len(t.Requests)-1].Subject.Key = self.Key
		}
		return h
	}
	raw, _ := json.Marshal(template) // a type of the API: cannot fail
	fields := map[string]any{}
	_ = json.Unmarshal(raw, &fields) // was just written
	fields["$patch"] = "replace"
	data, _ := json.Marshal(map[string]any{"spec": map[string]any{"template": fields}})
	var name string
	if hash != nil {
		name = hash()
	} else {
		sum := fnv.New32()
		_, _ = sum.Write(data) // a hash does not fail
		probe := int32(0)
		if collisions != nil {
			probe = *collisions
		}
		_, _ = sum.Write([]byte(strconv.Itoa(int(probe))))
		name = rand.SafeEncodeString(fmt.Sprint(sum.Sum32()))
	}
	label := revisionLabel
	if kind == "DaemonSet" {
		label = appsv1.DefaultDaemonSetUniqueLabelKey
	}
	h.latest = &appsv1.ControllerRevision{
		TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "ControllerRevision"},
		ObjectMeta: metav1.ObjectMeta{
			Name: owner.GetName() + "-" + name, Namespace: owner.GetNamespace(),
			Labels: cluster.With(template.Labels, label, name), Annotations: maps.Clone(owner.GetAnnotations()),
			OwnerReferences: []metav1.OwnerReference{cluster.Reference(cluster.KindOf(kind), owner.GetName(), owner.GetUID())},
		},
		Data: runtime.RawExtension{Raw: data}, Revision: next,
	}
	if !self.Deleting {
		t.Create(user, self.Key, cluster.Revisions, h.latest)
	}
	return h
}

// templateOf returns the template that a revision keeps, nil if it is unreadable.
func templateOf(r *appsv1.ControllerRevision) *corev1.PodTemplateSpec {
	var data struct {
		Spec struct {
			Template *corev1.PodTemplateSpec `json:"template"`
		} `json:"spec"`
	}
	if json.Unmarshal(r.Data.Raw, &data) != nil {
		return nil
	}
	return data.Spec.Template
}

// named returns the revision of a name, nil if there is none.
func (h history) named(name string) *appsv1.ControllerRevision {
	if h.latest.Name == name {
		return h.latest
	}
	for _, r := range h.past {
		if r.Name == name {
			return r
		}
	}
	return nil
}

// truncate deletes the oldest revisions beyond a limit of those not in use.
func (t *turn) truncate(user string, self *cluster.Object, h history, limit *int32, live func(*appsv1.ControllerRevision) bool) {
	if limit == nil || self.Deleting {
		return
	}
	unused := slices.DeleteFunc(slices.Clone(h.past), func(r *appsv1.ControllerRevision) bool { return r == h.latest || live(r) })
	for _, r := range unused[:max(0, len(unused)-int(*limit))] {
		if o := t.Index.Objects[storage.Key{Bucket: cluster.Revisions, Name: r.Namespace + "/" + r.Name}]; o != nil {
			t.Delete(user, self.Key, o, metav1.DeleteOptions{})
		}
	}
}
