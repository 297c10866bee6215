// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/apiserver/audit"
	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/storage"
)

// Options of a server. Only Store is required.
type Options struct {
	// Store holds the objects. The server does not close it.
	Store storage.Store
	// Authenticator of requests that arrive through [Server.Handler]. nil: all are
	// system:anonymous.
	Authenticator auth.Authenticator
	// Authorizer of all requests. nil: only the group system:masters is allowed
	// everything, and everyone may read health, version and discovery.
	Authorizer auth.Authorizer
	// Classify returns the UIDs of the FlowSchema and of the PriorityLevelConfiguration
	// of a request, which answers carry as headers; clients then disable their own rate
	// limit. Empty for none. nil: no answer carries them.
	Classify func(context.Context, *auth.Attributes) (schema, level types.UID)
	// Admission of writes. nil: none.
	Admission resource.Admission
	// Audit records requests. nil: none are.
	Audit *audit.Log
	// Entropy of the answers. nil: [RandomEntropy].
	Entropy Entropy
	// Limits of requests; the zero value is the default.
	Limits Limits
	// Version of Steer as shown in /version. Empty: "devel".
	Version string
	// StrictTransportSecurity are the directives of the header of this name (RFC 6797) that all
	// answers have, such as "max-age=31536000". nil: they have none.
	StrictTransportSecurity []string
	// Flags of the program with their values, shown at /flagz as they are: leave out what is
	// secret. nil: none are shown.
	Flags map[string]string
	// Metrics receives the server's metrics and is served at /metrics; the collectors
	// of Go and of the process are added on the first request. nil: a registry of its
	// own.
	Metrics *prometheus.Registry
	// Checks are health checks in addition to the built-in ones (ping, log, etcd for
	// the store, and for /readyz etcd-readiness, informer-sync and shutdown).
	Checks []Check
	// CacheBytes bounds the memory of cached encodings other than the stored one: other
	// versions and protobuf. 0: 64 MiB. Negative: nothing is cached.
	CacheBytes int64
	// NoteBytes bounds the memory of notes of who wrote which revision, served at
	// /steer.dev/writes. 0: 4 MiB. Negative: none are made.
	NoteBytes int
	// Log receives failures that no client sees. nil: they are discarded.
	Log *slog.Logger
}

// Limits of requests. For each field 0 means the default in brackets and a negative
// value no limit.
type Limits struct {
	// BodyBytes of one request [3 MiB]; more is answered with 413.
	BodyBytes int64
	// ObjectBytes of an object as it is stored [1.5 MiB, as etcd takes by default, so that
	// an object which is stored here is stored in any cluster]; more is answered with 500.
	ObjectBytes int
	// Reads and Writes in flight [400, 200], long requests not counted; more are
	// answered with 429. A user holds as many as are left free, so that one alone has at
	// most half of them. Members of system:masters, health checks and what the server
	// sends to itself are counted apart, and never refused.
	Reads, Writes int
	// WatchesPerUser at once [10000]; more are answered with 429.
	WatchesPerUser int
	// OpenConnections of the network at once [10000], on listeners of [Server.Bound]: of one
	// too many the newest of the address that has the most is closed. The process needs as
	// many open files; a connection of TLS costs about 40 KiB.
	OpenConnections int
	// Connections at once [1000], and those of one user [250]: long requests that are no
	// watches, such as commands, logs and forwarded ports. More are answered with 429.
	Connections, ConnectionsPerUser int
	// WaitingPerUser and WaitingPerConnection [400, 64] are the requests that wait for the
	// store or for their authorization; more are answered with 429. The second needs the
	// server of [Server.HTTPServer].
	WaitingPerUser, WaitingPerConnection int
	// PatchOperations of one JSON patch [10000].
	PatchOperations int
	// RequestTimeout of all requests but watches and connections [60s].
	RequestTimeout time.Duration
	// MinWatch is the shortest duration of a watch without timeoutSeconds [30m]; each
	// gets a random one between it and twice that.
	MinWatch time.Duration
	// BookmarkEvery is how often a watch with allowWatchBookmarks gets a bookmark [1m].
	BookmarkEvery time.Duration
}

// withDefaults sets the defaults; no limit becomes 0.
func (l Limits) withDefaults() Limits {
	l.BodyBytes, l.ObjectBytes = limit(l.BodyBytes, 3<<20), limit(l.ObjectBytes, 3<<19)
	l.Reads, l.Writes = limit(l.Reads, 400), limit(l.Writes, 200)
	l.WatchesPerUser = limit(l.WatchesPerUser, 10_000)
	l.OpenConnections = limit(l.OpenConnections, 10_000)
	l.Connections, l.ConnectionsPerUser = limit(l.Connections, 1000), limit(l.ConnectionsPerUser, 250)
	l.WaitingPerUser, l.WaitingPerConnection = limit(l.WaitingPerUser, 400), limit(l.WaitingPerConnection, 64)
	l.PatchOperations = limit(l.PatchOperations, 10_000)
	l.RequestTimeout = limit(l.RequestTimeout, time.Minute)
	l.MinWatch = limit(l.MinWatch, 30*time.Minute)
	l.BookmarkEvery = limit(l.BookmarkEvery, time.Minute)
	return l
}

func limit[N ~int | ~int64](given, usual N) N {
	switch {
	case given == 0:
		return usual
	case given < 0:
		return 0
	}
	return given
}

// Check is one health check.
type Check struct {
	// Name of its path below /healthz, /livez and /readyz.
	Name string
	// Run returns nil if the check passes.
	Run func() error
	// ReadyOnly excludes it from /healthz and /livez: its failure takes the server out
	// of service, but a restart would not help.
	ReadyOnly bool
}
