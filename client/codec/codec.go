// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package codec turns objects into request bodies and answers into objects,
// in JSON and in Kubernetes' protobuf envelope.
package codec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/client/codec/internal/message"
)

// Media types.
const (
	JSON     = "application/json"
	Protobuf = "application/vnd.kubernetes.protobuf"
)

// protoMagic begins every protobuf body of Kubernetes.
const protoMagic = "k8s\x00"

// errNoMagic says that a body is not what its content type promises.
var errNoMagic = errors.New("a protobuf answer does not begin with the prefix of Kubernetes")

// speaker is what generated protobuf types of Kubernetes implement.
type speaker interface {
	Marshal() ([]byte, error)
	Unmarshal([]byte) error
}

// SpeaksProtobuf says that obj's type has a protobuf form.
func SpeaksProtobuf(obj runtime.Object) bool {
	_, ok := obj.(speaker)
	return ok
}

// Encode writes obj, which carries its kind, in the media type.
func Encode(mediaType string, obj runtime.Object) ([]byte, error) {
	if mediaType != Protobuf {
		data, err := json.Marshal(obj)
		if err != nil {
			return nil, fmt.Errorf("encode %T: %w", obj, err)
		}
		return data, nil
	}
	m, ok := obj.(speaker)
	if !ok {
		return nil, fmt.Errorf("encode %T: the type has no protobuf form", obj)
	}
	raw, err := m.Marshal()
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", obj, err)
	}
	gvk := obj.GetObjectKind().GroupVersionKind()
	apiVersion, kind := gvk.ToAPIVersionAndKind()
	envelope, err := (&runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: apiVersion, Kind: kind}, Raw: raw}).Marshal()
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", obj, err)
	}
	return append([]byte(protoMagic), envelope...), nil
}

// Decode replaces *into by what body holds; on an error into is unchanged.
// The content type is that of the answer. gvk is what into becomes when the
// answer does not say, as protobuf and the items of typed lists do not.
func Decode(contentType string, body []byte, into runtime.Object, gvk schema.GroupVersionKind) error {
	if u, ok := into.(runtime.Unstructured); ok {
		return decodeUnstructured(body, u, gvk)
	}
	target := reflect.ValueOf(into)
	if target.Kind() != reflect.Pointer || target.IsNil() {
		return fmt.Errorf("decode into %T: need a pointer", into)
	}
	fresh := reflect.New(target.Type().Elem())
	obj := fresh.Interface().(runtime.Object)
	if err := decodeInto(contentType, body, obj); err != nil {
		return fmt.Errorf("decode %s: %w", gvk.Kind, err)
	}
	setKind(obj, gvk)
	target.Elem().Set(fresh.Elem())
	return nil
}

func decodeInto(contentType string, body []byte, obj runtime.Object) error {
	if !strings.HasPrefix(contentType, Protobuf) {
		return unmarshalJSON(body, obj)
	}
	raw, err := unwrap(body)
	if err != nil {
		return err
	}
	m, ok := obj.(speaker)
	if !ok {
		return fmt.Errorf("%T has no protobuf form, but the server sent one", obj)
	}
	return m.Unmarshal(raw)
}

// unwrap is the message inside the envelope of body, a part of it.
func unwrap(body []byte) ([]byte, error) {
	rest, ok := bytes.CutPrefix(body, []byte(protoMagic))
	if !ok {
		return nil, errNoMagic
	}
	var raw []byte
	for len(rest) > 0 {
		f, after, err := message.Next(rest)
		if err != nil {
			return nil, err
		}
		if f.Number == fieldRaw {
			raw = f.Content
		}
		rest = after
	}
	return raw, nil
}

// setKind gives obj, and the items of a list, their kind. Metadata-only answers
// say PartialObjectMetadata, but callers mean the kind they asked for.
func setKind(obj runtime.Object, gvk schema.GroupVersionKind) {
	obj.GetObjectKind().SetGroupVersionKind(gvk)
	if _, ok := obj.(metav1.ListInterface); !ok {
		return
	}
	items, err := ItemsOf(obj)
	if err != nil {
		return
	}
	gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
	for i := range items.Len() {
		item := items.Index(i)
		if item.Kind() != reflect.Pointer {
			item = item.Addr()
		}
		if o, ok := item.Interface().(runtime.Object); ok {
			o.GetObjectKind().SetGroupVersionKind(gvk)
		}
	}
}

// ItemsOf is the Items slice of a list, addressable.
func ItemsOf(list runtime.Object) (reflect.Value, error) {
	v := reflect.ValueOf(list)
	if v.Kind() == reflect.Pointer && !v.IsNil() && v.Elem().Kind() == reflect.Struct {
		if items := v.Elem().FieldByName("Items"); items.IsValid() && items.Kind() == reflect.Slice {
			return items, nil
		}
	}
	return reflect.Value{}, fmt.Errorf("%T is not a list: it needs a field Items", list)
}

func decodeUnstructured(body []byte, into runtime.Unstructured, gvk schema.GroupVersionKind) error {
	content := map[string]any{}
	if err := unmarshalJSON(body, &content); err != nil {
		return fmt.Errorf("decode %s: %w", gvk.Kind, err)
	}
	list, isList := into.(*unstructured.UnstructuredList)
	if !isList {
		into.SetUnstructuredContent(content)
		return nil
	}
	items, _ := content["items"].([]any)
	delete(content, "items")
	list.Object = content
	list.Items = make([]unstructured.Unstructured, 0, len(items))
	itemGVK := gvk
	itemGVK.Kind = strings.TrimSuffix(gvk.Kind, "List")
	for _, item := range items {
		m, ok := item.(map[string]any)
		if !ok {
			return fmt.Errorf("decode %s: an item is not an object", gvk.Kind)
		}
		u := unstructured.Unstructured{Object: m}
		if u.GetKind() == "" {
			u.SetGroupVersionKind(itemGVK)
		}
		list.Items = append(list.Items, u)
	}
	return nil
}
