// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Command cmd is the controller with a cloud in memory:
//
//	go run ./cmd/steer dev -- go run ./examples/loadbalancer/cmd
package main

import (
	"fmt"
	"time"

	"github.com/steer-dev/steer"
	"github.com/steer-dev/steer/examples/loadbalancer"
	"github.com/steer-dev/steer/examples/loadbalancer/cloud"
)

func main() {
	fmt.Println("Try: kubectl apply -f examples/loadbalancer/config/samples; kubectl get services --watch")
	steer.Main(loadbalancer.Operator(loadbalancer.Options{Cloud: &cloud.Memory{
		Latency: 50 * time.Millisecond, Lag: 2 * time.Second, Provisioning: 5 * time.Second, Quota: 2,
	}}))
}
