// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Steer is `steer up`: TLS, a real port, and durable unless it is to be without
// disk.
type Steer struct {
	// Binary is the built command.
	Binary string
	// InMemory leaves the disk out, for what is measured elsewhere than in the
	// server.
	InMemory bool
	// Etcd is the URL of an etcd that keeps the objects; the binary is then steer-etcd.
	Etcd string
	// Bare becomes that of the instance.
	Bare string
	// Dir keeps data, keys and log, so that a server can be started again. Empty: a
	// temporary directory, which goes with the instance.
	Dir string
	// Flags are given to steer up beside those that follow from the fields.
	Flags []string
	// Heap has the instance know how much of its heap is in use.
	Heap bool
	// Ready is how long the start may take. 0: 30 seconds.
	Ready time.Duration
}

// Start implements [Subject].
func (s Steer) Start(ctx context.Context) (_ *Instance, err error) {
	dir, remove := s.Dir, func() error { return nil }
	if dir == "" {
		if dir, err = os.MkdirTemp("", "steer-bench-"); err != nil {
			return nil, err
		}
		remove = func() error { return os.RemoveAll(dir) }
	}
	kubeconfig := filepath.Join(dir, "kubeconfig")
	if err := os.RemoveAll(kubeconfig); err != nil { // that of an earlier start names another port
		return nil, err
	}
	begin := time.Now()
	keep := "--data-dir=" + filepath.Join(dir, "data")
	if s.InMemory {
		keep = "--in-memory"
	}
	command := exec.Command(s.Binary, "up", keep, "--listen", "127.0.0.1:0", "--kubeconfig", kubeconfig)
	if s.Etcd != "" {
		command.Args = append(command.Args, "--etcd-servers", s.Etcd)
	}
	command.Args = append(command.Args, s.Flags...)
	if s.Heap {
		command.Env = append(os.Environ(), "GODEBUG=gctrace=1")
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	command.Stdout, command.Stderr = log, log
	if err := command.Start(); err != nil {
		return nil, errors.Join(err, remove())
	}
	stop := func() error { return errors.Join(stopProcess(command), remove()) }
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(s.Ready, 30*time.Second))
	defer cancel()
	for {
		instance, err := s.reach(ctx, kubeconfig)
		if err == nil {
			instance.Kubeconfig, instance.Bare, instance.log = kubeconfig, s.Bare, log.Name()
			instance.PIDs, instance.Ready = []int{command.Process.Pid}, time.Since(begin)
			instance.stop, instance.kill = stop, command.Process.Kill
			return instance, nil
		}
		select {
		case <-ctx.Done():
			text, _ := os.ReadFile(log.Name()) // the log helps; without it the error stands alone
			return nil, errors.Join(fmt.Errorf("steer up is not ready: %w: %s", err, text), stop())
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// reach asks /readyz once, with what the kubeconfig says.
func (s Steer) reach(ctx context.Context, kubeconfig string) (*Instance, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	secure, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, err
	}
	if secure == nil {
		secure = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	instance := &Instance{URL: config.Host, TLS: secure, Token: config.BearerToken}
	client := instance.NewClient()
	defer client.Close()
	_, err = client.Do(ctx, http.MethodGet, "/readyz", "", nil)
	return instance, err
}
