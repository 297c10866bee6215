// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
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

// TestPlaneStepsOneControllerAlone shows what the others would have done too.
func TestPlaneStepsOneControllerAlone(t *testing.T) {
	t.Parallel()
	plane, err := controlplane.New(controlplane.Options{ManualControllers: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = plane.Stop(context.Background()) })
	if err := plane.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := plane.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	a := apiOf(t, plane.RESTConfig())
	const maps = "/api/v1/namespaces/default/configmaps"
	owner := a.must("POST", maps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: owner}}")
	a.must("POST", maps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: owned, ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: owner, uid: "+string(owner.GetUID())+"}]}}")
	a.must("DELETE", maps+"/owner", "")
	a.must("POST", "/api/v1/namespaces", "{apiVersion: v1, kind: Namespace, metadata: {name: one}}")
	a.must("DELETE", "/api/v1/namespaces/one", "")
	there := func(path string) bool {
		code, _ := a.do("GET", path, "")
		return code == http.StatusOK
	}
	const garbage, namespaces = "garbage-collector-controller", "namespace-controller"
	if names := plane.Controllers(); !slices.Contains(names, garbage) || !slices.Contains(names, namespaces) {
		t.Fatalf("the controllers are %q", names)
	}
	step := func(name string) {
		t.Helper()
		for n := 1; n > 0; {
			if n, err = plane.StepController(t.Context(), name); err != nil {
				t.Fatal(err)
			}
		}
	}
	step(garbage)
	if there(maps+"/owned") || !there("/api/v1/namespaces/one") {
		t.Error("another controller than the garbage collector has acted, or none")
	}
	step(namespaces)
	if there("/api/v1/namespaces/one") {
		t.Error("the namespace controller has not acted")
	}
	if _, err := plane.StepController(t.Context(), "garbage"); err == nil || !strings.Contains(err.Error(), garbage) {
		t.Errorf("a controller that is not there: %v", err)
	}
}
