// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/apiserver/internal/registry"
	"github.com/steer-dev/steer/apiserver/internal/typed"
	"github.com/steer-dev/steer/apiserver/internal/wire"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/internal/jsontext"
	"github.com/steer-dev/steer/storage"
)

// ErrNotServed: the kind of an object is not one that the server serves.
var ErrNotServed = errors.New("the kind is not served")

// Stored returns the write that stores an object which a kube-apiserver has stored: JSON,
// or protobuf in its envelope. The object keeps its metadata and its status, and gets the
// defaults of its version; it is neither admitted nor validated. It fails with [ErrNotServed]
// for a kind or a version that the server does not have; same returns the version that has
// the same fields as another one, or the kind as it is.
func (s *Server) Stored(ctx context.Context, value []byte, same func(schema.GroupVersionKind) schema.GroupVersionKind) (storage.Write, error) {
	gvk, raw, err := envelope(value)
	if err != nil {
		return storage.Write{}, err
	}
	gvk = same(gvk)
	in := s.storedAs(gvk)
	if in == nil {
		return storage.Write{}, fmt.Errorf("%w: %s %s", ErrNotServed, gvk.GroupVersion(), gvk.Kind)
	}
	v := in.Version(gvk.Version)
	obj, err := decodeStored(v, value, raw)
	if err != nil {
		return storage.Write{}, err
	}
	obj.GetObjectKind().SetGroupVersionKind(gvk)
	if _, err := v.Strategy.Default(obj); err != nil {
		return storage.Write{}, err
	}
	return s.registry.WriteOf(ctx, in, v, obj)
}

// decodeStored decodes an object of a typed version: protobuf without its envelope, or JSON.
func decodeStored(v *resource.Version, value, raw []byte) (resource.Object, error) {
	obj := v.NewObject()
	if raw == nil {
		if err := typed.Decode(value, obj); err != nil {
			return nil, fmt.Errorf("the JSON is damaged: %w", err)
		}
		return obj, nil
	}
	m, ok := obj.(interface{ Unmarshal([]byte) error })
	if !ok {
		return nil, fmt.Errorf("%T has no protobuf form", obj)
	}
	if err := m.Unmarshal(raw); err != nil {
		return nil, fmt.Errorf("the protobuf is damaged: %w", err)
	}
	return obj, nil
}

// storedAs returns the resource with a typed version that stores the objects of a kind.
func (s *Server) storedAs(gvk schema.GroupVersionKind) *registry.Served {
	for _, in := range s.table.Load().resources {
		if in.Backend == nil && in.Group == gvk.Group && in.Kind == gvk.Kind && isTyped(in.Version(gvk.Version)) {
			return in.Served
		}
	}
	return nil
}

func isTyped(v *resource.Version) bool { return v != nil && v.Typed() }

// envelope returns the kind of a stored object, and its protobuf if it is one.
func envelope(value []byte) (gvk schema.GroupVersionKind, raw []byte, err error) {
	apiVersion, kind := jsontext.String(value, "apiVersion"), jsontext.String(value, "kind")
	if rest, ok := wire.Enveloped(value); ok {
		var unknown runtime.Unknown
		if err := unknown.Unmarshal(rest); err != nil {
			return gvk, nil, fmt.Errorf("the protobuf is damaged: %w", err)
		}
		apiVersion, kind, raw = unknown.APIVersion, unknown.Kind, unknown.Raw
	} else if value = bytes.TrimSpace(value); len(value) == 0 || value[0] != '{' {
		return gvk, nil, errors.New("it is neither JSON nor protobuf")
	}
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil || kind == "" {
		return gvk, nil, errors.New("it has no kind")
	}
	return gv.WithKind(kind), raw, nil
}

// StoredCustom is [Server.Stored] for a custom resource, which is JSON: it keeps its version,
// and is read as its definition says. The bucket is that of the definition.
func StoredCustom(bucket string, value []byte) (storage.Write, error) {
	gvk, raw, err := envelope(value)
	if err != nil {
		return storage.Write{}, err
	}
	if raw != nil {
		return storage.Write{}, fmt.Errorf("%w: %s %s", ErrNotServed, gvk.GroupVersion(), gvk.Kind)
	}
	obj := &unstructured.Unstructured{}
	if err := obj.UnmarshalJSON(value); err != nil {
		return storage.Write{}, fmt.Errorf("the JSON is damaged: %w", err)
	}
	obj.SetResourceVersion(jsontext.Placeholder)
	w := storage.Write{Key: storage.Key{Bucket: bucket, Name: obj.GetName()}, Expect: storage.AnyRevision}
	if namespace := obj.GetNamespace(); namespace != "" {
		w.Key.Name = namespace + "/" + w.Key.Name
	}
	encoded, err := jsontext.Marshal(obj.Object)
	if err != nil {
		return w, err
	}
	w.Value, w.Stamp, err = jsontext.Open(encoded)
	return w, err
}
