// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Command probe-steer measures Steer's runtime.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/steer-dev/steer"
	"github.com/steer-dev/steer/bench/runtime/item"
	"github.com/steer-dev/steer/bench/runtime/probe"
	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/controller"
	"github.com/steer-dev/steer/manager"
)

func main() { probe.Main(&side{}, steps{}) }

type side struct{ reader client.Client }

// Run implements probe.Side.
func (s *side) Run(ctx context.Context, config *rest.Config, seen func(string)) error {
	m, err := s.manager(config, manager.Election{}, seen)
	if err != nil {
		return err
	}
	return m.Start(ctx)
}

// Operate implements probe.Side.
func (s *side) Operate(config *rest.Config, seen func(string)) error {
	os.Args = os.Args[:1] // the flags were the probe's
	steer.Main(steer.Operator{
		Name: "probe", Scheme: steer.Scheme{item.AddToScheme}, Config: config,
		Configure: func(o *manager.Options) {
			o.HealthAddress = "" // controller-runtime serves none unless told
			o.Log = slog.New(slog.DiscardHandler)
		},
		Setup: func(_ context.Context, m *manager.Manager) error { return controller.Add(m, reconciler(seen)) },
	})
	return nil
}

// Contend implements probe.Side.
func (s *side) Contend(ctx context.Context, config *rest.Config, warm func(), seen func(string)) error {
	m, err := s.manager(config, manager.Election{Enabled: true, Namespace: "default"}, seen)
	if err != nil {
		return err
	}
	// What needs no leader starts after the caches have synced.
	err = m.Add(manager.OnEveryReplica(manager.RunnableFunc(func(ctx context.Context) error {
		warm()
		<-ctx.Done()
		return nil
	})))
	if err != nil {
		return err
	}
	return m.Start(ctx)
}

func (s *side) manager(config *rest.Config, election manager.Election, seen func(string)) (*manager.Manager, error) {
	scheme, err := client.NewScheme(item.AddToScheme)
	if err != nil {
		return nil, err
	}
	m, err := manager.New(config, manager.Options{Name: "probe", Scheme: scheme, Election: election, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	s.reader = m.Client()
	return m, controller.Add(m, reconciler(seen))
}

// reconciler gets its object as a copy, which is what it reads.
type reconciler func(string)

// Reconcile implements controller.Reconciler.
func (r reconciler) Reconcile(_ context.Context, i *item.Item) (controller.Result, error) {
	r(i.Name)
	return controller.Done(), nil
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
