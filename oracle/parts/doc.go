// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package parts holds parts of the control plane against those parts of
// kube-apiserver that can be linked: same input, same verdict. Where package
// peer asks a whole server a few thousand times, its tests ask a part of one
// millions of times.
package parts
