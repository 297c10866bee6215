// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/steer-dev/steer/apiserver"
	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/controlplane/workloads"
	"github.com/steer-dev/steer/storage"
)

// Options of a plane. The zero value is a plane in memory that listens nowhere.
type Options struct {
	// DataDir keeps everything: data, keys, kubeconfig. It is created if it does
	// not exist. Empty: nothing outlives the plane.
	DataDir string
	// Store holds the objects in place of memory or DataDir; the plane does not
	// close it. nil: the plane opens its own.
	Store storage.Store
	// Listen is the address to serve on after Start, such as "127.0.0.1:6443";
	// port 0 picks a free one. Empty: no listener.
	Listen string
	// Hosts are more names and addresses that clients may use for the listener;
	// its own address, localhost and the names inside a cluster are known.
	Hosts []string
	// Keys are the plane's secrets. nil: those in DataDir, or new ones; made when
	// first needed.
	Keys *Keys
	// Tokens are bearer tokens that the listener accepts, with their users.
	Tokens auth.Tokens
	// Authorizer of requests. nil: members of system:masters may do everything,
	// others nothing.
	Authorizer auth.Authorizer
	// Admission of writes, after the plane's own. nil: none.
	Admission apiserver.Admission
	// Entropy of the answers. nil: random; see [apiserver.SeededEntropy].
	Entropy apiserver.Entropy
	// Limits of requests; the zero value is the usual ones.
	Limits apiserver.Limits
	// ManualControllers keeps Start from running the built-in controllers:
	// whoever calls [Plane.Step] or [Plane.Settle] decides when they act.
	ManualControllers bool
	// Workloads makes Deployments, Jobs and their like behave as if a cluster ran
	// them, with one simulated node. nil: they stay as they are written.
	Workloads *workloads.Options
	// Version of Steer, shown in /version. Empty: "devel".
	Version string
	// Metrics receives the plane's metrics. nil: a registry of its own.
	Metrics *prometheus.Registry
	// Log receives what no client sees. nil: discarded.
	Log *slog.Logger
}
