// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package giveback

// unmapExecutable does nothing: other systems have no such call, or none that only
// drops what is clean.
func unmapExecutable() error { return nil }
