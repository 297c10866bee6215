// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/steer-dev/steer/cache"
	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/webhook"
)

// Webhooks implements webhook.Manager: the server of the operator's webhooks. It runs
// on every replica.
func (m *Manager) Webhooks() *webhook.Server { return m.webhooks }

// newWebhooks completes the options of the webhook server.
func (m *Manager) newWebhooks(c client.Client) *webhook.Server {
	o := m.opts.Webhooks
	if o.Client == nil {
		o.Client = c
	}
	o.Authority.Secret = cmp.Or(o.Authority.Secret, m.opts.Name+"-webhook-ca")
	if o.Authority.Namespace == "" {
		if data, err := os.ReadFile(namespaceFile); err == nil { // there is none outside of a cluster
			o.Authority.Namespace = strings.TrimSpace(string(data))
		}
	}
	if o.Authority.Configurations == nil {
		o.Authority.Configurations = webhookConfigurations(m.opts.Name)
	}
	if o.Context == nil {
		o.Context = cache.AwaitStart
	}
	o.MaxConnections = cmp.Or(o.MaxConnections, m.opts.MaxConnections)
	o.Scheme = cmp.Or(o.Scheme, m.opts.Scheme)
	o.Trace = cmp.Or(o.Trace, m.records.Recorder)
	o.Log = cmp.Or(o.Log, m.opts.Log)
	if o.Metrics == nil {
		o.Metrics = m.metrics
	}
	return webhook.New(o)
}

// webhookConfigurations are the names of the webhook configurations of an operator: as
// they are generated, and as deployments have them, behind the operator's name.
func webhookConfigurations(operator string) (names []string) {
	for _, name := range []string{"mutating-webhook-configuration", "validating-webhook-configuration"} {
		names = append(names, name, operator+"-"+name)
	}
	return names
}

// serveWebhooks serves the webhooks until ctx ends, or the returned function is
// called, and they have drained, for which that function waits.
func (m *Manager) serveWebhooks(ctx context.Context, fail context.CancelCauseFunc) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := m.webhooks.Start(ctx); err != nil {
			fail(fmt.Errorf("manager: %w", err))
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}
