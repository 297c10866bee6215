// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package form

import (
	"fmt"
	"reflect"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/cache/internal/store"
	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/client/codec"
)

// maxShared bounds the strings that objects of a compact informer share.
const maxShared = 4096

// Packing is how the objects of a compact informer are encoded. It packs one at a
// time.
type Packing struct {
	place     Place
	newItem   func() client.Object
	mediaType string
	shared    map[string]string // keys and values of labels, which repeat
}

// NewPacking is nil where encoded objects are not smaller: metadata, and Go types
// without a protobuf form.
func NewPacking(p Place, newItem func() client.Object) *Packing {
	switch {
	case p.Form == Untyped:
		return &Packing{p, newItem, codec.JSON, map[string]string{}}
	case p.Form == Typed && codec.SpeaksProtobuf(newItem()):
		return &Packing{p, newItem, codec.Protobuf, map[string]string{}}
	}
	return nil
}

// packed is an object in a compact store: of its metadata what it is found and
// compared by, and all of it encoded.
type packed struct {
	metav1.ObjectMeta
	packing *Packing
	labels  []string // keys and values in turn; a map takes three times as much
	data    []byte
	// fresh is the object itself while handlers are called with it.
	fresh atomic.Pointer[client.Object]
}

var _ client.Object = (*packed)(nil)

// GetLabels implements metav1.Object.
func (p *packed) GetLabels() map[string]string {
	out := make(map[string]string, len(p.labels)/2)
	for i := 0; i < len(p.labels); i += 2 {
		out[p.labels[i]] = p.labels[i+1]
	}
	return out
}

// GetObjectKind implements runtime.Object: it is the same for the whole store.
func (p *packed) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject implements runtime.Object.
func (p *packed) DeepCopyObject() runtime.Object { return p.unpack().DeepCopyObject() }

// pack encodes an object. One that cannot be encoded is held as it is.
func (k *Packing) pack(obj client.Object) client.Object {
	part, err := metadataOf(obj)
	if err != nil {
		return obj
	}
	data, err := codec.Encode(k.mediaType, obj)
	if err != nil {
		return obj
	}
	p := &packed{packing: k, data: data, ObjectMeta: metav1.ObjectMeta{
		Namespace: k.share(part.Namespace), Name: part.Name, UID: part.UID, ResourceVersion: part.ResourceVersion,
		OwnerReferences: part.OwnerReferences,
	}}
	if n := len(part.Labels); n > 0 {
		p.labels = make([]string, 0, 2*n)
		for key, value := range part.Labels {
			p.labels = append(p.labels, k.share(key), k.share(value))
		}
	}
	p.fresh.Store(&obj)
	return p
}

// share returns a string that other objects have as well.
func (k *Packing) share(s string) string {
	if known, ok := k.shared[s]; ok {
		return known
	}
	if len(k.shared) >= maxShared {
		clear(k.shared)
	}
	k.shared[s] = s
	return s
}

// PackAll packs what a batch puts into the store.
func (k *Packing) PackAll(batch []store.Delta) {
	for i := range batch {
		if d := &batch[i]; d.Op == store.Put || d.Op == store.PutListed {
			d.Object = k.pack(d.Object)
		}
	}
}

// Settle lets go of the objects themselves, once handlers have been called.
func Settle(batch []store.Delta) {
	for i := range batch {
		if p, ok := batch[i].Object.(*packed); ok {
			p.fresh.Store(nil)
		}
	}
}

// unpack is the object; it may be shared.
func (p *packed) unpack() client.Object {
	if fresh := p.fresh.Load(); fresh != nil {
		return *fresh
	}
	obj := p.packing.newItem()
	p.decode(obj)
	return obj
}

// decode makes into the object.
func (p *packed) decode(into client.Object) {
	if err := codec.Decode(p.packing.mediaType, p.data, into, p.packing.place.GVK); err != nil {
		// It was encoded by this process: its memory is damaged, or its type's
		// generated code is.
		panic(fmt.Sprintf("a compact cache cannot decode what it has encoded: %s %s: %v", p.packing.place.GVK.Kind, client.FormatKey(client.ObjectKeyFromObject(p)), err))
	}
}

// copyInto is CopyInto of the object that p holds.
func (p *packed) copyInto(to client.Object) error {
	if _, ok := to.(*metav1.PartialObjectMetadata); ok {
		return CopyInto(to, p.unpack())
	}
	if want := p.packing.newItem(); reflect.TypeOf(to) != reflect.TypeOf(want) {
		return fmt.Errorf("a cached %T cannot be read into a %T", want, to)
	}
	p.decode(to)
	return nil
}

// Whole is obj as its users know it; nil stays nil.
func Whole(obj client.Object) client.Object {
	if p, ok := obj.(*packed); ok {
		return p.unpack()
	}
	return obj
}

// OfWhole is an index function that is given whole objects.
func OfWhole(fn func(client.Object) []string) func(client.Object) []string {
	return func(obj client.Object) []string { return fn(Whole(obj)) }
}
