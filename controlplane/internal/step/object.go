// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/internal/kubejson"
	"github.com/steer-dev/steer/storage"
)

// Object is the metadata of a stored object that decides over its life. It is
// shared and must not be changed.
type Object struct {
	UID        types.UID
	Owners     []metav1.OwnerReference
	Finalizers []string
	// Deleting reports that the object has a deletion timestamp.
	Deleting bool
	// Revision is the resourceVersion of an object of another server; empty for a stored one,
	// whose record has it.
	Revision string
}

// Decoder reads the metadata of a stored object. It returns nil for a record
// that is not an object; controllers leave those alone.
type Decoder func(*storage.Record) *Object

// Has reports whether the object carries a finalizer.
func (o *Object) Has(finalizer string) bool { return slices.Contains(o.Finalizers, finalizer) }

// Without returns the finalizers of the object but one, never nil.
func (o *Object) Without(finalizer string) []string {
	rest := make([]string, 0, len(o.Finalizers))
	for _, f := range o.Finalizers {
		if f != finalizer {
			rest = append(rest, f)
		}
	}
	return rest
}

// Decode reads a stored object, or some of its fields, into an empty Go value, as
// sigs.k8s.io/json does: in one pass if it can. Texts share the memory of the record.
func Decode(rec *storage.Record, into any) error {
	if resource.ReadStored(rec.Value, into) {
		return nil
	}
	reflect.ValueOf(into).Elem().SetZero() // some of it may have been read
	return kubejson.Unmarshal(rec.Value, into)
}

// WithMetadata returns a stored object with some fields of its metadata replaced,
// for those who may update an object but not patch it. Its revision is part of
// it. It returns nil for a record that is not an object.
func WithMetadata(rec *storage.Record, fields map[string]any) []byte {
	decoder := json.NewDecoder(bytes.NewReader(rec.Value))
	decoder.UseNumber() // numbers stay as they are written
	var object map[string]any
	if decoder.Decode(&object) != nil {
		return nil
	}
	metadata, ok := object["metadata"].(map[string]any)
	if !ok {
		return nil
	}
	metadata["resourceVersion"] = strconv.FormatInt(int64(rec.Modified), 10)
	maps.Copy(metadata, fields)
	body, err := json.Marshal(object)
	if err != nil {
		return nil
	}
	return body
}
