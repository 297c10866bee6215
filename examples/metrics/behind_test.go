// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"net/http"
	"os/exec"
	"regexp"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/steer-dev/steer/apiserver/extension"
	"github.com/steer-dev/steer/controlplane"
	"github.com/steer-dev/steer/internal/kubeapiserver"
)

// TestMetricsBehindKubeAPIServer runs `kubectl top`, if the machine has kubectl.
func TestMetricsBehindKubeAPIServer(t *testing.T) {
	t.Parallel()
	top(t, kubeapiserver.Server(t, kubeapiserver.FrontProxyFlags(t)...))
}

// TestMetricsBehindSteer runs it against a control plane of Steer.
func TestMetricsBehindSteer(t *testing.T) {
	t.Parallel()
	plane, err := controlplane.New(controlplane.Options{Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	if err := plane.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := plane.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	kubeconfig, err := plane.Kubeconfig()
	if err != nil {
		t.Fatal(err)
	}
	cluster, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	top(t, cluster)
}

// top starts the server behind a cluster, and asks the cluster with kubectl.
func top(t *testing.T, cluster *rest.Config) {
	t.Helper()
	kubectl, err := exec.LookPath("kubectl")
	if err != nil {
		t.Skip("kubectl is not installed")
	}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s, file := server(), kubeapiserver.Kubeconfig(t, cluster)
	s.Configure = func(o *extension.Options) { o.Listener, o.Log = listener, slog.New(slog.DiscardHandler) }
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- extension.Run(ctx, []string{"--kubeconfig", file, "--external-name", "localhost", "--nodes=1"}, s)
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	web, err := rest.HTTPClientFor(cluster)
	if err != nil {
		t.Fatal(err)
	}
	send := func(method, path, body string) int {
		q, err := http.NewRequestWithContext(t.Context(), method, cluster.Host+path, bytes.NewReader([]byte(body)))
		if err != nil {
			t.Fatal(err)
		}
		q.Header.Set("Content-Type", "application/json")
		answer, err := web.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close() // the code says it all
		return answer.StatusCode
	}
	const node = `{"apiVersion":"v1","kind":"Node","metadata":{"name":"node-0"},"status":{"allocatable":{"cpu":"4","memory":"4Gi"}}}`
	if code := send(http.MethodPost, "/api/v1/nodes", node); code != http.StatusCreated {
		t.Fatalf("the node: %d", code)
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(time.Minute); send(http.MethodGet, "/apis/metrics.k8s.io/v1beta1/nodes", "") != http.StatusOK; {
		select {
		case <-end:
			t.Fatal("metrics are not served")
		case <-tick.C:
		}
	}
	for what, want := range map[string]string{
		"pods":  `(?s)^NAME\s+CPU\(cores\)\s+MEMORY\(bytes\)\s+web-0-0\s+\d+m\s+\d+Mi\s+web-0-1\s`,
		"nodes": `(?s)^NAME\s+CPU\(cores\)\s+CPU\(%\)\s+MEMORY\(bytes\)\s+MEMORY\(%\)\s+node-0\s+\d+m\s+\d+%\s+\d+Mi\s+\d+%`,
	} {
		out, err := exec.CommandContext(t.Context(), kubectl, "--kubeconfig", file, "--cache-dir", t.TempDir(), "top", what).CombinedOutput()
		if err != nil || !regexp.MustCompile(want).Match(out) {
			t.Errorf("kubectl top %s: %v\n%s", what, err, out)
		}
	}
}
