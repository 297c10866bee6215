// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package project

import "os/exec"

// asGroup leaves a command as it is: it is killed without its children.
func asGroup(*exec.Cmd) {}
