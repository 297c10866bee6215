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
//		env.Apply("config/samples/crontab.yaml")
//		ct := steertest.Expect[*v1.CronTab](env, "default/my-cron", steertest.Ready)
//		...
//	}
//
// The control plane lives in memory and in the process, is reached without
// sockets, starts in milliseconds and ends with the test; a thousand of them
// run side by side, inside testing/synctest as well. It is the real one, with
// validation, defaulting, server-side apply, garbage collection and namespace
// deletion.
//
// The operator runs as it will in a cluster: under the role that was generated
// for it, with reads of kinds that it does not watch refused. Nothing sleeps:
// [Wait] and [Expect] watch, [Env.Settled] knows when there is nothing left to
// do. A reconcile that panics fails the test. A test that fails shows the last
// reconciles, and leaves a file that steer history, why and tree read: in the artifacts
// of go test -artifacts, or else in a temporary directory of the user.
package steertest

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/steer-dev/steer"
	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/client/interceptor"
	"github.com/steer-dev/steer/client/manifest"
	"github.com/steer-dev/steer/controlplane"
	"github.com/steer-dev/steer/controlplane/workloads"
	"github.com/steer-dev/steer/internal/driven"
	"github.com/steer-dev/steer/manager"
	"github.com/steer-dev/steer/steertest/internal/hope"
	"github.com/steer-dev/steer/steertest/internal/host"
	"github.com/steer-dev/steer/steertest/internal/mistakes"
	"github.com/steer-dev/steer/steertest/internal/output"
	"github.com/steer-dev/steer/steertest/internal/permissions"
	"github.com/steer-dev/steer/storage"
	"github.com/steer-dev/steer/trace"
)

// fieldOwner of what the test itself writes.
const fieldOwner = "steertest"

// Options of [New]. The zero value is a bare control plane.
type Options struct {
	// Scheme of the Go types that the test and the operator use. Default: that of
	// Operator.
	Scheme *runtime.Scheme
	// CRDs are files or folders with manifests to apply first. In a project, the ClusterRoles
	// for people who use these kinds are with them. A relative path is
	// looked for in the folder of the test and in its parents, up to the one with
	// go.mod. A path that does not exist fails the test.
	CRDs []string
	// Webhooks are files or folders with webhook configurations, such as config/webhook,
	// looked for like CRDs; objects of other kinds in them are passed over. They are
	// applied after Objects. Their Services, and those of conversions in CRDs, lead to the
	// operator under test: the control plane calls it with the bytes of the reviews,
	// without socket and certificate. While no operator runs, calls fail as they do in a
	// cluster.
	Webhooks []string
	// WebhooksOverTLS makes the control plane call the operator over a socket, with a
	// certificate of the operator's own authority (webhook.Authority).
	WebhooksOverTLS bool
	// Manifests are files or folders with what the operator ships beside its roles and
	// webhooks, such as policies; looked for like CRDs, and applied after them. Objects of kinds that no
	// CRD defines, such as those of a monitoring system, are left out, and logged. Default:
	// config/extras, if it is there.
	Manifests []string
	// Objects to create after them, in the state that they are given in; see
	// [Env.Create].
	Objects []client.Object
	// Operator under test, as its main gives it to steer.Main: with its flags, its
	// Configure and its Setup, which are called anew when the operator is started
	// again; see [Env.StartOperator]. It runs until the test ends. Its Config is
	// not used. Default: none runs.
	Operator steer.Operator
	// Args are the arguments of the operator, such as "--leader-elect"; the lease
	// is then in [Env.Namespace]. It serves no probes and no metrics unless an
	// argument says so.
	Args []string
	// Setup is short for an Operator that is nothing else.
	Setup func(ctx context.Context, m *manager.Manager) error
	// Role is a file or folder with the generated roles that the operator runs
	// under, looked for like CRDs. Requests that they do not allow are let through,
	// and the test fails at its end with the markers that are missing. Default:
	// config/rbac/role.yaml; where there is none the operator is an administrator,
	// and the test logs it. [Administrator]: it is one in any case, without the line.
	Role string
	// Mistakes lets the operator make mistakes that no retry mends: a panic, a
	// change of more than the status of the reconciled object, a cached read of a
	// kind without an informer or by a field without an index. They are logged and
	// retried, as in production. Default: a mistake fails the test at once, with
	// the line to add or the stack, and a wait fails at once for an error that no retry
	// mends: objects that the server finds invalid or forbids, three times in a row, and
	// terminal errors about the object that is waited for.
	Mistakes bool
	// Faults are failures of the API server that the operator meets. A fault that
	// never happens fails the test. Default: none.
	Faults []Fault
	// Intercept is put in front of the operator's client, for what Faults cannot
	// say; see interceptor.Each. Default: nothing.
	Intercept interceptor.Funcs
	// Workloads makes Deployments, Jobs and Pods behave as if a cluster ran them;
	// see [Workloads]. Default: they stay as they are written.
	Workloads *workloads.Options
	// Plane adjusts the control plane. Unless its field Disable is set, namespaces
	// have no ConfigMap kube-root-ca.crt.
	Plane controlplane.Options
	// Timeout of every wait. Default 30 s. [TimeoutVariable] goes before it.
	Timeout time.Duration
	// VirtualTimeout is that of waits in a bubble of testing/synctest, where hours cost
	// milliseconds: for an operator that takes its time. [TimeoutVariable] does not
	// matter there, since a debugger holds the clock up as well. Default: Timeout, or 30 s.
	VirtualTimeout time.Duration
}

// TimeoutVariable is the environment variable with the timeout of every wait in real time,
// such as 1h, in place of Options.Timeout: for tests that a debugger holds up.
const TimeoutVariable = "STEERTEST_TIMEOUT"

// Workloads is the option for a simulated cluster. Pods become ready, and those
// of Jobs complete, unless an outcome says otherwise; the first that selects a
// Pod decides:
//
//	steertest.Workloads(workloads.Outcome{Selector: "app=web", Fate: workloads.CrashLoop})
func Workloads(outcomes ...workloads.Outcome) *workloads.Options {
	return &workloads.Options{Outcomes: outcomes}
}

// Env is a control plane with what a test needs around it. Its methods fail the
// test instead of returning errors.
type Env struct {
	testing.TB
	// Plane is the control plane; nil on a server of [KubeconfigVariable].
	Plane *controlplane.Plane
	// Config reaches it, without sockets, as administrator.
	Config *rest.Config
	// Client is live: its reads are requests. It is an administrator's.
	Client client.Client
	// Namespace is where objects and keys are that name none: "default", or on a
	// server of [KubeconfigVariable] one of the test's own.
	Namespace string

	ctx     context.Context // the life of the test, for methods without one
	timeout time.Duration
	options Options
	manual  bool // the built-in controllers act on demand only
	// waits is what waits last; broken ends them with a reason.
	waits  context.Context
	broken context.CancelCauseFunc
	// operator is who the operator's requests come from.
	operator *rest.Config
	writes   host.Requests      // of the operator, other than reads
	rights   permissions.Rights // that it used
	faults   *faults
	killer   *host.Killer
	mistakes *mistakes.Finder
	hopeless *hope.Waits
	output   output.Log
	webhooks host.Webhooks
	refusals *permissions.Refusals // nil where the operator is an administrator
	roleFile string                // of its roles
	// life is held while the operator is started or stopped: a channel, since in a bubble of
	// testing/synctest a mutex must not be held for as long as an operator takes to end.
	life     chan struct{}
	starts   int
	running  atomic.Pointer[incarnation] // nil while none runs
	last     atomic.Pointer[incarnation] // the one that was started last
	engine   driven.Engine               // that of package sim; nil in most tests
	store    storage.Store               // that an engine looks into
	replicas []*Replica                  // beside running; life is held
	// recorders are those of the newest starts; life is held.
	recorders []*trace.Recorder
}

// New starts a control plane and, if asked, an operator. Both end with the test.
func New(t testing.TB, o Options) *Env {
	t.Helper()
	timeout, err := o.timeout(virtual(), os.Getenv(TimeoutVariable))
	if err != nil {
		t.Fatalf("steertest: %v", err)
	}
	o = o.withOperator(t)
	if o.Workloads != nil {
		o.Plane.Workloads = o.Workloads
	}
	e := &Env{TB: t, Namespace: metav1.NamespaceDefault, timeout: timeout, options: o, manual: o.Plane.ManualControllers}
	e.life, e.engine = make(chan struct{}, 1), driven.By(t)
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	e.ctx = ctx
	e.waits, e.broken = context.WithCancelCause(ctx)
	e.faults = newFaults(o.Faults)
	e.killer, e.hopeless = &host.Killer{Revision: e.revision}, hope.NewWaits()
	e.mistakes = mistakes.NewFinder(o.Scheme, e.fail)
	if e.engine != nil {
		e.prepareDriven()
	}
	if file := os.Getenv(KubeconfigVariable); file != "" {
		e.useServer(file)
	} else {
		e.startPlane()
	}
	e.installManifests()
	for _, obj := range o.Objects {
		e.Create(obj)
	}
	e.installWebhooks()
	if o.Operator.Setup != nil {
		e.operator = e.configOfOperator()
	}
	e.attach()
	e.Cleanup(e.leave)
	if o.Operator.Setup != nil {
		e.Cleanup(func() {
			e.StopOperator()
			e.checkFaults()
			e.checkRole()
			e.writeRights()
			if e.Failed() && e.last.Load() != nil {
				e.output.Show(e, e.last.Load().manager.Recorder())
			}
		})
		e.StartOperator()
	}
	return e
}

// timeout is that of waits, in virtual time or in real time with the value of the
// environment variable.
func (o *Options) timeout(virtual bool, variable string) (time.Duration, error) {
	const usual = 30 * time.Second
	switch {
	case virtual:
		return cmp.Or(o.VirtualTimeout, o.Timeout, usual), nil
	case variable == "":
		return cmp.Or(o.Timeout, usual), nil
	}
	timeout, err := time.ParseDuration(variable)
	if err != nil || timeout <= 0 {
		return 0, fmt.Errorf("%s is %q: give a duration, such as 1h", TimeoutVariable, variable)
	}
	return timeout, nil
}

// withOperator completes the operator and derives the scheme of it.
func (o Options) withOperator(t testing.TB) Options {
	t.Helper()
	if o.Setup != nil && o.Operator.Setup != nil {
		t.Fatalf("steertest: Options.Setup is short for an Operator that is nothing else: give one of the two")
	}
	if o.Setup != nil {
		o.Operator.Setup = o.Setup
	}
	if o.Operator.Setup == nil && len(o.Faults) > 0 {
		t.Fatalf("steertest: Options.Faults are for the requests of an operator: give Options.Operator or Options.Setup")
	}
	o.Operator.Name = cmp.Or(o.Operator.Name, "steertest")
	if o.Scheme == nil {
		scheme, err := client.NewScheme(o.Operator.Scheme...)
		if err != nil {
			t.Fatalf("steertest: the scheme of the operator: %v", err)
		}
		o.Scheme = scheme
	}
	return o
}

// revision is the resourceVersion of the object of a call, empty where it does
// not exist.
func (e *Env) revision(call client.Call) string {
	obj := client.NewMetadata(call.GVK)
	if err := e.Client.Get(e.ctx, call.Key, obj); client.IgnoreNotFound(err) != nil {
		e.Errorf("steertest: read the revision of %s %s: %v", call.GVK.Kind, client.FormatKey(call.Key), err)
	}
	return obj.GetResourceVersion()
}

// startPlane starts the control plane with the manifests in it.
func (e *Env) startPlane() {
	e.Helper()
	manifests, err := e.definitions()
	if err == nil {
		manifests, err = host.WithUserRoles(manifests)
	}
	if err != nil {
		e.Fatalf("steertest: %v", err)
	}
	o := e.options.Plane
	if o.Webhooks.Resolve == nil {
		o.Webhooks.Resolve = e.webhooks.Resolve
	}
	forked := forkable(&o)
	if o.Disable == nil {
		o.Disable = usuallyDisabled()
	}
	if forked {
		if o.Store, err = forkTemplate(manifests); err != nil {
			e.Fatalf("steertest: %v", err)
		}
	}
	if e.Plane, err = controlplane.New(o); err != nil {
		e.Fatalf("steertest: %v", err)
	}
	e.Cleanup(func() {
		if err := e.Plane.Stop(context.Background()); err != nil {
			e.Errorf("steertest: stop the control plane: %v", err)
		}
		if forked {
			_ = o.Store.Close() // memory
		}
	})
	if err := e.Plane.Start(e.ctx); err != nil {
		e.Fatalf("steertest: %v", err)
	}
	e.Config = e.Plane.RESTConfig()
	e.Client = e.clientOf(e.Config)
	if forked {
		return
	}
	if err := manifest.Apply(e.ctx, e.Client, "", manifests); err != nil {
		e.Fatalf("steertest: %v", err)
	}
	// Every namespace has its service account, and so on: what a template has.
	if err := e.settlePlane(e.ctx); err != nil {
		e.Fatalf("steertest: %v", err)
	}
}

// definitions reads the manifests of Options.CRDs.
func (e *Env) definitions() ([]manifest.Object, error) {
	paths, err := host.FindAll(e.options.CRDs)
	if err != nil {
		return nil, fmt.Errorf("find the CRDs: %w", err)
	}
	return manifest.Read(paths...)
}

// Context lasts until the test's cleanup.
func (e *Env) Context() context.Context { return e.ctx }

// AsUser returns a live client of another user, to see what they may do. Like
// all known users they are in the group system:authenticated.
func (e *Env) AsUser(name string, groups ...string) client.Client {
	e.Helper()
	return e.clientOf(e.drivenUser("user "+name, e.configFor(&auth.User{Name: name, Groups: append(groups, auth.Authenticated)})))
}

func (e *Env) clientOf(cfg *rest.Config) client.Client {
	e.Helper()
	c, err := client.New(cfg, client.Options{Scheme: e.options.Scheme, FieldOwner: fieldOwner})
	if err != nil {
		e.Fatalf("steertest: %v", err)
	}
	return c
}
