// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Command framework is the same controller with controller.Add:
//
//	go run ./cmd/steer dev --crds examples/handmade/config/crd/bases -- go run ./examples/handmade/cmd/framework
package main

import (
	"fmt"
	"os"

	"github.com/steer-dev/steer"
	"github.com/steer-dev/steer/examples/handmade"
)

func main() {
	fmt.Fprintln(os.Stderr, "Try: kubectl apply -f examples/handmade/config/samples; kubectl get greetings")
	steer.Main(handmade.Operator())
}
