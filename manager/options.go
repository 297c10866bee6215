// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	mathrand "math/rand/v2"
	"net/http"
	"os"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/steer-dev/steer/cache"
	"github.com/steer-dev/steer/certificate"
	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/manager/election"
	"github.com/steer-dev/steer/trace"
	"github.com/steer-dev/steer/webhook"
)

// Options of [New].
type Options struct {
	// Name of the operator: the field owner of its writes, the reporting
	// controller of its events, the default name of its lease. Required; a DNS
	// label such as "crontab-operator".
	Name string
	// FieldOwner owns the fields that the operator and its controllers write, so
	// that those of a former operator are taken over under its name. Default: the
	// name of the controller that writes, and Name for writes outside of
	// controllers. controller.FieldOwner is for one controller.
	FieldOwner string
	// Instance is this process among those of the operator: the identity in the
	// lease, the reporting instance of events. Default the host's name and a
	// random suffix.
	Instance string
	// Scheme knows the Go types of the kinds that controllers use; see
	// client.NewScheme. Required.
	Scheme *runtime.Scheme
	// Cache of what controllers read. Its Metrics, Log and Seed are the manager's
	// unless given.
	Cache cache.Options
	// WrapClient wraps the client that controllers and [Manager.Client] use: to
	// count, to refuse, to inject faults; see package client/interceptor. nil
	// leaves it as it is.
	WrapClient func(client.Client) client.Client
	// Election makes the manager wait for leadership before controllers run.
	Election Election
	// Metrics server.
	Metrics Metrics
	// Webhooks server. It listens once a webhook is added.
	Webhooks webhook.Options
	// HealthAddress of /healthz and /readyz; empty serves neither, ":0" takes
	// any free port.
	HealthAddress string
	// DebugAddress of /debug/pprof/ and of /debug/reconciles, which shows the
	// flight recorder as JSON lines (?follow: as they come; ?kind=KIND&name=NAME: about an object; ?queued: what waits);
	// empty serves neither. It authenticates no one: use a loopback address.
	DebugAddress string
	// RecordDir keeps records of reconciles in files, 256 MiB at most, for DebugAddress and
	// package trace/recording; processes may share it. Empty keeps them in memory alone.
	RecordDir string
	// MaxConnections is how many connections each of the servers has open at once: of health,
	// metrics, debugging, and of webhooks unless their options say another number. Of one
	// too many the newest of the address that has the most is closed. Default 1,000; negative:
	// no bound.
	MaxConnections int
	// Recorder of reconciles: its memory. Its Seed is made of Seed and Instance unless
	// given.
	Recorder trace.Options
	// OnError is called with every error that ends an attempt of a reconciler,
	// beside its line in the log and its retry: to report it, or to end the
	// process. It names the controller and the object and wraps what Reconcile
	// returned, a controller.PanicError, or a controller.ChangedError. Conflicts,
	// and errors of attempts that were told to stop, are normal operation and left
	// out. It is called on the worker's goroutine. Default: nothing is called.
	OnError func(error)
	// Seed of what spreads retries and the ends of watches; 0 draws one. Tests
	// that want the same requests every time set it.
	Seed uint64
	// StopGrace is how long the runnables may take to return after they were
	// told to stop. Default 30 s; negative waits for ever.
	StopGrace time.Duration
	// Log takes what the operator's owner should know. Default slog.Default().
	// A logr.Logger fits as slog.New(logr.ToSlogHandler(logger)), zap with it
	// (zapr.NewLogger).
	Log *slog.Logger
}

// Election settings.
type Election struct {
	// Enabled turns leader election on.
	Enabled bool
	// Lease name; default the manager's name.
	Lease string
	// Namespace of the lease; default the one the process runs in. Outside a
	// cluster it must be given.
	Namespace string
	// Timing of the lease; the zero value is 15 s, 10 s, 2 s.
	Timing election.Timing
}

// Metrics settings.
type Metrics struct {
	// Address of /metrics; empty serves none, ":0" takes any free port.
	Address string
	// Handlers are served beside /metrics, by path.
	Handlers map[string]http.Handler
	// Secure serves HTTPS, and only requests with a bearer token whose user may
	// get the path: the API server is asked (TokenReview, SubjectAccessReview).
	Secure bool
	// TLS of a secure server.
	TLS TLS
}

// TLS settings of a server.
type TLS = certificate.TLS

// Failures that a caller can act on.
var (
	// ErrNotLeader is returned by writes after the leadership was lost; nothing
	// was sent.
	ErrNotLeader = errors.New("manager: this process does not lead any more; the write was not sent")
	// ErrLostLease ends Start when the leadership was lost. Restart the process.
	ErrLostLease = errors.New("manager: the leader lease was lost; restart to take part again")
	// ErrStarted is a second Start.
	ErrStarted = errors.New("manager: it has been started before, and is started once: make another one")
	// ErrStopping is an Add to a manager that is stopping or has stopped.
	ErrStopping = errors.New("manager: it is stopping or has stopped")
	// ErrStopTimeout ends Start when a runnable did not return in time.
	ErrStopTimeout = errors.New("manager: a runnable did not return within the stop grace")
)

const (
	defaultStopGrace = 30 * time.Second
	// namespaceFile names the Pod's namespace inside a cluster.
	namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"
)

func (o Options) withDefaults() (Options, error) {
	if o.Name == "" {
		return o, errors.New("manager: Options.Name is required: it owns the fields that the operator writes")
	}
	if o.Scheme == nil {
		return o, errors.New("manager: Options.Scheme is required: client.NewScheme(v1.AddToScheme, ...)")
	}
	o.StopGrace = cmp.Or(o.StopGrace, defaultStopGrace)
	o.Log = cmp.Or(o.Log, slog.Default())
	o.Cache.Log = cmp.Or(o.Cache.Log, o.Log)
	o.Seed = cmp.Or(o.Seed, mathrand.Uint64())
	o.Cache.Seed = cmp.Or(o.Cache.Seed, o.Seed)
	if o.Instance == "" {
		host, err := os.Hostname()
		if err != nil {
			return o, fmt.Errorf("manager: Options.Instance is needed where the host has no name: %w", err)
		}
		var suffix [8]byte
		if _, err := rand.Read(suffix[:]); err != nil {
			return o, fmt.Errorf("manager: instance: %w", err)
		}
		o.Instance = host + "_" + hex.EncodeToString(suffix[:])
	}
	if o.Recorder.Seed == 0 { // every instance has ids of its own
		h := fnv.New64a()
		_, _ = fmt.Fprint(h, o.Seed, " ", o.Instance)
		o.Recorder.Seed = h.Sum64()
	}
	if !o.Election.Enabled {
		return o, nil
	}
	var err error
	if o.Election.Timing, err = o.Election.Timing.WithDefaults(); err != nil {
		return o, err
	}
	o.Election.Lease = cmp.Or(o.Election.Lease, o.Name)
	if o.Election.Namespace == "" {
		data, err := os.ReadFile(namespaceFile)
		if err != nil {
			return o, fmt.Errorf("manager: leader election outside a cluster needs the namespace of its lease: pass --leader-election-namespace, or set Options.Election.Namespace: %w", err)
		}
		o.Election.Namespace = strings.TrimSpace(string(data))
	}
	return o, nil
}
