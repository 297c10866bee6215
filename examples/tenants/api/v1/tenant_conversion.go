// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

// Hub marks v1 as the version that the others convert to and from.
func (*Tenant) Hub() {}
