// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Command metrics is a custom API server of metrics.k8s.io: what `kubectl top` and
// HorizontalPodAutoscalers read. Its objects are in no store; they are computed when they
// are read, from a simulated fleet of nodes and Pods.
package main

import (
	"context"
	_ "embed"
	"flag"
	"fmt"
	"time"

	"github.com/steer-dev/steer/apiserver/custom"
	"github.com/steer-dev/steer/apiserver/extension"
)

//go:embed nodes.yaml
var nodeDefinition []byte

//go:embed pods.yaml
var podDefinition []byte

func main() {
	fmt.Println("Try: kubectl top pods; with --standalone: kubectl --kubeconfig metrics.kubeconfig top pods")
	extension.Main(server())
}

// server serves the metrics of a fleet, whose size flags say.
func server() extension.Server {
	f := &fleet{now: time.Now}
	return extension.Server{
		Name: "metrics",
		Flags: func(set *flag.FlagSet) {
			set.IntVar(&f.nodes, "nodes", 3, "how many nodes the fleet has")
			set.IntVar(&f.pods, "pods", 2, "how many Pods each node has, in the namespace default")
		},
		Kinds: func(context.Context) ([]extension.Kind, error) {
			return []extension.Kind{
				custom.Kind[*NodeMetrics]{Definition: nodeDefinition, Backend: nodeMetrics{f}},
				custom.Kind[*PodMetrics]{Definition: podDefinition, Backend: podMetrics{f}},
			}, nil
		},
	}
}
