// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/steer-dev/steer/apiserver"
	"github.com/steer-dev/steer/certificate"
)

// Options of a running server, as flags and environment set them. Limits, Checks and Metrics
// have no flags: [Server.Configure] sets them.
type Options struct {
	// Cluster is the cluster that the server belongs to. nil: the server stands alone.
	Cluster *rest.Config
	// Address to listen on. Empty: ":6443", alone "127.0.0.1:6443". The certificate of a
	// server that stands alone is for this machine, and for the IP that is named here.
	Address string
	// Listener is used in place of Address; the server closes it. nil: Address.
	Listener net.Listener
	// Service leads API servers here.
	Service Service
	// TLS names the files of a certificate. Without a directory the server has an authority
	// of its own; with one, it registers no APIService: apply it with the caBundle of the
	// certificate.
	TLS certificate.TLS
	// DataDir is the directory of the objects of kinds without a backend, and of the
	// certificate and token of a server that stands alone. Empty: nothing is kept on disk,
	// objects are in memory and a restart loses them. Replicas do not share it.
	DataDir string
	// Kubeconfig is the file that a server that stands alone writes, mode 0600. Empty: none.
	Kubeconfig string
	// Drain is how long the server goes on serving after it was told to stop, so that API
	// servers notice that it is not ready. 0: 10 s; alone, and with Service.ExternalName,
	// and if negative: not at all.
	Drain time.Duration
	// Limits of requests; the zero value is the default.
	Limits apiserver.Limits
	// Checks are health checks in addition to those of the server.
	Checks []apiserver.Check
	// Metrics receives the metrics of the server beside the author's own, and is served at
	// /metrics. nil: those of the server alone.
	Metrics *prometheus.Registry
	// Log receives what the owner should know. nil: [slog.Default].
	Log *slog.Logger
}

// Service leads the API servers of a cluster to a server.
type Service struct {
	// Namespace of the Service. Empty: the one that the process runs in; elsewhere
	// "default".
	Namespace string
	// Name of the Service. Empty: that of the server.
	Name string
	// Port of the Service. 0: 443, with ExternalName that of the address.
	Port int
	// ExternalName is a host at which the cluster reaches this process, such as a laptop:
	// the server then makes a Service of type ExternalName itself. Empty: the Service is
	// there.
	ExternalName string
}

func (o Options) withDefaults(name string) Options {
	address := ":6443"
	if o.Cluster == nil {
		address = "127.0.0.1:6443"
	}
	o.Address = cmp.Or(o.Address, address)
	o.Service.Namespace = cmp.Or(o.Service.Namespace, ownNamespace(), "default")
	o.Service.Name = cmp.Or(o.Service.Name, name)
	if o.Cluster == nil || o.Service.ExternalName != "" {
		o.Drain = 0
	} else {
		o.Drain = max(cmp.Or(o.Drain, 10*time.Second), 0)
	}
	o.Log = cmp.Or(o.Log, slog.Default())
	return o
}

// ownNamespace returns the namespace that the process runs in, "" outside of clusters.
func ownNamespace() string {
	if name := os.Getenv("POD_NAMESPACE"); name != "" {
		return name
	}
	text, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// parse reads the standard flags and the author's own. Options.Kubeconfig is the file to
// write if the server stands alone, otherwise that of the cluster.
func parse(args []string, s Server) (o Options, alone bool, err error) {
	var kubeconfig, write string
	set := flag.NewFlagSet(s.Name, flag.ContinueOnError)
	set.StringVar(&kubeconfig, "kubeconfig", "", "`file` that names the cluster; default $KUBECONFIG, the cluster this runs in")
	set.BoolVar(&alone, "standalone", false, "belong to no cluster: users have the token in the file of --write-kubeconfig")
	set.StringVar(&write, "write-kubeconfig", "", "with --standalone, the `file` to write; default "+s.Name+".kubeconfig")
	set.StringVar(&o.Address, "bind-address", "", "`address` to listen on; default :6443, with --standalone 127.0.0.1:6443")
	set.StringVar(&o.Service.Namespace, "service-namespace", "", "`namespace` of the Service that leads here; default $POD_NAMESPACE, the namespace this runs in, default")
	set.StringVar(&o.Service.Name, "service-name", "", "`name` of the Service that leads here; default "+s.Name)
	set.IntVar(&o.Service.Port, "service-port", 0, "`port` of the Service; default 443, with --external-name that of the address")
	set.StringVar(&o.Service.ExternalName, "external-name", "", "`host` at which the cluster reaches this process; the Service is then made, of type ExternalName")
	set.StringVar(&o.TLS.Dir, "cert-path", "", "`directory` with tls.crt and tls.key; default a certificate of an authority of the server's own")
	set.StringVar(&o.DataDir, "data-dir", "", "`directory` of the objects; default they are kept in memory")
	set.DurationVar(&o.Drain, "drain", 0, "how long to serve after the server was told to stop: a `duration`; default 10s, negative not at all")
	if s.Flags != nil {
		s.Flags(set)
	}
	if err := set.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return o, alone, err
		}
		return o, alone, fmt.Errorf("%w: %w; see --help", ErrUsage, err)
	}
	switch {
	case set.NArg() > 0:
		return o, alone, fmt.Errorf("%w: unexpected argument %q; see --help", ErrUsage, set.Arg(0))
	case alone && kubeconfig != "":
		return o, alone, fmt.Errorf("%w: --standalone belongs to no cluster: leave out --kubeconfig", ErrUsage)
	case alone:
		o.Kubeconfig = cmp.Or(write, s.Name+".kubeconfig")
		return o, alone, nil
	case write != "":
		return o, alone, fmt.Errorf("%w: --write-kubeconfig is for --standalone", ErrUsage)
	}
	o.Kubeconfig = cmp.Or(kubeconfig, os.Getenv(clientcmd.RecommendedConfigPathEnvVar))
	return o, alone, nil
}

// clusterOf returns the cluster of a kubeconfig file, or the one that the process runs in.
func clusterOf(kubeconfig string) (config *rest.Config, err error) {
	if kubeconfig == "" {
		config, err = rest.InClusterConfig()
	} else {
		config, err = clientcmd.BuildConfigFromFlags("", kubeconfig)
	}
	switch {
	case clientcmd.IsEmptyConfig(err): // its text advises a variable that is not read here
		err = fmt.Errorf("%s names no cluster", kubeconfig)
	case errors.Is(err, rest.ErrNotInCluster):
		err = errors.New("no kubeconfig is given, and this does not run in a cluster")
	}
	if err != nil {
		return nil, fmt.Errorf("extension: no cluster: %w; pass --kubeconfig, set KUBECONFIG, or run it alone with --standalone", err)
	}
	return config, nil
}
