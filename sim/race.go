// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build race

package sim

// raceDetector reports that tests run under it, several times as long.
const raceDetector = true
