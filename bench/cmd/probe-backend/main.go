// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Command probe-backend is the API server that control planes pass requests on to while
// that is measured; see package server.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/steer-dev/steer/bench/server"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := server.ServeBackend(ctx, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "probe-backend:", err)
		os.Exit(1)
	}
}
