// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// Kubernetes is kube-apiserver with etcd, as module oracle builds and runs
// them: envtest's flags, fsync on.
type Kubernetes struct {
	// Binaries is the directory with the program upstream, kube-apiserver and etcd.
	Binaries string
}

// Built reports whether kube-apiserver can be started.
func (k Kubernetes) Built() bool {
	for _, name := range []string{"upstream", "kube-apiserver", "etcd"} {
		if _, err := os.Stat(filepath.Join(k.Binaries, name)); err != nil {
			return false
		}
	}
	return k.Binaries != ""
}

// Start implements [Subject].
func (k Kubernetes) Start(ctx context.Context) (*Instance, error) {
	command := exec.Command(filepath.Join(k.Binaries, "upstream"), "-binaries", k.Binaries)
	command.Stderr = os.Stderr
	input, err := command.StdinPipe() // the program ends when it is closed, also when this process dies
	if err != nil {
		return nil, err
	}
	output, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, err
	}
	stop := func() error { return errors.Join(input.Close(), command.Wait()) }
	line, err := bufio.NewReader(output).ReadBytes('\n')
	if err != nil {
		return nil, errors.Join(fmt.Errorf("kube-apiserver did not start: %w", err), stop())
	}
	var about struct {
		URL     string  `json:"url"`
		Token   string  `json:"token"`
		CA      string  `json:"ca"`
		Etcd    string  `json:"etcd"`
		PIDs    []int   `json:"pids"`
		Seconds float64 `json:"seconds"`
	}
	if err := json.Unmarshal(line, &about); err != nil {
		return nil, errors.Join(err, stop())
	}
	secure, err := trust([]byte(about.CA))
	if err != nil {
		return nil, errors.Join(err, stop())
	}
	return &Instance{
		URL: about.URL, TLS: secure, Token: about.Token, Etcd: about.Etcd, PIDs: about.PIDs,
		Ready: time.Duration(about.Seconds * float64(time.Second)), stop: stop,
	}, ctx.Err()
}
