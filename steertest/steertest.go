// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package steertest gives every test a Kubernetes control plane of its own.
//
//	func TestScales(t *testing.T) {
//		t.Parallel()
//		env := steertest.New(t, steertest.Options{
//			CRDs:   []string{"config/crd/bases"},
//			Scheme: scheme,
//			Setup:  setup, // the operator under test
//		})
//		env.Apply("testdata/crontab.yaml")
//		ct := steertest.Wait(env, "default/my-cron", func(ct *v1.CronTab) bool {
//			return len(ct.Status.Active) == 1
//		})
//		...
//	}
//
// The control plane lives in memory and in the process, is reached without
// sockets, starts in milliseconds and ends with the test; a thousand of them
// run side by side. It is the real one, with validation, defaulting, server-side
// apply, garbage collection and namespace deletion.
package steertest

import (
	"context"
	"encoding/json"
	"log/slog"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/steer-dev/steer/cache"
	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/client/manifest"
	"github.com/steer-dev/steer/controlplane"
	"github.com/steer-dev/steer/manager"
)

// Options of [New]. The zero value is a bare control plane.
type Options struct {
	// Scheme of the Go types that the test and the operator use.
	Scheme *runtime.Scheme
	// CRDs are files or folders with manifests to apply first, relative to the
	// package of the test. A path that does not exist fails the test.
	CRDs []string
	// Objects to create after them, status included.
	Objects []client.Object
	// Setup adds the controllers of the operator under test, which runs until
	// the test ends; nil runs none.
	Setup func(ctx context.Context, m *manager.Manager) error
	// Plane adjusts the control plane.
	Plane controlplane.Options
	// Timeout of every wait. Default 30 s.
	Timeout time.Duration
}

// Env is a control plane with what a test needs around it. Its methods fail the
// test instead of returning errors.
type Env struct {
	testing.TB
	// Plane is the control plane.
	Plane *controlplane.Plane
	// Config reaches it without sockets, as administrator.
	Config *rest.Config
	// Client is live: its reads are requests.
	Client client.Client
	// Manager runs the operator under test; nil without Options.Setup.
	Manager *manager.Manager

	ctx     context.Context // the life of the test, for methods without one
	timeout time.Duration
}

// New starts a control plane and, if asked, an operator. Both end with the test.
func New(t testing.TB, o Options) *Env {
	t.Helper()
	if o.Timeout == 0 {
		o.Timeout = 30 * time.Second
	}
	if o.Scheme == nil {
		o.Scheme = runtime.NewScheme()
	}
	plane, err := controlplane.New(o.Plane)
	if err != nil {
		t.Fatalf("steertest: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(func() {
		cancel()
		if err := plane.Stop(context.Background()); err != nil {
			t.Errorf("steertest: stop the control plane: %v", err)
		}
	})
	if err := plane.Start(ctx); err != nil {
		t.Fatalf("steertest: %v", err)
	}
	env := &Env{TB: t, Plane: plane, Config: plane.RESTConfig(), ctx: ctx, timeout: o.Timeout}
	live, err := client.New(env.Config, client.Options{Scheme: o.Scheme, FieldOwner: "steertest"})
	if err != nil {
		t.Fatalf("steertest: %v", err)
	}
	env.Client = live
	env.Apply(o.CRDs...)
	for _, obj := range o.Objects {
		env.Create(obj)
	}
	if o.Setup != nil {
		env.run(o)
	}
	return env
}

// Context lasts until the test's cleanup.
func (e *Env) Context() context.Context { return e.ctx }

// run starts the operator.
func (e *Env) run(o Options) {
	e.Helper()
	m, err := manager.New(e.Config, manager.Options{
		Name:   "steertest",
		Scheme: o.Scheme,
		Cache:  cache.Options{Undeclared: cache.UndeclaredError, DetectMutation: true},
		Log:    slog.New(slog.NewTextHandler(testWriter{e.TB}, &slog.HandlerOptions{Level: slog.LevelInfo})),
	})
	if err != nil {
		e.Fatalf("steertest: %v", err)
	}
	e.Manager = m
	if err := o.Setup(e.ctx, m); err != nil {
		e.Fatalf("steertest: set up the operator: %v", err)
	}
	ctx, stop := context.WithCancel(e.ctx)
	ended := make(chan error, 1)
	go func() { ended <- m.Start(ctx) }()
	e.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			e.Errorf("steertest: the operator ended: %v", err)
		}
		if e.Failed() {
			e.reconciles()
		}
	})
}

// reconciles logs what the operator did, for a test that failed.
func (e *Env) reconciles() {
	const most = 20
	var last []string
	for r := range e.Manager.Recorder().Records() {
		last = append(last, r.String())
	}
	if len(last) > most {
		e.Logf("the last %d of %d reconciles:", most, len(last))
		last = last[len(last)-most:]
	} else {
		e.Logf("all %d reconciles:", len(last))
	}
	for _, line := range last {
		e.Log(line)
	}
}

// Apply applies the objects of files and folders; those that name no namespace
// go to "default". Paths are relative to the package of the test.
func (e *Env) Apply(paths ...string) {
	e.Helper()
	objects, err := manifest.Read(paths...)
	if err == nil {
		err = manifest.Apply(e.ctx, e.Client, "", objects)
	}
	if err != nil {
		e.Fatalf("steertest: %v", err)
	}
}

// Create creates an object as it is given, status included.
func (e *Env) Create(obj client.Object) {
	e.Helper()
	content, err := json.Marshal(obj)
	if err != nil {
		e.Fatalf("steertest: encode %T %s: %v", obj, obj.GetName(), err)
	}
	if err := e.Client.Create(e.ctx, obj); err != nil {
		e.Fatalf("steertest: create %T %s: %v", obj, obj.GetName(), err)
	}
	var given struct {
		Status json.RawMessage `json:"status,omitempty"`
	}
	if err := json.Unmarshal(content, &given); err != nil {
		e.Fatalf("steertest: read the status of %T %s: %v", obj, obj.GetName(), err)
	}
	if len(given.Status) == 0 || string(given.Status) == "{}" {
		return
	}
	// A patch does not mind that an operator may have changed the object by now.
	status, err := json.Marshal(given)
	if err == nil {
		err = e.Client.Status().Patch(e.ctx, obj, client.RawPatch(types.MergePatchType, status))
	}
	if err != nil {
		e.Fatalf("steertest: set the status of %T %s: %v", obj, obj.GetName(), err)
	}
}

// testWriter logs lines to a test, and drops what comes after its end.
type testWriter struct{ t testing.TB }

func (w testWriter) Write(line []byte) (int, error) {
	if w.t.Context().Err() == nil {
		w.t.Log(string(line[:max(len(line)-1, 0)]))
	}
	return len(line), nil
}
