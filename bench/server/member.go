// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// member is an etcd of one member, which makes every write durable.
type member struct {
	URL  string
	pid  int
	stop func() error
}

// startMember starts an etcd with an empty directory and returns when it answers.
func startMember(ctx context.Context, binary string) (*member, error) {
	dir, err := os.MkdirTemp("", "steer-bench-etcd-")
	if err != nil {
		return nil, err
	}
	var urls [2]string
	for i := range urls {
		if urls[i], err = freeURL(ctx); err != nil {
			return nil, errors.Join(err, os.RemoveAll(dir))
		}
	}
	command := exec.Command(binary, "--data-dir="+filepath.Join(dir, "data"), "--log-level=error",
		"--listen-client-urls="+urls[0], "--advertise-client-urls="+urls[0],
		"--listen-peer-urls="+urls[1], "--initial-advertise-peer-urls="+urls[1], "--initial-cluster=default="+urls[1],
		"--quota-backend-bytes=8589934592", "--max-request-bytes=33554432")
	if err := command.Start(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	m := &member{URL: urls[0], pid: command.Process.Pid}
	m.stop = func() error { return errors.Join(stopProcess(command), os.RemoveAll(dir)) }
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		if _, err = m.metric(ctx, "etcd_server_has_leader"); err == nil {
			return m, nil
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("etcd is not ready: %w", err), m.stop())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// freeURL returns a URL of this machine on which nothing listens.
func freeURL(ctx context.Context) (string, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return "http://" + l.Addr().String(), l.Close()
}

// metric returns a metric of etcd that has no labels.
func (m *member) metric(ctx context.Context, name string) (float64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, m.URL+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		if value, ok := strings.CutPrefix(lines.Text(), name+" "); ok {
			return strconv.ParseFloat(value, 64)
		}
	}
	return 0, fmt.Errorf("etcd has no metric %s", name)
}
