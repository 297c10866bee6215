// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Command cmd is the references operator as a program of its own.
package main

import (
	"github.com/steer-dev/steer"
	"github.com/steer-dev/steer/examples/references"
)

func main() { steer.Main(references.Operator()) }
