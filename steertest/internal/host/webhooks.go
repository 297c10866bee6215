// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/steer-dev/steer/client/manifest"
	"github.com/steer-dev/steer/controlplane/webhookclient"
	"github.com/steer-dev/steer/webhook"
)

// Webhooks are those of the running operator, as the control plane calls them: every
// Service of a webhook leads to the operator.
type Webhooks struct {
	OverTLS bool // by a socket
	// running are those of the operator and its replicas: a Service leads to the first.
	mu      sync.Mutex
	running []*webhook.Server
	// Namespace of their Services, and Names of their configurations, as the manifests
	// say.
	Namespace string
	Names     []string
	// Configured are the configurations and definitions, if the test has any of the former.
	Configured []*unstructured.Unstructured
}

// Resolve is the Resolve of webhookclient.Options.
func (w *Webhooks) Resolve(_ context.Context, s webhookclient.Service) (webhookclient.Backend, bool) {
	server := w.first()
	switch {
	case s.APIService || server == nil || len(server.Paths()) == 0:
		return webhookclient.Backend{}, false
	case !w.OverTLS:
		return webhookclient.Backend{Transport: server}, true
	}
	address := server.Addr()
	if address == nil {
		return webhookclient.Backend{}, false
	}
	return webhookclient.Backend{Address: address.String()}, true
}

// first is the server that calls go to; nil while no operator runs.
func (w *Webhooks) first() *webhook.Server {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.running) == 0 {
		return nil
	}
	return w.running[0]
}

// Add leads calls to a server, once those before it are removed.
func (w *Webhooks) Add(server *webhook.Server) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running = append(w.running, server)
}

// Remove leads them to the next one.
func (w *Webhooks) Remove(server *webhook.Server) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running = slices.DeleteFunc(w.running, func(s *webhook.Server) bool { return s == server })
}

// Read takes the Services and the names from manifests.
func (w *Webhooks) Read(objects []manifest.Object) {
	for _, o := range objects {
		services := []map[string]any{serviceOf(o.Object, "spec", "conversion", "webhook")}
		if hooks, _, _ := unstructured.NestedSlice(o.Object, "webhooks"); hooks != nil {
			w.Names = append(w.Names, o.GetName())
			for _, hook := range hooks {
				if hook, ok := hook.(map[string]any); ok {
					services = append(services, serviceOf(hook))
				}
			}
		}
		for _, service := range services {
			if namespace, ok := service["namespace"].(string); ok {
				w.Namespace = namespace
			}
		}
	}
}

func serviceOf(object map[string]any, path ...string) map[string]any {
	service, _, _ := unstructured.NestedMap(object, append(path, "clientConfig", "service")...)
	return service
}
