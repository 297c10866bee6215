// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"net/http"
)

// Scraped is what the metrics server of m answers with.
func Scraped(m *Manager) http.Handler { return m.servers.metricsServer(m).Handler }

// Elect takes part in the election of m until ctx ends, and calls elected when the
// lease is won. It is what Start does, without runnables.
func Elect(ctx context.Context, m *Manager, elected func()) error {
	return m.elector.run(ctx, func() *group {
		g := newGroup()
		context.AfterFunc(ctx, g.seal)
		elected()
		return g
	})
}
