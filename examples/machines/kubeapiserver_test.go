// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"log/slog"
	"net"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/steer-dev/steer/apiserver/extension"
	"github.com/steer-dev/steer/client"
	v1 "github.com/steer-dev/steer/examples/machines/api/v1"
	"github.com/steer-dev/steer/internal/kubeapiserver"
)

// behind starts the server behind a cluster, and returns when the cluster serves machines.
func behind(t *testing.T, cluster *rest.Config) *running {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &running{t: t, config: cluster, kubeconfig: kubeapiserver.Kubeconfig(t, cluster)}
	scheme, err := client.NewScheme(v1.AddToScheme)
	if err != nil {
		t.Fatal(err)
	}
	if r.Client, err = client.New(cluster, client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	s := server()
	s.Configure = func(o *extension.Options) { o.Listener, o.Log = listener, slog.New(slog.DiscardHandler) }
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- extension.Run(ctx, []string{"--kubeconfig", r.kubeconfig, "--external-name", "localhost", "--data-dir", t.TempDir()}, s)
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	r.until("machines are not served", func() bool { return r.List(t.Context(), &v1.MachineList{}) == nil })
	return r
}

// TestMachinesBehindKubeAPIServer does with the plugin what users do with Pods: the requests, and
// the upgrades of their connections, are passed on by kube-apiserver.
func TestMachinesBehindKubeAPIServer(t *testing.T) {
	t.Parallel()
	r := behind(t, kubeapiserver.Server(t, kubeapiserver.FrontProxyFlags(t)...))
	program := plugin(t)
	r.reached(program)
	r.followed(program)
	r.forwarded(program)
}
