// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package launch keeps the garbage collector still while the program starts.
//
// The libraries of the program build tables before main begins. The collector, which
// starts at 4 MB, would go over them, and that takes a tenth of the CPU until main. A
// suite that takes its control planes from envtest starts
// this program four times per test.
//
// It is a package of its own, and one that imports next to nothing, because packages are
// initialised as soon as what they need is: this one is among the first.
package launch

import "runtime"

// ballast counts as live and takes no memory, because nobody touches it. The
// collector runs when it is allocated, over nothing yet, and then not before the
// heap has twice its size.
var ballast = make([]byte, 12<<20)

// Finish lets the collector run as often as it does in other programs.
func Finish() {
	runtime.KeepAlive(ballast)
	ballast = nil
}
