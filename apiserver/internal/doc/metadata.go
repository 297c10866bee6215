// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package doc

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/internal/jsontext"
)

var _ metav1.Object = (*Doc)(nil)

// GetObjectKind implements runtime.Object.
func (d *Doc) GetObjectKind() schema.ObjectKind { return d }

// GroupVersionKind implements [schema.ObjectKind].
func (d *Doc) GroupVersionKind() schema.GroupVersionKind {
	gv, err := schema.ParseGroupVersion(d.GetAPIVersion())
	if err != nil {
		return schema.GroupVersionKind{}
	}
	return gv.WithKind(d.GetKind())
}

// SetGroupVersionKind implements [schema.ObjectKind].
func (d *Doc) SetGroupVersionKind(kind schema.GroupVersionKind) {
	apiVersion, name := kind.ToAPIVersionAndKind()
	d.setText("apiVersion", apiVersion)
	d.setText("kind", name)
}

func (d *Doc) setText(name, text string) {
	if was, ok := d.Member(name).String(); !ok || was != text {
		d.SetMember(name, OfText(jsontext.Text(jsontext.AppendText(nil, text))))
	}
}

// GetAPIVersion returns apiVersion; "" if it is no string.
func (d *Doc) GetAPIVersion() string {
	text, _ := d.Member("apiVersion").String()
	return text
}

// GetKind returns kind; "" if it is no string.
func (d *Doc) GetKind() string {
	text, _ := d.Member("kind").String()
	return text
}

// field returns a field of the metadata that is a string; "" if it is none.
func (d *Doc) field(name string) string {
	text, _ := d.metadata[name].(string)
	return text
}

// setField sets a field of the metadata, or removes it.
func (d *Doc) setField(name string, value any, remove bool) {
	switch {
	case remove:
		delete(d.metadata, name)
		return
	case d.metadata == nil && !d.Has("metadata"):
		d.metadata = map[string]any{}
	case d.metadata == nil:
		return // it is no object, and is refused
	}
	d.metadata[name] = value
}

// whole returns the metadata as an object that has nothing else.
func (d *Doc) whole() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"metadata": d.metadata}}
}

// GetNamespace implements [metav1.Object], as the following methods do.
func (d *Doc) GetNamespace() string { return d.field("namespace") }

func (d *Doc) SetNamespace(namespace string) { d.setField("namespace", namespace, namespace == "") }

func (d *Doc) GetName() string { return d.field("name") }

func (d *Doc) SetName(name string) { d.setField("name", name, name == "") }

func (d *Doc) GetGenerateName() string { return d.field("generateName") }

func (d *Doc) SetGenerateName(name string) { d.setField("generateName", name, name == "") }

func (d *Doc) GetUID() types.UID { return types.UID(d.field("uid")) }

func (d *Doc) SetUID(uid types.UID) { d.setField("uid", string(uid), uid == "") }

func (d *Doc) GetResourceVersion() string { return d.field("resourceVersion") }

func (d *Doc) SetResourceVersion(version string) {
	d.setField("resourceVersion", version, version == "")
}

func (d *Doc) GetSelfLink() string { return d.field("selfLink") }

func (d *Doc) SetSelfLink(link string) { d.setField("selfLink", link, link == "") }

func (d *Doc) GetGeneration() int64 {
	generation, _ := d.metadata["generation"].(int64)
	return generation
}

func (d *Doc) SetGeneration(generation int64) { d.setField("generation", generation, generation == 0) }

func (d *Doc) GetCreationTimestamp() metav1.Time { return d.time("creationTimestamp") }

func (d *Doc) SetCreationTimestamp(t metav1.Time) {
	text, _ := t.MarshalQueryParameter() // returns no error
	d.setField("creationTimestamp", text, t.IsZero())
}

func (d *Doc) GetDeletionTimestamp() *metav1.Time {
	t := d.time("deletionTimestamp")
	if t.IsZero() {
		return nil
	}
	return &t
}

func (d *Doc) SetDeletionTimestamp(t *metav1.Time) {
	if t == nil {
		d.setField("deletionTimestamp", nil, true)
		return
	}
	text, _ := t.MarshalQueryParameter() // returns no error
	d.setField("deletionTimestamp", text, false)
}

// time returns a field of the metadata that is a time; the zero time if it is none.
func (d *Doc) time(name string) (t metav1.Time) {
	_ = t.UnmarshalQueryParameter(d.field(name)) // leaves it zero
	return t
}

func (d *Doc) GetDeletionGracePeriodSeconds() *int64 {
	if seconds, ok := d.metadata["deletionGracePeriodSeconds"].(int64); ok {
		return &seconds
	}
	return nil
}

func (d *Doc) SetDeletionGracePeriodSeconds(seconds *int64) {
	if seconds == nil {
		d.setField("deletionGracePeriodSeconds", nil, true)
		return
	}
	d.setField("deletionGracePeriodSeconds", *seconds, false)
}

func (d *Doc) GetLabels() map[string]string { return d.texts("labels") }

func (d *Doc) SetLabels(labels map[string]string) { d.setTexts("labels", labels) }

func (d *Doc) GetAnnotations() map[string]string { return d.texts("annotations") }

func (d *Doc) SetAnnotations(annotations map[string]string) { d.setTexts("annotations", annotations) }

func (d *Doc) texts(name string) map[string]string {
	texts, _, _ := unstructured.NestedNullCoercingStringMap(d.metadata, name)
	return texts
}

func (d *Doc) setTexts(name string, texts map[string]string) {
	value := make(map[string]any, len(texts))
	for key, text := range texts {
		value[key] = text
	}
	d.setField(name, value, texts == nil)
}

func (d *Doc) GetFinalizers() []string {
	finalizers, _, _ := unstructured.NestedStringSlice(d.metadata, "finalizers")
	return finalizers
}

func (d *Doc) SetFinalizers(finalizers []string) {
	value := make([]any, len(finalizers))
	for i, name := range finalizers {
		value[i] = name
	}
	d.setField("finalizers", value, finalizers == nil)
}

func (d *Doc) GetOwnerReferences() []metav1.OwnerReference {
	if d.metadata["ownerReferences"] == nil {
		return nil
	}
	return d.whole().GetOwnerReferences()
}

func (d *Doc) SetOwnerReferences(references []metav1.OwnerReference) {
	var with unstructured.Unstructured
	with.SetOwnerReferences(references)
	value, _, _ := unstructured.NestedFieldNoCopy(with.Object, "metadata", "ownerReferences")
	d.setField("ownerReferences", value, references == nil)
}

func (d *Doc) GetManagedFields() []metav1.ManagedFieldsEntry {
	if !d.record.Exists() {
		return nil
	}
	with := unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"managedFields": d.record.Decode()}}}
	return with.GetManagedFields()
}

func (d *Doc) SetManagedFields(entries []metav1.ManagedFieldsEntry) {
	if entries == nil {
		d.record = Value{}
		return
	}
	var with unstructured.Unstructured
	with.SetManagedFields(entries)
	value, has, _ := unstructured.NestedFieldNoCopy(with.Object, "metadata", "managedFields")
	if has && (d.metadata != nil || !d.Has("metadata")) {
		SetManagedFields(d, Of(value))
	}
}
