// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Command peer runs the reference control plane until it is interrupted or its
// standard input ends. Its first line of output is JSON: url, token, ca, pids
// and the seconds that the start took.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/steer-dev/steer/oracle/peer"
)

func main() {
	binaries := flag.String("binaries", "", "directory with etcd and kube-apiserver (default $STEER_PEER_BIN)")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *binaries); err != nil {
		fmt.Fprintln(os.Stderr, "peer:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, binaries string) (err error) {
	server, err := peer.Start(ctx, peer.Options{Binaries: binaries})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	about := map[string]any{
		"url": server.URL, "token": server.Token, "ca": string(server.CA),
		"pids": server.PIDs(), "seconds": server.Started.Seconds(),
	}
	if err := json.NewEncoder(os.Stdout).Encode(about); err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.Copy(io.Discard, os.Stdin) // ends with the parent, or with Ctrl-D
	}()
	select {
	case <-ctx.Done():
	case <-ended:
	}
	return nil
}
