// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

// Hub marks this version as the one that others convert to and from.
func (*Website) Hub() {}
