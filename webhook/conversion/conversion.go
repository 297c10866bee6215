// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package conversion converts custom resources between the versions of their kind,
// by hub and spokes: one version is the hub, and each other converts to it and from
// it. It is a package of its own, of few lines, because API packages import it, and
// their importers should link nothing else.
//
//	func (*CronTab) Hub() {} // in v1
//
//	// in v1beta1
//	func (src *CronTab) ConvertTo(hub conversion.Hub) error {
//		dst := hub.(*v1.CronTab)
//		dst.ObjectMeta = src.ObjectMeta
//		...
//	}
//	func (dst *CronTab) ConvertFrom(hub conversion.Hub) error { ... }
//
// webhook.AddConversion serves it to the API server; steertest.RoundTrip tests that
// nothing is lost.
package conversion

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"
)

// Hub is the version of a kind that the others convert to and from.
type Hub interface {
	runtime.Object
	// Hub marks the type.
	Hub()
}

// Convertible is a version of a kind beside its [Hub]. Both methods copy the metadata
// (dst.ObjectMeta = src.ObjectMeta) and every field; a field that the hub does not
// have goes to an annotation, so that a round trip loses nothing. They keep no
// reference to what they are given, and may be called at the same time.
type Convertible interface {
	runtime.Object
	// ConvertTo fills dst, an empty object of the hub's type, from the receiver.
	ConvertTo(dst Hub) error
	// ConvertFrom fills the receiver, which is empty, from src.
	ConvertFrom(src Hub) error
}

// Converter converts objects of the kinds that have been added to it. Add comes
// first; Convert and Object may then be called at the same time.
type Converter struct {
	scheme *runtime.Scheme
	hubs   map[schema.GroupKind]schema.GroupVersionKind
}

// NewConverter returns a converter of no kind. The scheme knows the Go types of all
// versions.
func NewConverter(scheme *runtime.Scheme) *Converter {
	return &Converter{scheme, map[schema.GroupKind]schema.GroupVersionKind{}}
}

// Add adds the kind of a hub. All of its versions in the scheme, of which there must
// be two at least, must be [Convertible] but the hub.
func (c *Converter) Add(hub Hub) (schema.GroupKind, error) {
	gvks, _, err := c.scheme.ObjectKinds(hub)
	if err != nil {
		return schema.GroupKind{}, fmt.Errorf("conversion of %T: %w; add the AddToScheme of its package to the scheme", hub, err)
	}
	gvk := gvks[0]
	gk := gvk.GroupKind()
	if was, ok := c.hubs[gk]; ok {
		return gk, fmt.Errorf("conversion of %s: it is added already, with the hub %s", gk, was.Version)
	}
	spokes := c.Spokes(gvk)
	if len(spokes) == 0 {
		return gk, fmt.Errorf("conversion of %s: the scheme knows %s alone: add the AddToScheme of the packages of its other versions", gk, gvk.Version)
	}
	for _, spoke := range spokes {
		obj, err := c.scheme.New(spoke)
		if err != nil {
			return gk, fmt.Errorf("conversion of %s: %w", gk, err)
		}
		switch obj.(type) {
		case Convertible:
		case Hub:
			return gk, fmt.Errorf("conversion of %s: %s and %s both have the method Hub: one version is the hub", gk, gvk.Version, spoke.Version)
		default:
			return gk, fmt.Errorf("conversion of %s: %T needs the methods ConvertTo(conversion.Hub) error and ConvertFrom(conversion.Hub) error", gk, obj)
		}
	}
	c.hubs[gk] = gvk
	return gk, nil
}

// Spokes returns the other versions of a kind that the scheme knows, sorted.
func (c *Converter) Spokes(hub schema.GroupVersionKind) []schema.GroupVersionKind {
	var out []schema.GroupVersionKind
	for _, gv := range c.scheme.PrioritizedVersionsForGroup(hub.Group) {
		gvk := gv.WithKind(hub.Kind)
		if gv.Version != hub.Version && gv.Version != runtime.APIVersionInternal && c.scheme.Recognizes(gvk) {
			out = append(out, gvk)
		}
	}
	slices.SortFunc(out, func(a, b schema.GroupVersionKind) int { return strings.Compare(a.Version, b.Version) })
	return out
}

// Converts reports whether the kind has been added.
func (c *Converter) Converts(kind schema.GroupKind) bool {
	_, ok := c.hubs[kind]
	return ok
}

// Convert converts an object, as JSON, to an apiVersion such as
// "stable.example.com/v1". An object of that version is returned as it is.
func (c *Converter) Convert(object []byte, apiVersion string) ([]byte, error) {
	to, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return nil, err
	}
	var head metav1.TypeMeta
	if err := json.Unmarshal(object, &head); err != nil {
		return nil, fmt.Errorf("read apiVersion and kind: %w", err)
	}
	from := head.GroupVersionKind()
	if from.GroupVersion() == to {
		return object, nil
	}
	src, err := c.scheme.New(from)
	if err != nil {
		return nil, c.unknown(from)
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(object, src); err != nil {
		return nil, fmt.Errorf("read a %s: %w", from.Kind, err)
	}
	dst, err := c.Object(src, to)
	if err != nil {
		return nil, err
	}
	return json.Marshal(dst)
}

// Object converts an object to another version of its kind. src may be changed or be
// part of the result: give it a copy if it is needed after.
func (c *Converter) Object(src runtime.Object, to schema.GroupVersion) (runtime.Object, error) {
	gvks, _, err := c.scheme.ObjectKinds(src)
	if err != nil {
		return nil, err
	}
	from := gvks[0]
	if from.GroupVersion() == to {
		return src, nil
	}
	hubKind, ok := c.hubs[from.GroupKind()]
	if !ok {
		return nil, c.unknown(from)
	}
	dst, err := c.scheme.New(to.WithKind(from.Kind))
	if err != nil {
		return nil, c.unknown(to.WithKind(from.Kind))
	}
	before, err := identityOf(src)
	if err != nil {
		return nil, err
	}
	if err := c.convert(src, dst, hubKind); err != nil {
		return nil, err
	}
	dst.GetObjectKind().SetGroupVersionKind(to.WithKind(from.Kind))
	after, err := identityOf(dst)
	if err != nil {
		return nil, err
	}
	if before != after {
		return nil, fmt.Errorf("the conversion from %s to %s loses metadata (name, namespace or uid): copy it first, dst.ObjectMeta = src.ObjectMeta", from.Version, to.Version)
	}
	return dst, nil
}

// convert fills dst from src, by way of the hub where neither is one.
func (c *Converter) convert(src, dst runtime.Object, hubKind schema.GroupVersionKind) error {
	if hub, ok := src.(Hub); ok {
		return dst.(Convertible).ConvertFrom(hub)
	}
	if hub, ok := dst.(Hub); ok {
		return src.(Convertible).ConvertTo(hub)
	}
	between, err := c.scheme.New(hubKind)
	if err != nil {
		return err
	}
	hub := between.(Hub)
	if err := src.(Convertible).ConvertTo(hub); err != nil {
		return err
	}
	return dst.(Convertible).ConvertFrom(hub)
}

// unknown is the error for a kind or version that is not converted.
func (c *Converter) unknown(gvk schema.GroupVersionKind) error {
	if hub, ok := c.hubs[gvk.GroupKind()]; ok {
		return fmt.Errorf("the operator converts %s, but not its version %s: it knows %s and %v; serve only these in the definition", gvk.Kind, gvk.Version, hub.Version, versionsOf(c.Spokes(hub)))
	}
	return fmt.Errorf("the operator does not convert %s: add webhook.AddConversion for it", gvk.GroupKind())
}

func versionsOf(kinds []schema.GroupVersionKind) []string {
	out := make([]string, len(kinds))
	for i, gvk := range kinds {
		out[i] = gvk.Version
	}
	return out
}

// identity is what no conversion may change.
type identity struct{ namespace, name, uid string }

func identityOf(obj runtime.Object) (identity, error) {
	meta, ok := obj.(metav1.Object)
	if !ok {
		return identity{}, errors.New("an object without metadata cannot be converted")
	}
	return identity{meta.GetNamespace(), meta.GetName(), string(meta.GetUID())}, nil
}
