// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package extension_test

import (
	"context"
	"log/slog"
	"net/http"
	"testing"

	"github.com/steer-dev/steer/apiserver/extension"
	"github.com/steer-dev/steer/steertest"
)

// TestServerBehindAControlPlane is how authors test a server.
func TestServerBehindAControlPlane(t *testing.T) {
	t.Parallel()
	var options steertest.Options
	options.Plane.Listen = "127.0.0.1:0"
	env := steertest.New(t, options)
	s := noteServer(func(o *extension.Options) {
		o.Cluster, o.Address, o.Service.ExternalName = env.Config, "127.0.0.1:0", "localhost"
		o.Log = slog.New(slog.NewTextHandler(t.Output(), nil))
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- extension.Run(ctx, nil, s) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	admin := newClient(t, env.Config)
	admin.await(notes)
	admin.must(http.StatusCreated, "POST", notes, note)
	admin.must(http.StatusOK, "GET", notes+"/milk", "")
}
