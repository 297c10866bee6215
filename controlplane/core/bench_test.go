// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package core

import "testing"

// BenchmarkResources is what the descriptions of all kinds cost a process before
// anything is written.
func BenchmarkResources(b *testing.B) {
	for b.Loop() {
		describe()
	}
}
