// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Command cmd is the crontab operator as a program of its own.
package main

import (
	"fmt"

	"github.com/steer-dev/steer"
	"github.com/steer-dev/steer/examples/crontab"
)

func main() {
	fmt.Println("Try: kubectl apply -f examples/crontab/config/samples; kubectl get crontabs,jobs")
	steer.Main(crontab.Operator())
}
