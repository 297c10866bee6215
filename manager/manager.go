// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package manager runs many controllers as one process: it owns the client,
// the cache and the flight recorder that they share, starts and stops
// everything in order, takes part in leader election, and answers probes and
// scrapes.
//
//	m, err := manager.New(cfg, manager.Options{Name: "crontab-operator", Scheme: scheme})
//	err = controller.Add(m, &Reconciler{Client: m.Client()})
//	err = m.Start(ctx) // until ctx ends or a part fails
//
// Several managers live in one process without knowing of each other.
package manager

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"

	"github.com/steer-dev/steer/cache"
	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/controller"
	"github.com/steer-dev/steer/manager/internal/debug"
	"github.com/steer-dev/steer/manager/internal/metrics"
	"github.com/steer-dev/steer/trace"
	"github.com/steer-dev/steer/webhook"
)

// Manager is made by [New], filled with Add, and run once with Start. Its
// methods are safe for concurrent use.
type Manager struct {
	opts     Options
	http     *http.Client  // what all requests are sent with, but for
	electing *http.Client  // those of the election; nil without one
	direct   client.Client // fenced
	cached   client.Client
	cache    *cache.Cache
	records  debug.Records
	events   *recorder
	metrics  *metrics.Metrics
	healthz  *checks
	readyz   *checks
	elector  *elector // nil without election
	servers  servers
	webhooks *webhook.Server
	elected  chan struct{}

	mu      sync.Mutex
	names   map[string]bool
	parts   [2][]controller.Runnable // by whether the leader alone runs them
	live    [2]*launched             // nil until they run
	started bool
	ended   bool // what is added now would never run
	// measured are the controllers, by which Queued asks them.
	measured []controller.ControllerInfo
}

// New makes a manager of the cluster that cfg names. Nothing is sent and
// nothing runs before Start.
func New(cfg *rest.Config, opts Options) (*Manager, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	m := &Manager{
		opts:    opts,
		records: debug.Records{Recorder: trace.NewRecorder(opts.Recorder), Dir: opts.RecordDir, Log: opts.Log},
		metrics: metrics.New(),
		healthz: newChecks("/healthz"),
		readyz:  newChecks("/readyz"),
		elected: make(chan struct{}),
		names:   map[string]bool{},
	}
	// The manager writes leases and events whether the operator knows them or not.
	own := runtime.NewScheme()
	if err := addManagerKinds(own); err != nil {
		return nil, fmt.Errorf("manager: %w", err)
	}
	shared, err := m.metrics.HTTPClient(cfg)
	if err != nil {
		return nil, fmt.Errorf("manager: HTTP client: %w", err)
	}
	m.http = shared
	live := client.Options{
		HTTPClient: shared, Scheme: own, FieldOwner: cmp.Or(opts.FieldOwner, opts.Name),
		OnAttempt: m.metrics.Attempt, Log: opts.Log,
	}
	var alone client.Client
	if opts.Election.Enabled {
		if alone, err = m.electionClient(cfg, live); err != nil {
			return nil, err
		}
		live.Mapper = alone.Mapper() // one discovery for all
	}
	unfenced, err := client.New(cfg, live)
	if err != nil {
		return nil, fmt.Errorf("manager: %w", err)
	}
	live.Scheme, live.Mapper = opts.Scheme, unfenced.Mapper()
	m.events = newRecorder(unfenced, opts.Scheme, opts.Name, opts.Instance, opts.Log)
	if opts.Election.Enabled {
		m.events.elections = alone
		m.elector = newElector(alone, opts, m.metrics, m.events)
		// Checked before a call, so that a refusal is no request; and again at the
		// wire, since calls are repeated and take their time.
		live.BeforeWrite = m.admit
		live.HTTPClient, m.elector.fence = fenced(shared, m.elector.entitlement)
	}
	if m.direct, err = client.New(cfg, live); err != nil {
		return nil, fmt.Errorf("manager: %w", err)
	}
	if opts.Cache.Metrics == nil {
		opts.Cache.Metrics = m.metrics
	}
	if m.cache, err = cache.New(m.direct, opts.Cache); err != nil {
		return nil, fmt.Errorf("manager: %w", err)
	}
	m.webhooks = m.newWebhooks(unfenced)
	m.cached = cache.NewClient(m.direct, m.cache)
	if opts.WrapClient != nil {
		m.cached = opts.WrapClient(m.cached)
	}
	if err := m.addOwnChecks(); err != nil {
		return nil, err
	}
	return m, m.prepareServers(unfenced)
}

// electionClient returns a client for the lease alone: with connections of its own, and without
// the limits of QPS and Burst, so that nothing else which the process sends delays a renewal.
func (m *Manager) electionClient(cfg *rest.Config, o client.Options) (client.Client, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.QPS, cfg.Burst, cfg.RateLimiter = 0, 0, nil
	cfg.UserAgent = cmp.Or(cfg.UserAgent, rest.DefaultKubernetesUserAgent()) + "/leader-election" // as those of Kubernetes
	var err error
	if m.electing, err = m.metrics.HTTPClient(cfg); err != nil {
		return nil, fmt.Errorf("manager: HTTP client of the election: %w", err)
	}
	o.HTTPClient = m.electing
	c, err := client.New(cfg, o)
	if err != nil {
		return nil, fmt.Errorf("manager: %w", err)
	}
	return c, nil
}

// addOwnChecks adds the checks of what every manager has.
func (m *Manager) addOwnChecks() error {
	if err := m.healthz.add("ping", func(*http.Request) error { return nil }); err != nil {
		return err
	}
	if err := m.readyz.add("caches", m.cachesSynced); err != nil {
		return err
	}
	if err := m.readyz.add("watches", m.watchesWell); err != nil {
		return err
	}
	if err := m.readyz.add("webhooks", m.webhooks.Ready); err != nil {
		return err
	}
	if m.elector == nil {
		return nil
	}
	return m.readyz.add("leader-election", m.elector.accessible)
}

// Client reads from the cache and writes through, with its own writes visible
// at once. After a lost leadership its writes fail with [ErrNotLeader].
func (m *Manager) Client() client.Client { return m.cached }

// Live is like Client but reads from the API server.
func (m *Manager) Live() client.Client { return m.direct }

// Cache of what controllers read.
func (m *Manager) Cache() *cache.Cache { return m.cache }

// Scheme of the Go types.
func (m *Manager) Scheme() *runtime.Scheme { return m.opts.Scheme }

// Log of the operator.
func (m *Manager) Log() *slog.Logger { return m.opts.Log }

// Deps implements controller.Manager.
func (m *Manager) Deps() controller.Deps {
	metrics := func(c controller.ControllerInfo) (controller.Instruments, error) { return m.measure(c, m.cache) }
	return controller.Deps{
		Metrics: metrics, Client: m.cached, Informers: m.cache, Log: m.opts.Log, Trace: m.records.Recorder,
		FieldOwner: m.opts.FieldOwner, Events: m.events, OnError: m.opts.OnError,
	}
}

// Recorder of reconciles.
func (m *Manager) Recorder() *trace.Recorder { return m.records.Recorder }

// Queued lists what waits in the queues of the controllers, at most so many requests of each
// state in each. It looks at every request that waits, and is meant for who watches the operator.
func (m *Manager) Queued(most int) []trace.Queued {
	m.mu.Lock()
	controllers := slices.Clone(m.measured)
	m.mu.Unlock()
	out := make([]trace.Queued, len(controllers))
	for i, c := range controllers {
		out[i] = c.Queued(most)
	}
	slices.SortStableFunc(out, func(a, b trace.Queued) int { return cmp.Compare(a.Controller, b.Controller) })
	return out
}

// Registry of the metrics that /metrics shows, for own ones beside them.
func (m *Manager) Registry() *prometheus.Registry { return m.metrics.Registry }

// Elected is closed when this process leads, or at Start without election.
func (m *Manager) Elected() <-chan struct{} { return m.elected }

// AddHealthCheck adds a liveness check, served below /healthz.
func (m *Manager) AddHealthCheck(name string, check Check) error { return m.healthz.add(name, check) }

// AddReadyCheck adds a readiness check, served below /readyz.
func (m *Manager) AddReadyCheck(name string, check Check) error { return m.readyz.add(name, check) }

// Ready runs the readiness checks, as /readyz does, and returns the first
// failure.
func (m *Manager) Ready(ctx context.Context) error {
	probe, err := http.NewRequestWithContext(ctx, http.MethodGet, m.readyz.root, nil)
	if err != nil {
		return err
	}
	return m.readyz.run(probe)
}

// Start runs everything until ctx ends or a part fails, and returns when the
// last part has returned. It returns nil when ctx ended it; otherwise what
// failed. A second Start is [ErrStarted].
//
// The order is: servers, webhooks, caches until they are synced, the sender of
// events, runnables that do not need leadership, leader election, the others. At the
// end all runnables are told to stop at once; the lease is released only after the
// leader's have returned, events are sent until all have, webhooks are served until
// they have drained, and caches and servers end last. Its connections to the API server
// are then closed.
func (m *Manager) Start(ctx context.Context) error {
	m.mu.Lock()
	if m.started {
		m.mu.Unlock()
		return ErrStarted
	}
	m.started = true
	m.mu.Unlock()

	// Parts fail into run: the first failure ends all of them.
	run, fail := context.WithCancelCause(ctx)
	defer m.end()
	defer context.AfterFunc(run, m.end)()
	defer fail(nil)
	stopRecords, err := m.records.Keep(ctx)
	if err != nil {
		return fmt.Errorf("manager: RecordDir (--record-dir): %w", err)
	}
	err = errors.Join(m.run(run, fail), stopRecords()) // with what ended last
	if ctx.Err() != nil {
		return err // it was told to end
	}
	return errors.Join(context.Cause(run), err)
}

// closeConnections closes the connections to the API server on which nothing is under
// way. Those of a transport that is not the manager's own (rest.Config.Transport) are
// opened anew when they are needed.
func (m *Manager) closeConnections() {
	closeIdle(m.http.Transport)
	if m.electing != nil {
		closeIdle(m.electing.Transport)
	}
}

func closeIdle(transport http.RoundTripper) {
	for {
		switch t := transport.(type) {
		case interface{ CloseIdleConnections() }:
			t.CloseIdleConnections()
			return
		case utilnet.RoundTripperWrapper:
			transport = t.WrappedRoundTripper()
		default:
			return
		}
	}
}

// end refuses what is added from now on.
func (m *Manager) end() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ended = true
}

// run is Start without the reason of the end.
func (m *Manager) run(ctx context.Context, fail context.CancelCauseFunc) error {
	defer m.closeConnections()
	if err := m.servers.start(ctx, m); err != nil {
		return err
	}
	defer m.servers.stop()
	// Before the caches: what they list may have to be converted here.
	stopWebhooks := m.serveWebhooks(ctx, fail)
	defer m.cache.Stop()
	defer stopWebhooks()

	if err := m.cache.Start(context.WithoutCancel(ctx)); err != nil {
		return fmt.Errorf("manager: start caches: %w", err)
	}
	if err := m.cache.WaitForSync(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("manager: sync caches: %w", err)
	}

	// Runnables may emit events until they have returned.
	sending, stopSending := context.WithCancel(context.WithoutCancel(ctx))
	var events sync.WaitGroup
	events.Go(func() { m.events.run(sending) })
	defer events.Wait()
	defer stopSending()

	rest := m.launch(ctx, fail, always)
	led := m.lead(ctx, fail)
	<-ctx.Done()

	grace, cancel := m.grace()
	defer cancel()
	defer m.tellWaiting(led, rest)()
	return m.stuck(errors.Join(led.join(grace), rest.join(grace)))
}

// lead launches the leader's runnables, after winning the election if there is
// one. The returned group ends when they have returned and the lease is given up.
func (m *Manager) lead(ctx context.Context, fail context.CancelCauseFunc) *group {
	if m.elector == nil {
		defer close(m.elected)
		return m.launch(ctx, fail, leading)
	}
	election := newGroup()
	// A new group accepts it.
	_ = election.run("leader election", func() {
		m.metrics.Leads(m.opts.Election.Lease, false)
		defer m.metrics.Leads(m.opts.Election.Lease, false)
		err := m.elector.run(ctx, func() *group {
			m.metrics.Leads(m.opts.Election.Lease, true)
			defer close(m.elected)
			led := m.launch(ctx, fail, leading)
			election.waitsFor(led)
			return led
		})
		if err != nil {
			fail(err)
		}
	})
	election.seal()
	return election
}

// admit refuses writes after the leadership was lost, also when the process was paused
// and the election has not noticed the loss yet.
func (m *Manager) admit(context.Context, *client.Call) error {
	if m.elector.entitled() {
		return nil
	}
	return ErrNotLeader
}

// cachesSynced is the readiness check of all informers, but for those of kinds that
// this operator converts: what they list is converted by replicas that are ready, of
// which there may be none yet.
func (m *Manager) cachesSynced(*http.Request) error {
	for _, s := range m.cache.Informers() {
		if !s.Synced && !m.webhooks.Converts(s.GVK.GroupKind()) {
			if s.Err != nil {
				return fmt.Errorf("the cache of %s is not synced (%s): %w", s.GVK.Kind, s.State, s.Err)
			}
			return fmt.Errorf("the cache of %s is not synced: %s", s.GVK.Kind, s.State)
		}
	}
	return nil
}

// stalled is how long a watch may be in trouble before the process counts as
// not ready: long enough for a restart of the API server.
const stalled = 2 * time.Minute

// watchesWell is the readiness check of watches that were well before.
func (m *Manager) watchesWell(*http.Request) error {
	for _, s := range m.cache.Informers() {
		if s.Err != nil && !s.Since.IsZero() && time.Since(s.Since) > stalled {
			return fmt.Errorf("the watch of %s has been interrupted for %s: %w", s.GVK.Kind, time.Since(s.Since).Round(time.Second), s.Err)
		}
	}
	return nil
}

// measure makes the instruments of a controller, which reads from the given cache.
func (m *Manager) measure(c controller.ControllerInfo, copies *cache.Cache) (controller.Instruments, error) {
	instruments, err := m.metrics.Controller(c)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	m.measured = append(m.measured, c)
	m.mu.Unlock()
	if example := c.Example(); example != nil {
		gvk := example.GetObjectKind().GroupVersionKind()
		if err := m.metrics.Conditions(gvk, example, copies); err != nil {
			m.opts.Log.Warn("the conditions are not measured", "kind", gvk.String(), "error", err)
		}
	}
	return instruments, nil
}

func (m *Manager) grace() (context.Context, context.CancelFunc) {
	if m.opts.StopGrace < 0 {
		return context.WithCancel(context.Background())
	}
	return context.WithTimeout(context.Background(), m.opts.StopGrace)
}
