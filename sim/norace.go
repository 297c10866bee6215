// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package sim

// raceDetector reports that tests do not run under it.
const raceDetector = false
