// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Command cmd is the references operator as a program of its own.
package main

import (
	"fmt"

	"github.com/steer-dev/steer"
	"github.com/steer-dev/steer/examples/references"
)

func main() {
	fmt.Println("Try: kubectl apply -f examples/references/config/samples; kubectl get deployment web -o yaml; change the Secret login")
	steer.Main(references.Operator())
}
