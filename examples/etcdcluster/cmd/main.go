// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Command cmd is the etcdcluster operator as a program of its own.
package main

import (
	"github.com/steer-dev/steer"
	"github.com/steer-dev/steer/examples/etcdcluster"
)

func main() { steer.Main(etcdcluster.Operator(etcdcluster.Options{})) }
