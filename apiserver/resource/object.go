// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/steer-dev/steer/apiserver/internal/doc"
	"github.com/steer-dev/steer/apiserver/internal/typed"
	"github.com/steer-dev/steer/internal/jsontext"
)

// Object is one API object under way: a Go value of a kind that has a Go type, else a [Doc].
// It is an alias so that packages which do not know this one can implement the
// interfaces here.
type Object = interface {
	runtime.Object
	metav1.Object
}

// Doc is an object of a [Version] without a Go type, as strategies, ownerships, admission,
// conversions, backends and [Resource.Committed] get it. Its metadata has the methods of
// [metav1.Object]. [Doc.Content] returns a copy of the rest as maps, and [Doc.SetContent] takes
// a changed one back:
//
//	content := d.Content("spec")
//	err := unstructured.SetNestedField(content, int64(3), "spec", "replicas")
//	d.SetContent(content, "spec")
type Doc = doc.Doc

// NewDoc returns an object with a content, which must not be changed any more.
func NewDoc(content map[string]any) *Doc { return doc.New(content) }

// ParseDoc decodes the JSON of an object. The result shares the memory of text, which must not
// be changed any more.
func ParseDoc(text []byte) (*Doc, error) { return doc.Parse(text) }

// Equal reports whether two objects of one type are equal. For Go types it is
// [equality.Semantic], which takes what is empty for what is absent.
func Equal(a, b Object) bool {
	if x, ok := a.(*Doc); ok {
		y, ok := b.(*Doc)
		return ok && x.Equal(y)
	}
	return equality.Semantic.DeepEqual(a, b)
}

// ReadStored decodes JSON that a server has stored into an empty Go value, a pointer to
// a struct of the kind or of some of its fields, without reflection. If it returns
// false, use encoding/json; the contents of into are then undefined. Strings share the
// memory of value, which must not be changed any more.
func ReadStored(value []byte, into any) bool {
	plan := typed.Of(into)
	return plan != nil && plan.ReadStored(value, into)
}

// EncodeObject returns an object as JSON, as clients and webhooks get it.
func EncodeObject(obj Object) ([]byte, error) {
	switch o := obj.(type) {
	case *Doc:
		return o.MarshalJSON()
	case *unstructured.Unstructured: // of a backend or an action
		return jsontext.Marshal(o.Object)
	}
	value, _, err := typed.Encode(obj)
	return value, err
}
