// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package demo is the command demo: an operator at work, step by step.
package demo

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/steer-dev/steer"
	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/cmd/steer/internal/command"
	"github.com/steer-dev/steer/cmd/steer/internal/dev"
	"github.com/steer-dev/steer/cmd/steer/internal/explain"
	"github.com/steer-dev/steer/controller"
	"github.com/steer-dev/steer/controlplane"
	"github.com/steer-dev/steer/controlplane/webhookclient"
	"github.com/steer-dev/steer/controlplane/workloads"
	"github.com/steer-dev/steer/dashboard"
	"github.com/steer-dev/steer/examples/crontab"
	v1 "github.com/steer-dev/steer/examples/crontab/api/v1"
	"github.com/steer-dev/steer/manager"
	"github.com/steer-dev/steer/trace"
	"github.com/steer-dev/steer/webhook"
)

// New returns the command.
func New() *cobra.Command {
	var dataDir string
	var exit bool
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Watch an operator at work on a control plane in this process",
		Long: `Starts a control plane, installs the CronTab of the Kubernetes documentation, runs
its operator, and shows each reconcile as it happens: what caused it, what it
read and wrote, how it ended. A simulated node runs the Pods of its Jobs. It moves
the operator's clock to the next due time instead of waiting for it. Afterwards it
stays up for kubectl.`,
		Example: `  steer demo
  steer demo --exit                  # end by itself; status 0 only if everything converged
  steer demo --data-dir ./demo-data  # keep the data`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			d := &demo{out: newPrinter(os.Stdout), dataDir: dataDir, exit: exit}
			return d.run(cmd.Context())
		},
	}
	cmd.Flags().StringVar(&dataDir, "data-dir", "", "`folder` to keep the data in; default memory")
	cmd.Flags().BoolVar(&exit, "exit", false, "end by itself after the last step")
	return cmd
}

// demo is one run: a control plane, the crontab operator, and a script.
type demo struct {
	out     *printer
	dataDir string
	exit    bool

	plane      *controlplane.Plane
	kubeconfig string
	page       string        // its URL, once the operator runs
	client     client.Client // live
	clock      demoClock
	webhooks   atomic.Pointer[webhook.Server] // of the operator
	// seen holds the newest record of the flight recorder, once it is printed.
	seen chan trace.Record
}

// run plays the demo. What fails because of an interruption is one.
func (d *demo) run(ctx context.Context) error {
	err := d.play(ctx)
	if err != nil && ctx.Err() != nil {
		return &command.ExitError{Status: 130, Message: "interrupted before the demo was over"}
	}
	return err
}

func (d *demo) play(ctx context.Context) (err error) {
	began := time.Now()
	plane, stop, err := dev.StartPlane(ctx, controlplane.Options{
		Listen: "127.0.0.1:0", DataDir: d.dataDir, Workloads: demoWorkloads(), Webhooks: webhookclient.Options{Resolve: d.resolve},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	d.plane = plane
	took := time.Since(began)

	dir, err := os.MkdirTemp("", "steer-demo-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	d.kubeconfig = filepath.Join(dir, "kubeconfig")
	if err := plane.WriteKubeconfig(d.kubeconfig); err != nil {
		return err
	}
	scheme, err := client.NewScheme(v1.AddToScheme, batchv1.AddToScheme, corev1.AddToScheme)
	if err != nil {
		return err
	}
	if d.client, err = client.New(plane.RESTConfig(), client.Options{Scheme: scheme, FieldOwner: "demo"}); err != nil {
		return err
	}
	d.out.title("A Kubernetes control plane is up in this process")
	d.out.line("ready in %s; kubeconfig %s", took.Round(100*time.Microsecond), d.kubeconfig)
	if err := d.install(ctx); err != nil {
		return err
	}

	d.clock.moved = make(chan controller.Request)
	d.seen = make(chan trace.Record, 1)
	operator := d.startOperator(ctx)
	defer func() { err = errors.Join(err, operator.stop()) }()

	if err := d.script(operator.ctx); err != nil {
		return err
	}
	if d.exit {
		return nil
	}
	d.stayUp()
	<-operator.ctx.Done()
	return nil
}

// jobTime is how long the Pods of Jobs run, unless the script ends them before.
const jobTime = 10 * time.Second

// demoWorkloads is a simulated cluster in which Jobs take their time, so that
// there is something to see while they run.
func demoWorkloads() *workloads.Options {
	return &workloads.Options{Outcomes: []workloads.Outcome{{
		Selector: batchv1.JobNameLabel, Fate: workloads.Complete, After: jobTime,
	}}}
}

// stayUp tells what there is to try.
func (d *demo) stayUp() {
	d.out.title("It stays up until Ctrl-C. Try, in another terminal:")
	d.out.line("open %s", d.page)
	d.out.line("export KUBECONFIG=%s", d.kubeconfig)
	d.out.line("kubectl get crontabs,jobs,pods")
	d.out.line(`kubectl patch crontab %s --type merge -p '{"spec":{"replicas":5}}'`, sampleName)
	d.out.line(`kubectl patch crontab %s --type merge -p '{"spec":{"cronSpec":"@hourly"}}' -o yaml`, sampleName)
}

// resolve leads the Service of the webhooks to the operator in this process.
func (d *demo) resolve(_ context.Context, s webhookclient.Service) (webhookclient.Backend, bool) {
	server := d.webhooks.Load()
	return webhookclient.Backend{Transport: server}, server != nil && !s.APIService
}

// operatorRun is the operator while it runs.
type operatorRun struct {
	ctx    context.Context // ends when the operator does
	cancel context.CancelFunc
	ended  sync.WaitGroup
	err    error
}

// startOperator runs the crontab operator and prints its reconciles. It returns once the
// webhooks are there that the script's writes call.
func (d *demo) startOperator(ctx context.Context) *operatorRun {
	run := &operatorRun{}
	run.ctx, run.cancel = context.WithCancel(ctx)
	op := crontab.Operator()
	op.Config = d.plane.RESTConfig()
	added := make(chan struct{})
	op.Configure = func(o *manager.Options) {
		o.Log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	}
	op.Setup = func(ctx context.Context, m *manager.Manager) error {
		if err := d.servePage(run, m); err != nil {
			close(added)
			return err
		}
		records := m.Recorder().Follow(run.ctx)
		run.ended.Go(func() {
			for r := range records {
				if strings.HasPrefix(r.Controller, "/") {
					d.out.admission(r)
					continue
				}
				d.out.reconcile(r)
				select {
				case <-d.seen: // an older one that was not waited for
				default:
				}
				d.seen <- r
			}
		})
		defer close(added)
		err := errors.Join(
			(&crontab.Reconciler{Ahead: d.clock.jumped}).Add(m, controller.From(controller.Channel(d.clock.moved))),
			crontab.AddWebhooks(m),
		)
		d.webhooks.Store(m.Webhooks())
		return err
	}
	run.ended.Go(func() {
		defer run.cancel()
		run.err = steer.Run(run.ctx, []string{"--health-probe-bind-address=0", "--webhook-port=0"}, op)
	})
	select {
	case <-added:
	case <-run.ctx.Done(): // it has failed before
	}
	return run
}

// servePage serves the page of the operator while that runs.
func (d *demo) servePage(run *operatorRun, m *manager.Manager) error {
	objects := explain.NewPlane(d.plane.RESTConfig())
	objects.Recent = func() []trace.Record { return slices.Collect(m.Recorder().Records()) }
	local, err := dashboard.New(dashboard.Options{Title: "crontab-operator", Source: dashboard.Live(m.Recorder(), m.Queued), Objects: objects}).Listen("127.0.0.1:0")
	if err != nil {
		return err
	}
	d.page = local.URL()
	d.out.line("the page of its operator: %s", d.page)
	run.ended.Go(func() { _ = local.Run(run.ctx) }) // a listener that breaks shows in the browser
	return nil
}

// stop ends the operator and returns why it ended, if not because of this.
func (r *operatorRun) stop() error {
	r.cancel()
	r.ended.Wait()
	return r.err
}

// demoClock is a clock that can be moved forward.
type demoClock struct {
	moved chan controller.Request

	mu    sync.Mutex
	ahead time.Duration
}

func (c *demoClock) now() time.Time { return time.Now().Add(c.jumped()) }

// jumped is how far the clock is ahead.
func (c *demoClock) jumped() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ahead
}

// moveTo moves the clock to a later time and wakes the reconcile of an object.
func (c *demoClock) moveTo(ctx context.Context, t time.Time, wake controller.Request) error {
	c.mu.Lock()
	c.ahead = max(c.ahead, time.Until(t))
	c.mu.Unlock()
	select {
	case c.moved <- wake:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("demo: the operator took no notice of the clock: %w", context.Cause(ctx))
	}
}
