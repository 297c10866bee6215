// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Command play plays pages in the working folder, one after the other in one session:
//
//	play docs/guide/1-first-operator.md docs/guide/2-level-triggered.md
package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/steer-dev/steer/internal/walkthrough"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, pages []string) error {
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	_, err = exec.LookPath("kubectl")
	if err != nil {
		fmt.Println("kubectl is not on PATH: commands in a terminal of their own, and those that ask a server, are left out")
	}
	return walkthrough.Play(ctx, walkthrough.Options{Dir: dir, Out: os.Stdout, WithoutServer: err != nil}, pages...)
}
