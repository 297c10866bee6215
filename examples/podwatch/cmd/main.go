// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Command cmd prints what happens to the Pods of a namespace:
//
//	go run ./examples/podwatch/cmd -namespace default -selector spec.nodeName=node-1
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/examples/podwatch"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		slog.Error("podwatch ended", "error", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("podwatch", flag.ContinueOnError)
	kubeconfig := flags.String("kubeconfig", "", "`file` that names the cluster; default $KUBECONFIG, the cluster this runs in, ~/.kube/config")
	namespace := flags.String("namespace", "default", "namespace to watch")
	selector := flags.String("selector", "", "field selector of the Pods, such as spec.nodeName=node-1")
	workers := flags.Int("workers", 1, "Pods to handle at once")
	if err := flags.Parse(args); err != nil {
		return err
	}
	chosen, err := fields.ParseSelector(*selector)
	if err != nil {
		return fmt.Errorf("-selector: %w", err)
	}
	cfg, err := client.LoadConfig(*kubeconfig)
	if err != nil {
		return err
	}
	w, err := podwatch.New(cfg, podwatch.Options{Namespace: *namespace, Fields: chosen, Workers: *workers, Sync: report})
	if err != nil {
		return err
	}
	fmt.Println("Try: kubectl run web --image=nginx; kubectl delete pod web")
	return w.Run(ctx)
}

func report(_ context.Context, key client.ObjectKey, pod *corev1.Pod) error {
	if pod == nil {
		fmt.Printf("Pod %s does not exist any more\n", key)
		return nil
	}
	fmt.Printf("Sync for Pod %s: %s\n", key, pod.Status.Phase)
	return nil
}
