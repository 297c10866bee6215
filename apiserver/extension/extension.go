// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package extension is the front door of a custom API server: what its main needs.
//
//	func main() {
//		extension.Main(extension.Server{
//			Name: "notes",
//			Kinds: func(context.Context) ([]extension.Kind, error) {
//				return []extension.Kind{custom.Kind[*v1.Note]{Definition: definition}}, nil
//			},
//		})
//	}
//
// The same program runs behind a cluster and alone. Behind a cluster (--kubeconfig, or in a
// Pod) it registers an APIService for each version that it serves; its users are those of
// the cluster, with the rights that they have there. Alone (--standalone) it writes a
// kubeconfig for kubectl. Its certificate comes from an authority of its own, which replicas
// share and which is replaced before it expires. Health is at /healthz, /livez and /readyz,
// metrics are at /metrics.
//
// # Rights
//
// Behind a cluster, the server's ServiceAccount needs the ClusterRole
// system:auth-delegator, the Role extension-apiserver-authentication-reader in kube-system,
// and these:
//
//	+kubebuilder:rbac:groups="",resources=secrets,verbs=create
//	+kubebuilder:rbac:groups="",resources=secrets,resourceNames=NAME-ca,verbs=get;update
//	+kubebuilder:rbac:groups="",resources=namespaces,verbs=get
//	+kubebuilder:rbac:groups=apiregistration.k8s.io,resources=apiservices,verbs=create
//	+kubebuilder:rbac:groups=apiregistration.k8s.io,resources=apiservices,resourceNames=VERSION.GROUP,verbs=get;patch
//
// With --external-name it also needs create on services, and patch on that of its name.
package extension

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/client-go/rest"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/storage"
)

// Kind is a kind that a server serves; [custom.Kind] implements it.
//
// [custom.Kind]: https://pkg.go.dev/github.com/steer-dev/steer/apiserver/custom#Kind
type Kind interface {
	// Resource returns the resource of the kind.
	Resource() (*resource.Resource, error)
}

// Server is a custom API server. Name and Kinds are required.
type Server struct {
	// Name of the server, such as "notes": the default name of its Service, and the field
	// manager of its APIServices. Its Secret is NAME-ca.
	Name string
	// Kinds returns what is served. It is called once, when flags have been read; ctx ends
	// with the server.
	Kinds func(ctx context.Context) ([]Kind, error)
	// Admission decides on writes, after the rules of the kinds. nil: nothing is refused.
	// The admission webhooks and policies of the cluster are not consulted.
	Admission resource.Admission
	// Store opens the store of the kinds without a backend, when flags have been read; the
	// server closes it. nil: one in Options.DataDir, without a directory one in memory.
	Store func(o Options) (storage.Store, error)
	// Background runs beside the server, such as the controllers of its kinds, and returns
	// when ctx ends, which is before the server stops; an error ends the server. loopback
	// sends requests to the server itself, in process and as a member of system:masters:
	// they are neither authenticated nor authorized by the cluster. nil: nothing runs.
	Background func(ctx context.Context, loopback *rest.Config) error
	// Flags registers flags of the author's own beside the standard ones. nil: none.
	Flags func(*flag.FlagSet)
	// Configure changes the options after flags and environment have been read. It may name
	// the cluster, as tests do: there need be no kubeconfig then. nil: nothing is changed.
	Configure func(*Options)
}

// ErrUsage is wrapped by errors about flags and arguments.
var ErrUsage = errors.New("usage")

// Main runs a server with the arguments of the process until SIGINT or SIGTERM, and exits:
// with status 0 when it was told to stop, 2 when the arguments are wrong, 1 otherwise. A
// second signal exits at once.
func Main(s Server) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal has its usual effect
	switch err := Run(ctx, os.Args[1:], s); {
	case err == nil, errors.Is(err, flag.ErrHelp):
		os.Exit(0)
	case errors.Is(err, ErrUsage):
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	default:
		slog.Error("the server ended", "server", s.Name, "error", err)
		os.Exit(1)
	}
}

// Run is Main without a process around it: it returns nil when ctx ends, or an error when
// the server fails.
func Run(ctx context.Context, args []string, s Server) error {
	if s.Name == "" || s.Kinds == nil {
		return errors.New("extension: Server.Name and Server.Kinds are required")
	}
	o, alone, err := parse(args, s)
	if err != nil {
		return err
	}
	var none error
	if !alone {
		o.Cluster, none = clusterOf(o.Kubeconfig)
		o.Kubeconfig = ""
	}
	if s.Configure != nil {
		s.Configure(&o)
	}
	if o.Cluster == nil && none != nil {
		return none
	}
	return serve(ctx, s, o.withDefaults(s.Name))
}
