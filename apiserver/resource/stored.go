// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package resource

import "github.com/steer-dev/steer/apiserver/internal/typed"

// ReadStored reads JSON that a server has stored into an empty Go value, which points
// to a struct of the kind or of some of its fields, without reflection. false means
// that a library has to read it; what into is then does not matter. Texts share the
// memory of value, which must not change any more.
func ReadStored(value []byte, into any) bool {
	plan := typed.Of(into)
	return plan != nil && plan.ReadStored(value, into)
}
