// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Command probe-controller-runtime measures controller-runtime.
package main

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
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
	mgr, err := s.manager(config, ctrl.Options{}, seen)
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// Operate implements probe.Side.
func (s *side) Operate(config *rest.Config, seen func(string)) error {
	return s.Run(ctrl.SetupSignalHandler(), config, seen)
}

// Contend implements probe.Side.
func (s *side) Contend(ctx context.Context, config *rest.Config, warm func(), seen func(string)) error {
	mgr, err := s.manager(config, ctrl.Options{
		LeaderElection: true, LeaderElectionID: "probe", LeaderElectionNamespace: "default", LeaderElectionReleaseOnCancel: true,
	}, seen)
	if err != nil {
		return err
	}
	go func() {
		if mgr.GetCache().WaitForCacheSync(ctx) {
			warm()
		}
	}()
	return mgr.Start(ctx)
}

func (s *side) manager(config *rest.Config, o ctrl.Options, seen func(string)) (ctrl.Manager, error) {
	o.Scheme, o.Metrics = runtime.NewScheme(), metricsserver.Options{BindAddress: "0"}
	if err := item.AddToScheme(o.Scheme); err != nil {
		return nil, err
	}
	several := true // in one process
	o.Controller.SkipNameValidation = &several
	mgr, err := ctrl.NewManager(config, o)
	if err != nil {
		return nil, err
	}
	s.reader = mgr.GetClient()
	return mgr, ctrl.NewControllerManagedBy(mgr).For(&item.Item{}).Complete(&reconciler{s.reader, seen})
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

func (s *side) Change(ctx context.Context, namespace, name string, replicas int32) error {
	i := item.Item{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	return s.reader.Patch(ctx, &i, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas)))
}

func (s *side) Replicas(ctx context.Context, namespace, name string) (int32, error) {
	var i item.Item
	err := s.reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &i)
	return i.Spec.Replicas, err
}
