// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package steertest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/client/manifest"
	"github.com/steer-dev/steer/controlplane/webhookclient"
	"github.com/steer-dev/steer/manager"
	"github.com/steer-dev/steer/steertest/internal/mistakes"
	"github.com/steer-dev/steer/webhook"
)

// webhooks are those of the running operator, as the control plane calls them: every
// Service of a webhook leads to the operator.
type webhooks struct {
	overTLS bool
	// running are those of the operator and its replicas: a Service leads to the first.
	mu      sync.Mutex
	running []*webhook.Server
	// namespace of their Services, and names of their configurations, as the manifests
	// say.
	namespace string
	names     []string
	// configured are the configurations and definitions, if the test has any of the former.
	configured []*unstructured.Unstructured
}

// resolve is the Resolve of webhookclient.Options.
func (w *webhooks) resolve(_ context.Context, s webhookclient.Service) (webhookclient.Backend, bool) {
	server := w.first()
	switch {
	case s.APIService || server == nil || len(server.Paths()) == 0:
		return webhookclient.Backend{}, false
	case !w.overTLS:
		return webhookclient.Backend{Transport: server}, true
	}
	address := server.Addr()
	if address == nil {
		return webhookclient.Backend{}, false
	}
	return webhookclient.Backend{Address: address.String()}, true
}

// first is the server that calls go to; nil while no operator runs.
func (w *webhooks) first() *webhook.Server {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.running) == 0 {
		return nil
	}
	return w.running[0]
}

// add leads calls to a server, once those before it are removed.
func (w *webhooks) add(server *webhook.Server) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running = append(w.running, server)
}

func (w *webhooks) remove(server *webhook.Server) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running = slices.DeleteFunc(w.running, func(s *webhook.Server) bool { return s == server })
}

// read takes the Services and the names from manifests.
func (w *webhooks) read(objects []manifest.Object) {
	for _, o := range objects {
		services := []map[string]any{serviceOf(o.Object, "spec", "conversion", "webhook")}
		if hooks, _, _ := unstructured.NestedSlice(o.Object, "webhooks"); hooks != nil {
			w.names = append(w.names, o.GetName())
			for _, hook := range hooks {
				if hook, ok := hook.(map[string]any); ok {
					services = append(services, serviceOf(hook))
				}
			}
		}
		for _, service := range services {
			if namespace, ok := service["namespace"].(string); ok {
				w.namespace = namespace
			}
		}
	}
}

func serviceOf(object map[string]any, path ...string) map[string]any {
	service, _, _ := unstructured.NestedMap(object, append(path, "clientConfig", "service")...)
	return service
}

// configure makes an operator serve its webhooks over TLS, with an authority of its
// own, if the test asks for that.
func (w *webhooks) configure(e *Env, o *manager.Options) {
	if !w.overTLS {
		return
	}
	o.Webhooks.Address, o.Webhooks.Drain = "127.0.0.1:0", -1
	o.Webhooks.Client = e.Client // its roles are those of the cluster that it will run in
	o.Webhooks.Authority = webhook.Authority{Namespace: w.namespace, Configurations: w.names}
}

// installWebhooks applies the webhook configurations.
func (e *Env) installWebhooks() {
	e.Helper()
	e.webhooks.overTLS = e.options.WebhooksOverTLS
	if e.Plane == nil && len(e.options.Webhooks) > 0 {
		e.skip("webhooks of the operator (Options.Webhooks): it cannot reach this process by their Service")
	}
	if e.webhooks.overTLS && virtual() {
		e.Fatalf("steertest: Options.WebhooksOverTLS needs sockets, which virtual time (testing/synctest) does not have")
	}
	paths, err := findAll(e.options.Webhooks)
	if err != nil {
		e.Fatalf("steertest: find the webhook configurations: %v", err)
	}
	configurations, err := manifest.Read(paths...)
	if err != nil {
		e.Fatalf("steertest: %v", err)
	}
	// Folders of kubebuilder have the Service as well, in a namespace that is not its last.
	configurations = slices.DeleteFunc(configurations, func(o manifest.Object) bool { return !strings.HasSuffix(o.GetKind(), "WebhookConfiguration") })
	definitions, err := e.definitions()
	if err != nil {
		e.Fatalf("steertest: %v", err)
	}
	if len(configurations) > 0 {
		for _, o := range slices.Concat(definitions, configurations) {
			e.webhooks.configured = append(e.webhooks.configured, o.Unstructured)
		}
	}
	e.webhooks.read(append(definitions, configurations...))
	if e.webhooks.overTLS {
		e.createWebhookNamespace()
	}
	if err := manifest.Apply(e.ctx, e.Client, "", configurations); err != nil {
		e.Fatalf("steertest: %v", err)
	}
}

// createWebhookNamespace creates the namespace in which the operator would run.
func (e *Env) createWebhookNamespace() {
	e.Helper()
	namespace := &unstructured.Unstructured{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	namespace.SetName(e.webhooks.namespace)
	if err := e.Client.Create(e.ctx, namespace); client.IgnoreAlreadyExists(err) != nil {
		e.Fatalf("steertest: create the namespace of the webhooks: %v", err)
	}
}

// serveWebhooks leads the control plane to the webhooks of a manager. Over TLS it waits
// until they are served, and their certificate is trusted.
func (e *Env) serveWebhooks(m *manager.Manager) error {
	e.webhooks.add(m.Webhooks())
	if err := mistakes.Webhooks(m.Webhooks(), e.webhooks.configured); err != nil && !e.options.Mistakes {
		return err
	}
	if !e.webhooks.overTLS {
		return nil
	}
	waiting, cancel := context.WithTimeout(e.waits, e.timeout)
	defer cancel()
	for m.Webhooks().Ready(nil) != nil {
		select {
		case <-waiting.Done():
			return fmt.Errorf("the webhooks are not served: %w", m.Webhooks().Ready(nil))
		case <-time.After(time.Millisecond):
		}
	}
	return nil
}
