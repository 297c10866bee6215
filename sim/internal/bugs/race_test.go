// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build race

package bugs_test

// every is which plans are tried of an operator that is mended: every n-th.
const every = 16
