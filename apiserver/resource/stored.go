// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/steer-dev/steer/apiserver/internal/typed"
	"github.com/steer-dev/steer/apiserver/internal/wire"
)

// ReadStored decodes JSON that a server has stored into an empty Go value, a pointer to
// a struct of the kind or of some of its fields, without reflection. If it returns
// false, use encoding/json; the contents of into are then undefined. Strings share the
// memory of value, which must not be changed any more.
func ReadStored(value []byte, into any) bool {
	plan := typed.Of(into)
	return plan != nil && plan.ReadStored(value, into)
}

// EncodeObject returns an object as JSON, as clients and webhooks get it. Raw members are
// copied.
func EncodeObject(obj Object) ([]byte, error) {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		return wire.Marshal(u.Object)
	}
	value, _, err := wire.Encode(obj)
	return value, err
}
