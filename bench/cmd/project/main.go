// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Command project begins a project with Steer, kubebuilder and operator-sdk on this
// machine, and prints the commands, their times and what the author owns then; and what a
// suite takes before and after steer adopt.
//
//	go run ./cmd/project [-cold] [-upstream ../oracle/bin] [-v]
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/steer-dev/steer/bench/project"
)

func main() {
	o := project.Options{Log: io.Discard}
	var verbose bool
	flag.StringVar(&o.Root, "root", "..", "directory of the main module")
	flag.StringVar(&o.Upstream, "upstream", os.Getenv("STEER_UPSTREAM_BIN"), "directory with kube-apiserver and etcd of module oracle, for the suite before steer adopt")
	flag.StringVar(&o.Kubebuilder, "kubebuilder", "v4.10.1", "version of kubebuilder; empty leaves it out")
	flag.StringVar(&o.OperatorSDK, "operator-sdk", "v1.42.2", "version of operator-sdk; empty leaves it out")
	flag.BoolVar(&o.Cold, "cold", false, "begin every project with empty module and build caches")
	flag.BoolVar(&verbose, "v", false, "print the output of the commands on standard error")
	flag.Parse()
	if verbose {
		o.Log = os.Stderr
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := project.Run(ctx, o, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "project:", err)
		os.Exit(1)
	}
}
