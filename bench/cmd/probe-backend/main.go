// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Command probe-backend is the API server that control planes pass requests on to while
// that is measured, or, with the address of one, a bare proxy for it; see package server.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/steer-dev/steer/bench/server"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	serve := server.ServeBackend
	if len(os.Args) > 1 {
		serve = func(ctx context.Context, out io.Writer) error { return server.ServeBareProxy(ctx, out, os.Args[1]) }
	}
	if err := serve(ctx, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "probe-backend:", err)
		os.Exit(1)
	}
}
