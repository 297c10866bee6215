// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/kubernetes/pkg/controller/namespace"

	"github.com/steer-dev/steer/oracle/upstream"
)

// resync is how often the namespace controller looks at all namespaces again: after seconds, not
// after the minutes of a cluster.
const resync = 2 * time.Second

// control starts controllers of kube-controller-manager by their names, which run until ctx ends.
func control(ctx context.Context, server *upstream.Server, names []string) error {
	if len(names) == 0 {
		return nil
	}
	config := &rest.Config{
		Host: server.URL, BearerToken: server.Token, TLSClientConfig: rest.TLSClientConfig{CAData: server.CA}, QPS: -1,
		UserAgent: "kube-controller-manager",
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	meta, err := metadata.NewForConfig(config)
	if err != nil {
		return err
	}
	f := informers.NewSharedInformerFactory(client, 0)
	for _, name := range names {
		switch name {
		case "namespace-controller":
			c := namespace.NewNamespaceController(ctx, client, meta, client.Discovery().ServerPreferredNamespacedResources,
				f.Core().V1().Namespaces(), resync, corev1.FinalizerKubernetes)
			go c.Run(ctx, 2)
		default:
			return fmt.Errorf("there is no controller %q to record: namespace-controller is", name)
		}
	}
	f.Start(ctx.Done())
	return nil
}
