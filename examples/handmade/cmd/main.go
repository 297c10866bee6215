// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Command cmd is the controller that is written by hand. It prints all that it does:
//
//	go run ./cmd/steer dev --crds examples/handmade/config/crd/bases -- go run ./examples/handmade/cmd
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/examples/handmade"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "handmade:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	var o handmade.Options
	flags := flag.NewFlagSet("handmade", flag.ContinueOnError)
	kubeconfig := flags.String("kubeconfig", "", "`file` that names the cluster; default $KUBECONFIG, the cluster this runs in, ~/.kube/config")
	flags.IntVar(&o.Workers, "workers", 2, "Greetings to reconcile at once")
	flags.DurationVar(&o.Resync, "resync", time.Minute, "time between two passes over the cache; 0 for none")
	flags.DurationVar(&o.Relist, "relist", 3*time.Minute, "time after which the watch is made to expire, to show what follows; 0 for never")
	if err := flags.Parse(args); err != nil {
		return err
	}
	o.Print = func(format string, args ...any) {
		fmt.Printf(time.Now().Format("15:04:05.000 ")+format+"\n", args...)
	}
	cfg, err := client.LoadConfig(*kubeconfig)
	if err != nil {
		return err
	}
	c, err := handmade.New(cfg, o)
	if err != nil {
		return err
	}
	fmt.Println("Try: kubectl apply -f examples/handmade/config/samples; kubectl get greetings")
	return c.Run(ctx)
}
