// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

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
)

// Main is the main of a program that runs kube-apiserver and etcd until it is
// interrupted or its standard input ends. Once the server runs, ready is called; what
// it returns is the first line of output, as JSON. Its ctx ends when the program does.
// Arguments after the flags are flags of kube-apiserver.
func Main(name string, ready func(ctx context.Context, server *Server) (map[string]any, error)) {
	binaries := flag.String("binaries", "", "directory with etcd and kube-apiserver (default $STEER_UPSTREAM_BIN)")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := serve(ctx, Options{Binaries: *binaries, ServerFlags: flag.Args()}, ready); err != nil {
		fmt.Fprintln(os.Stderr, name+":", err)
		os.Exit(1)
	}
}

func serve(ctx context.Context, o Options, ready func(context.Context, *Server) (map[string]any, error)) (err error) {
	server, err := Start(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	about, err := ready(ctx, server)
	if err != nil {
		return err
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
