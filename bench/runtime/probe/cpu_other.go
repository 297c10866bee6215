// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package probe

import "time"

// processCPU is unknown here.
func processCPU() time.Duration { return 0 }
