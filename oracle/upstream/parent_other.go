// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux || portable

package upstream

import "os/exec"

// endWithParent does nothing here: only Linux can tie a child to its parent.
func endWithParent(*exec.Cmd) {}
