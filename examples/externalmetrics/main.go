// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Command externalmetrics is a custom API server that has HorizontalPodAutoscalers scale by
// the lengths of queues, as KEDA does: a Queue is an object of its own API, and the length of
// it is a metric of external.metrics.k8s.io and of custom.metrics.k8s.io.
package main

import (
	"context"
	_ "embed"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/steer-dev/steer/apiserver/custom"
	"github.com/steer-dev/steer/apiserver/extension"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/client"
)

//go:embed config/queues.yaml
var queueDefinition []byte

//go:embed config/external.yaml
var externalDefinition []byte

//go:embed config/pods.yaml
var podDefinition []byte

//go:embed config/services.yaml
var serviceDefinition []byte

func main() {
	fmt.Println("Try: kubectl apply -f config/queue.yaml -f config/autoscaler.yaml; kubectl get hpa orders; with --standalone: kubectl --kubeconfig externalmetrics.kubeconfig apply -f config/queue.yaml")
	extension.Main(server())
}

// server serves queues, and metrics of them.
func server() extension.Server {
	q := &queues{}
	var options extension.Options
	return extension.Server{
		Name:      "externalmetrics",
		Configure: func(o *extension.Options) { options = *o },
		Kinds: func(context.Context) ([]extension.Kind, error) {
			if options.Cluster != nil {
				scheme, err := client.NewScheme(corev1.AddToScheme)
				if err != nil {
					return nil, err
				}
				if q.cluster, err = client.New(options.Cluster, client.Options{Scheme: scheme}); err != nil {
					return nil, err
				}
			}
			return []extension.Kind{
				custom.Kind[*unstructured.Unstructured]{Definition: queueDefinition},
				custom.Kind[*ExternalMetricValue]{Definition: externalDefinition, Backend: external{q}},
				custom.Kind[*unstructured.Unstructured]{
					Definition: podDefinition, Backend: struct{}{}, Subresources: []resource.Subresource{get("queue-share", q.shares)},
				},
				custom.Kind[*unstructured.Unstructured]{
					Definition: serviceDefinition, Backend: struct{}{}, Subresources: []resource.Subresource{get("queue-length", q.ofService)},
				},
			}, nil
		},
		// Queues are read through the server itself, Pods through that of the cluster.
		Background: func(ctx context.Context, loopback *rest.Config) error {
			own, err := client.New(loopback, client.Options{})
			if err != nil {
				return err
			}
			q.own.Store(&own)
			<-ctx.Done()
			return nil
		},
	}
}
