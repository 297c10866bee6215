// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package steertest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/client/manifest"
	"github.com/steer-dev/steer/manager"
	"github.com/steer-dev/steer/steertest/internal/host"
	"github.com/steer-dev/steer/steertest/internal/mistakes"
	"github.com/steer-dev/steer/webhook"
)

// configureWebhooks makes an operator serve its webhooks over TLS, with an authority of its
// own, if the test asks for that.
func (e *Env) configureWebhooks(o *manager.Options) {
	if !e.webhooks.OverTLS {
		return
	}
	o.Webhooks.Address, o.Webhooks.Drain = "127.0.0.1:0", -1
	o.Webhooks.Client = e.Client // its roles are those of the cluster that it will run in
	o.Webhooks.Authority = webhook.Authority{Namespace: e.webhooks.Namespace, Configurations: e.webhooks.Names}
}

// installWebhooks applies the webhook configurations.
func (e *Env) installWebhooks() {
	e.Helper()
	e.webhooks.OverTLS = e.options.WebhooksOverTLS
	if e.Plane == nil && len(e.options.Webhooks) > 0 {
		e.skip("webhooks of the operator (Options.Webhooks): it cannot reach this process by their Service")
	}
	if e.webhooks.OverTLS && virtual() {
		e.Fatalf("steertest: Options.WebhooksOverTLS needs sockets, which virtual time (testing/synctest) does not have")
	}
	paths, err := host.FindAll(e.options.Webhooks)
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
			e.webhooks.Configured = append(e.webhooks.Configured, o.Unstructured)
		}
	}
	e.webhooks.Read(append(definitions, configurations...))
	if e.webhooks.OverTLS {
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
	namespace.SetName(e.webhooks.Namespace)
	if err := e.Client.Create(e.ctx, namespace); client.IgnoreAlreadyExists(err) != nil {
		e.Fatalf("steertest: create the namespace of the webhooks: %v", err)
	}
}

// serveWebhooks leads the control plane to the webhooks of a manager. Over TLS it waits
// until they are served, and their certificate is trusted.
func (e *Env) serveWebhooks(m *manager.Manager) error {
	e.webhooks.Add(m.Webhooks())
	if err := mistakes.Webhooks(m.Webhooks(), e.webhooks.Configured); err != nil && !e.options.Mistakes {
		return err
	}
	if !e.webhooks.OverTLS {
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
