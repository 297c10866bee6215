// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Command probe-peer measures controller-runtime.
package main

import (
	"context"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/steer-dev/steer/bench/runtime/item"
	"github.com/steer-dev/steer/bench/runtime/probe"
)

func main() {
	ctrl.SetLogger(logr.Discard())
	probe.Main(&side{}, steps{})
}

type side struct{ reader client.Client }

// Run implements probe.Side.
func (s *side) Run(ctx context.Context, config *rest.Config, seen func(string)) error {
	scheme := runtime.NewScheme()
	if err := item.AddToScheme(scheme); err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		return err
	}
	s.reader = mgr.GetClient()
	if err := ctrl.NewControllerManagedBy(mgr).For(&item.Item{}).Complete(&reconciler{s.reader, seen}); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// reconciler reads its object from the cache, as reconcilers do.
type reconciler struct {
	client.Client
	seen func(string)
}

// Reconcile implements reconcile.Reconciler.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var i item.Item
	if err := r.Get(ctx, req.NamespacedName, &i); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	r.seen(i.Name)
	return ctrl.Result{}, nil
}

// Get implements probe.Side.
func (s *side) Get(ctx context.Context, namespace, name string) error {
	var i item.Item
	return s.reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &i)
}

// List implements probe.Side.
func (s *side) List(ctx context.Context) (int, error) {
	var list item.ItemList
	err := s.reader.List(ctx, &list, client.InNamespace("default"))
	return len(list.Items), err
}
