// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/steer-dev/steer/controlplane"
	"github.com/steer-dev/steer/controlplane/workloads"
	"github.com/steer-dev/steer/internal/lifecycletest"
	"github.com/steer-dev/steer/storage"
)

func TestPlaneKeepsTheLifecycle(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]controlplane.Options{"InProcess": {}, "Listening": {Listen: "127.0.0.1:0"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lifecycletest.RunStarted(t, func(t *testing.T) lifecycletest.Started {
				plane, err := controlplane.New(o)
				if err != nil {
					t.Error(err)
				}
				return lifecycletest.Started{
					Start: plane.Start, Stop: func() error { return plane.Stop(context.Background()) },
					ErrStopped: controlplane.ErrStopped, Outlives: true,
				}
			})
		})
	}
}

// hangingStore does not answer writes of EndpointSlices, as the start of a plane that
// listens sends one, before their context ends.
type hangingStore struct {
	storage.Store
	reached chan struct{}
}

func (s *hangingStore) Commit(ctx context.Context, w storage.Write) (*storage.Record, error) {
	if w.Key.Bucket != "discovery.k8s.io/endpointslices" {
		return s.Store.Commit(ctx, w)
	}
	s.reached <- struct{}{}
	<-ctx.Done()
	return nil, ctx.Err()
}

// startHanging starts a plane whose store hangs, and returns what Start returns.
func startHanging(ctx context.Context, t *testing.T) (*controlplane.Plane, chan error) {
	t.Helper()
	store := &hangingStore{Store: storage.NewMemory(storage.MemoryOptions{}), reached: make(chan struct{}, 10)}
	plane, err := controlplane.New(controlplane.Options{Store: store, Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := plane.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	ended := make(chan error, 1)
	go func() { ended <- plane.Start(ctx) }()
	<-store.reached
	return plane, ended
}

func TestPlaneStartThatHangsHoldsUpNothingElse(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	plane, ended := startHanging(ctx, t)
	idle := make(chan error, 1)
	go func() {
		_, err := plane.Idle(t.Context())
		idle <- err
	}()
	select {
	case err := <-idle:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("Idle waits for Start")
	}
	short, stop := context.WithCancel(t.Context())
	stop()
	if err := plane.Start(short); !errors.Is(err, context.Canceled) {
		t.Errorf("a second Start whose context has ended: %v", err)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("Start: %v", err)
	}
}

func TestPlaneStopEndsAStartThatHangs(t *testing.T) {
	t.Parallel()
	plane, ended := startHanging(context.Background(), t)
	stopped := make(chan error, 1)
	go func() { stopped <- plane.Stop(t.Context()) }()
	select {
	case err := <-stopped:
		if err != nil {
			t.Error(err)
		}
		if err := <-ended; !errors.Is(err, controlplane.ErrStopped) {
			t.Errorf("Start: %v", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("Stop waits for Start")
	}
	if _, err := plane.Step(t.Context()); !errors.Is(err, controlplane.ErrStopped) {
		t.Errorf("Step: %v", err)
	}
}

func TestPlaneStopEndsAStepThatHangs(t *testing.T) {
	t.Parallel()
	store := &hangingStore{Store: storage.NewMemory(storage.MemoryOptions{}), reached: make(chan struct{}, 10)}
	plane, err := controlplane.New(controlplane.Options{Store: store, ManualControllers: true, Workloads: &workloads.Options{}})
	if err != nil {
		t.Fatal(err)
	}
	a := apiOf(t, plane.RESTConfig())
	a.must("POST", "/api/v1/namespaces/default/services", "{apiVersion: v1, kind: Service, metadata: {name: s}, spec: {selector: {a: b}, ports: [{port: 80}]}}")
	ended := make(chan error, 1)
	go func() {
		_, err := plane.Settle(context.Background())
		ended <- err
	}()
	<-store.reached
	stopped := make(chan error, 1)
	go func() { stopped <- plane.Stop(context.Background()) }()
	select {
	case err := <-stopped:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("Stop waits for Settle")
	}
	if err := <-ended; !errors.Is(err, controlplane.ErrStopped) {
		t.Errorf("Settle: %v", err)
	}
}
