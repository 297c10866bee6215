// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package resource

import "github.com/steer-dev/steer/apiserver/internal/typed"

// ReadStored decodes JSON that a server has stored into an empty Go value, a pointer to
// a struct of the kind or of some of its fields, without reflection. If it returns
// false, use encoding/json; the contents of into are then undefined. Strings share the
// memory of value, which must not be changed any more.
func ReadStored(value []byte, into any) bool {
	plan := typed.Of(into)
	return plan != nil && plan.ReadStored(value, into)
}
