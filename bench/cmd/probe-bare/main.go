// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Command probe-bare is the bare server that control planes are measured beside; see
// package server. Its argument is how many bytes a record has.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strconv"

	"github.com/steer-dev/steer/bench/server"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "probe-bare:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("usage: probe-bare BYTES")
	}
	record, err := strconv.Atoi(args[0])
	if err != nil || record < 1 {
		return fmt.Errorf("%q is no number of bytes", args[0])
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	return server.ServeBare(ctx, os.Stdout, record)
}
