// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Command cmd is the replicas operator as a program of its own.
package main

import (
	"fmt"

	"github.com/steer-dev/steer"
	"github.com/steer-dev/steer/examples/replicas"
)

func main() {
	fmt.Println("Try: kubectl apply -f examples/replicas/config/samples; kubectl get fleets,pods; kubectl scale fleet/web --replicas=3")
	steer.Main(replicas.Operator())
}
