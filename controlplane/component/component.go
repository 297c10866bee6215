// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package component describes what a control plane consists of: resources, admission plugins,
// controllers, health checks, first objects.
//
// A [Component] is made over [Deps], which are complete: the server exists before its parts,
// so that a part may send requests to it. A [List] of parts is a control plane, once it is
// bound to the server:
//
//	server, err := apiserver.New(...)
//	parts := component.List{...}                    // each made with Deps{Server: server, ...}
//	server.Bind(apiserver.Bindings{Admission: parts.Admission(metrics), Checks: parts.Health()})
//	err = parts.Install(server)
//	writes, requests, err := parts.Boot(view, time.Now())
//	err = parts.Load(ctx)
package component

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/steer-dev/steer/apiserver"
	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/controlplane/webhookclient"
	"github.com/steer-dev/steer/storage"
)

// Deps are what parts are made of. All of them are safe for concurrent use.
type Deps struct {
	// Store that holds the objects.
	Store storage.Store
	// Server that the parts are going to be installed in.
	Server *apiserver.Server
	// Catalog of what the server serves.
	Catalog step.Catalog
	// Send carries out a request to the server, under the user that it names.
	Send step.Sender
	// Fetch carries out a request and returns the answer.
	Fetch step.Fetcher
	// Authorizer of the server.
	Authorizer auth.Authorizer
	// Entropy of the server.
	Entropy apiserver.Entropy
	// Progress of the control plane, for health checks.
	Progress Progress
	// Metrics receives what the parts measure, under the names of kube-apiserver; see
	// [Deps.Measure]. nil: nothing is registered.
	Metrics prometheus.Registerer
	// Log receives what no client sees. nil: discarded.
	Log *slog.Logger
	// Upkeep does what the parts do for themselves, where that may be refused.
	Upkeep *Upkeep
	// Webhooks calls webhooks.
	Webhooks *webhookclient.Client
}

// Measure registers collectors of a part. It panics if one of that name is registered.
func (d *Deps) Measure(collectors ...prometheus.Collector) {
	if d.Metrics != nil {
		d.Metrics.MustRegister(collectors...)
	}
}

// Logger returns the log of a part, never nil.
func (d *Deps) Logger() *slog.Logger {
	if d.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return d.Log
}

// Progress is how far a control plane has come. Each function returns nil, or why a check
// fails.
type Progress struct {
	// Booted: the objects of [Component.Boot] are stored, and [Component.Load] has returned.
	Booted func() error
	// Announced: the address of the listener, if there is one, and the ways to
	// authenticate are stored.
	Announced func() error
	// Running: the control plane has booted, and its controllers have not failed.
	Running func() error
}

// Component is one piece of a control plane. Only Name is required; a field that is not set
// adds nothing.
type Component struct {
	// Name is that of the admission plugin or of the controller, as kube-apiserver and
	// kube-controller-manager have it; otherwise it says in lower case what the part
	// holds. Each part of a list has its own.
	Name string
	// Optional parts can be left out; see [List.Without].
	Optional bool

	// Resources that the part serves.
	Resources []*resource.Resource
	// Extend adds to resources of other parts, or to its own.
	Extend []Extension
	// Handlers serve paths outside the resource API.
	Handlers map[string]http.Handler

	// Admission of writes, and the resources that it handles, by the names that
	// CustomResourceDefinitions have: "pods", "deployments.apps". Without For it handles
	// all.
	Admission resource.Admission
	For       []string
	// Repeats reports that the plugin may ask for a second round of the mutating pass of
	// itself and of all plugins before it, with [resource.Round.Repeat].
	Repeats bool

	// Controller of the part. Where several servers share the store, that of the leader runs.
	Controller step.Controller
	// OnEachServer reports that the controllers of all servers run, because each acts on what
	// its own server knows. What one writes goes to the server that leads, as of any client.
	OnEachServer bool
	// Health checks of the part.
	Health []apiserver.Check

	// Boot returns what is missing in a view of the store: writes of new objects, and
	// requests that restore changed ones. It runs when a control plane starts, after all
	// resources are installed and before any request is answered. What of it is refused is
	// tried again, with a newer view; see [Upkeep].
	Boot func(view storage.View, now time.Time) ([]storage.Write, []step.Request, error)
	// Load reads from the store what the part keeps in memory. It runs after the Boot of
	// all parts. Where several servers share the store it runs again, on each of them, after
	// writes to the buckets in Follows; a call that finds nothing new changes nothing.
	Load    func(context.Context) error
	Follows []string
	// Lead runs on one of several servers of a store when it begins to execute requests,
	// before the first one; on one that has its store for itself, once. What the part keeps of
	// requests that it has executed is of an earlier term: others may have executed some since.
	// It sends no requests: what an earlier term has left to do is for [Upkeep].
	Lead func(context.Context) error
	// Close ends what the part has opened.
	Close func()
}

// Extension is what a part adds to a resource, in every version of it.
type Extension struct {
	// Resource is named as in [Component.For].
	Resource string
	// Subresources are added to those that it has.
	Subresources []resource.Subresource
	// Strategy returns the strategy that replaces the one of the resource, Status the
	// one that replaces that of its subresource "status". nil: it stays.
	Strategy, Status func(resource.Strategy) resource.Strategy
	// Committed runs after that of the resource, and after those of the parts before
	// this one; see [resource.Resource].
	Committed func(ctx context.Context, change resource.Change) error
}

// Controller is the part of a controller that can be left out.
func Controller(c step.Controller) Component {
	return Component{Name: c.Name(), Optional: true, Controller: c}
}

// ServerController is the part of a controller that is an API server's own, or takes the
// place of something that an API server does, and cannot be left out.
func ServerController(c step.Controller) Component { return Component{Name: c.Name(), Controller: c} }

// Plugin is the part of an admission plugin that can be left out.
func Plugin(name string, a resource.Admission, resources ...string) Component {
	return Component{Name: name, Optional: true, Admission: a, For: resources}
}

// Hooks are health checks by the names that kube-apiserver has for the hooks of its start.
func Hooks(run func() error, names ...string) []apiserver.Check {
	var out []apiserver.Check
	for _, name := range names {
		out = append(out, apiserver.Check{Name: "poststarthook/" + name, Run: run})
	}
	return out
}
