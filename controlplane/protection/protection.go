// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package protection keeps claims that Pods use, volumes that are bound and
// attributes classes that either has from going away, and lets go of the others:
// it adds the finalizers that admission could not, and takes them off once nothing
// stands against it.
//
// Pods are read only for a claim that is being deleted, so that the
// [Protector] costs the writes of Pods one look into a map that is nearly always
// empty.
package protection

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/controlplane/admission"
	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/storage"
)

// Buckets of what is looked at.
const (
	claims  = "persistentvolumeclaims"
	volumes = "persistentvolumes"
	pods    = "pods"
	classes = "storage.k8s.io/volumeattributesclasses"
)

// Protector is the controller of all three finalizers.
type Protector struct {
	decode step.Decoder
	due    step.KeySet
	// held are the deleted claims that a Pod holds, by Pod, and the deleted classes
	// that a claim or a volume holds, by that.
	held map[storage.Key]step.KeySet
}

var _ step.Controller = (*Protector)(nil)

// New returns a protector that has seen nothing.
func New(decode step.Decoder) *Protector {
	return &Protector{decode: decode, due: step.KeySet{}, held: map[storage.Key]step.KeySet{}}
}

// Name implements [step.Controller]. It is that of the half for claims.
func (*Protector) Name() string { return "persistentvolumeclaim-protection-controller" }

// Reset implements [step.Controller].
func (p *Protector) Reset(view storage.View) {
	clear(p.due)
	clear(p.held)
	for _, bucket := range []string{claims, volumes, classes} {
		for rec := range view.Ascend(bucket, "", "") {
			p.due.Add(rec.Key)
		}
	}
}

// Filter implements [step.Controller].
func (p *Protector) Filter(e storage.Event) bool {
	switch e.Record.Key.Bucket {
	case claims, volumes, classes:
		return true
	case pods:
		return p.held[e.Record.Key] != nil
	}
	return false
}

// Handle implements [step.Controller].
func (p *Protector) Handle(e storage.Event) {
	key := e.Record.Key
	switch key.Bucket {
	case claims, volumes, classes:
		if !e.Deleted {
			p.due.Add(key)
		}
	}
	if waiting := p.held[key]; waiting != nil {
		p.due.Add(waiting.Sorted()...)
		delete(p.held, key)
	}
}

// Sync implements [step.Controller].
func (p *Protector) Sync(view storage.View, _ time.Time) []step.Request {
	var out []step.Request
	for _, key := range p.due.Sorted() {
		rec := view.Get(key)
		if rec == nil {
			continue
		}
		obj := p.decode(rec)
		if obj == nil {
			continue
		}
		if r, ok := p.look(view, rec, obj); ok {
			out = append(out, r)
		}
	}
	clear(p.due)
	return out
}

// look decides over the finalizer of a claim, a volume or a class.
func (p *Protector) look(view storage.View, rec *storage.Record, obj *step.Object) (step.Request, bool) {
	user, finalizer := step.KubeSystem+"pvc-protection-controller", admission.ClaimFinalizer
	r := step.Resource{Version: "v1", Plural: rec.Key.Bucket, Namespaced: rec.Key.Bucket == claims}
	switch rec.Key.Bucket {
	case volumes:
		user, finalizer = step.KubeSystem+"pv-protection-controller", admission.VolumeFinalizer
	case classes:
		user, finalizer = step.KubeSystem+"volumeattributesclass-protection-controller", admission.ClassFinalizer
		r.Group, r.Plural, _ = strings.Cut(classes, "/")
	}
	var wanted []string
	switch has := obj.Has(finalizer); {
	case !obj.Deleting && !has:
		wanted = append(slices.Clone(obj.Finalizers), finalizer)
	case obj.Deleting && has && !p.inUse(view, rec):
		wanted = obj.Without(finalizer)
	default:
		return step.Request{}, false
	}
	body := step.WithMetadata(rec, map[string]any{"finalizers": wanted})
	return step.Put(user, r.Object(rec.Key), body, step.Subject{Key: rec.Key}), body != nil
}

// inUse reports whether a volume is bound, a Pod holds a claim or something has a
// class. What is held is looked at again when something happens to its holder.
func (p *Protector) inUse(view storage.View, rec *storage.Record) bool {
	switch rec.Key.Bucket {
	case volumes:
		var volume struct{ Status corev1.PersistentVolumeStatus }
		return json.Unmarshal(rec.Value, &volume) == nil && volume.Status.Phase == corev1.VolumeBound
	case classes:
		has := func(holder *storage.Record) bool { return hasClass(holder, rec.Key.Name) }
		return p.heldBy(view, volumes, "", rec.Key, has) || p.heldBy(view, claims, "", rec.Key, has)
	}
	namespace, name := step.SplitName(rec.Key.Name)
	return p.heldBy(view, pods, namespace+"/", rec.Key, func(pod *storage.Record) bool { return holds(pod, name) })
}

// heldBy looks for one that holds something, and remembers it.
func (p *Protector) heldBy(view storage.View, bucket, prefix string, held storage.Key, holds func(*storage.Record) bool) bool {
	for rec := range view.Ascend(bucket, prefix, "") {
		if !holds(rec) {
			continue
		}
		if p.held[rec.Key] == nil {
			p.held[rec.Key] = step.KeySet{}
		}
		p.held[rec.Key].Add(held)
		return true
	}
	return false
}

// hasClass reports whether a claim or a volume has an attributes class, had it
// until now, or is about to get it.
func hasClass(rec *storage.Record, class string) bool {
	if !bytes.Contains(rec.Value, []byte(`"`+class+`"`)) {
		return false // without decoding it
	}
	var obj struct {
		Spec struct {
			Class string `json:"volumeAttributesClassName"`
		} `json:"spec"`
		Status struct {
			Class  string                    `json:"currentVolumeAttributesClassName"`
			Modify corev1.ModifyVolumeStatus `json:"modifyVolumeStatus"`
		} `json:"status"`
	}
	if json.Unmarshal(rec.Value, &obj) != nil {
		return false
	}
	return obj.Spec.Class == class || obj.Status.Class == class || obj.Status.Modify.TargetVolumeAttributesClassName == class
}

// holds reports whether a Pod that has a node uses a claim.
func holds(rec *storage.Record, claim string) bool {
	_, name := step.SplitName(rec.Key.Name)
	own, generic := strings.CutPrefix(claim, name+"-") // the claim of a volume that goes with the Pod
	generic = generic && bytes.Contains(rec.Value, []byte(`"ephemeral":`))
	if !generic && !bytes.Contains(rec.Value, []byte(`"claimName":"`+claim+`"`)) {
		return false // without decoding it
	}
	var pod struct {
		metav1.ObjectMeta `json:"metadata"`
		Spec              struct {
			NodeName string          `json:"nodeName"`
			Volumes  []corev1.Volume `json:"volumes"`
		} `json:"spec"`
	}
	if json.Unmarshal(rec.Value, &pod) != nil || pod.Spec.NodeName == "" {
		return false
	}
	return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
		return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == claim || generic && v.Ephemeral != nil && v.Name == own
	})
}

// Done implements [step.Controller]. What was refused is looked at again.
func (p *Protector) Done(r step.Request, err error) {
	if err != nil {
		p.due.Add(r.Subject.Key)
	}
}
