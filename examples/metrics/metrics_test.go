// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/apiserver"
	"github.com/steer-dev/steer/apiserver/apiservertest"
	"github.com/steer-dev/steer/apiserver/custom"
	"github.com/steer-dev/steer/apiserver/extension"
	"github.com/steer-dev/steer/storage"
)

func TestMetricsConform(t *testing.T) {
	t.Parallel()
	f := &fleet{nodes: 2, pods: 1, now: time.Now}
	for plural, c := range map[string]struct {
		kind extension.Kind
		have []string
	}{
		"nodes": {custom.Kind[*NodeMetrics]{Definition: nodeDefinition, Backend: nodeMetrics{f}}, []string{"node-0", "node-1"}},
		"pods":  {custom.Kind[*PodMetrics]{Definition: podDefinition, Backend: podMetrics{f}}, []string{"web-0-0", "web-1-0"}},
	} {
		t.Run(plural, func(t *testing.T) {
			t.Parallel()
			apiservertest.Run(t, func(t *testing.T) apiservertest.Subject {
				server, err := apiserver.New(apiserver.Options{Store: storage.NewMemory(storage.MemoryOptions{})})
				if err != nil {
					t.Fatal(err)
				}
				r, err := c.kind.Resource()
				if err != nil {
					t.Fatal(err)
				}
				if err := server.Install(r); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = server.Stop(context.Background()) })
				return apiservertest.Subject{
					Server: server, Have: c.have,
					Resource: schema.GroupVersionResource{Group: "metrics.k8s.io", Version: "v1beta1", Resource: plural},
				}
			})
		})
	}
}

func TestUsageOfANodeIsTheSumOfItsPods(t *testing.T) {
	t.Parallel()
	at := time.Now()
	f := &fleet{nodes: 1, pods: 2, now: func() time.Time { return at }}
	sum := int64(0)
	for p := range f.pods {
		sum += f.pod(0, p).Containers[0].Usage.Cpu().MilliValue()
	}
	if got := f.node(0).Usage.Cpu().MilliValue(); got != sum || sum == 0 {
		t.Errorf("the node uses %d millicores, its Pods %d", got, sum)
	}
}

// TestKubectlTopShowsTheFleet runs kubectl, if the machine has it, against the program as
// it stands alone.
func TestKubectlTopShowsTheFleet(t *testing.T) {
	t.Parallel()
	kubectl, err := exec.LookPath("kubectl")
	if err != nil {
		t.Skip("kubectl is not installed")
	}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "config")
	s := server()
	s.Configure = func(o *extension.Options) {
		o.Listener, o.Log = listener, slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- extension.Run(ctx, []string{"--standalone", "--write-kubeconfig", file, "--nodes=1"}, s)
	}()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(time.Minute); ; {
		if _, err := os.Stat(file); err == nil {
			break
		}
		select {
		case <-end:
			t.Fatal("the server has written no kubeconfig")
		case <-tick.C:
		}
	}
	cmd := exec.CommandContext(t.Context(), kubectl, "--kubeconfig", file, "--cache-dir", t.TempDir(), "top", "pods")
	out, err := cmd.CombinedOutput()
	if want := regexp.MustCompile(`(?s)^NAME\s+CPU\(cores\)\s+MEMORY\(bytes\)\s+web-0-0\s+\d+m\s+\d+Mi\s+web-0-1\s`); err != nil || !want.Match(out) {
		t.Errorf("kubectl top pods: %v\n%s", err, out)
	}
}
