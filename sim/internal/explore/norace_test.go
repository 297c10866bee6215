// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package explore_test

// raceDetector reports that the tests do not run under it.
const raceDetector = false
