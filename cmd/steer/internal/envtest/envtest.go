// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package envtest holds the programs that stand in for those of envtest, and for the one that
// installs them: an etcd that is asked for its health only, a kube-apiserver that is the control
// plane, and a setup-envtest.
package envtest

import (
	"context"
	"crypto/tls"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/util/cert"

	"github.com/steer-dev/steer/cmd/steer/internal/command"
	"github.com/steer-dev/steer/cmd/steer/internal/planeflags"
	"github.com/steer-dev/steer/controlplane"
	"github.com/steer-dev/steer/storage/durable"
)

// Names of the programs that envtest starts. Under them this one stands in:
// the control plane is the kube-apiserver, the etcd is only asked for its health.
const (
	etcdName      = "etcd"
	apiserverName = "kube-apiserver"
)

// Programs returns the names under which this program stands in for another one.
func Programs() []string { return []string{etcdName, apiserverName, setupName} }

// New returns what the program is under the name of another one, nil if it does not stand
// in for that.
func New(name string) *cobra.Command {
	switch name {
	case etcdName:
		return newEtcdCommand()
	case apiserverName:
		return NewAPIServer(nil)
	case setupName:
		return newSetupCommand()
	}
	return nil
}

const (
	// redialAfter is how long after the end of a connection to etcd a new one is
	// tried.
	redialAfter = 100 * time.Millisecond
	// firstConnection is how long an etcd waits for its first connection. envtest
	// connects at once, or has been killed.
	firstConnection = time.Minute
)

// Flags of etcd and kube-apiserver that have no effect here.
var (
	//go:embed flags/etcd.txt
	idleEtcdFlags string
	//go:embed flags/kube-apiserver.txt
	idleAPIServerFlags string
)

// newEtcdCommand is the whole program under etcd's name.
func newEtcdCommand() *cobra.Command {
	var clients []string
	cmd := newStandIn(etcdName, "Say that the store is healthy; Steer's kube-apiserver keeps the data itself.", idleEtcdFlags,
		func(ctx context.Context, _ io.Writer) error { return serveHealth(ctx, clients) })
	f := cmd.Flags()
	f.StringSliceVar(&clients, "listen-client-urls", []string{"http://localhost:2379"}, "where /health is served")
	// What envtest always gives: right, but there is nothing to do for it.
	f.StringSlice("advertise-client-urls", nil, "no effect")
	f.StringSlice("listen-peer-urls", nil, "no effect: there are no peers")
	f.String("data-dir", "", "no effect: there are no data")
	f.Bool("unsafe-no-fsync", false, "no effect: nothing is written")
	return cmd
}

// NewAPIServer is the whole program under kube-apiserver's name. Its objects are in a store; nil: in
// memory.
func NewAPIServer(objects Store) *cobra.Command {
	s := apiserverFlags{objects: objects}
	from, idle := "Serve an empty control plane from memory", idleAPIServerFlags
	if objects != nil {
		from, idle = "Serve a control plane whose objects are in etcd", without(idle, objects)
	}
	cmd := newStandIn(apiserverName, from+", until it is told to end or its parent has ended.\n"+
		"Controllers run as the environment variable "+controllersVariable+" says: all, or names as of kube-controller-manager; none unless it is set.", idle, s.run)
	f := cmd.Flags()
	f.IPVar(&s.address, "bind-address", net.IPv4(127, 0, 0, 1), "address to serve on")
	f.Uint16Var(&s.port, "secure-port", 6443, "port to serve on")
	f.StringVar(&s.certDir, "cert-dir", "", "directory of apiserver.crt and apiserver.key, which are made if they are not there; empty: a certificate in memory")
	f.StringVar(&s.certFile, "tls-cert-file", "", "certificate to serve with, in place of the one in --cert-dir")
	f.StringVar(&s.keyFile, "tls-private-key-file", "", "its private key")
	f.StringVar(&s.clientCA, "client-ca-file", "", "authorities whose client certificates are accepted")
	f.StringVar(&s.tokenFile, "token-auth-file", "", `bearer tokens to accept: lines of token,user,uid,"group,group"`)
	planeflags.AddServiceRanges(f, &s.serviceIPs)
	f.StringSliceVar(&s.hsts, "strict-transport-security-directives", nil, "directives of the header Strict-Transport-Security of all answers")
	f.IntVar(&s.minWatch, "min-request-timeout", 1800, "seconds that a watch without a time limit of its own lasts at least")
	f.DurationVar(&s.requestLimit, "request-timeout", time.Minute, "how long requests other than watches may take")
	s.kubelets.AddFlags(f)
	f.StringSliceVar(&s.gates, "feature-gates", nil, "NAME=true or NAME=false for feature gates of Kubernetes: only admission plugins can be switched off, any other change is refused")
	f.StringSliceVar(&s.runtimeConfig, "runtime-config", nil, "GROUP/VERSION=true for versions that are served, =false for others; what is not served is refused")
	if objects == nil {
		f.StringSliceVar(&s.etcdServers, "etcd-servers", nil, "end when the first of these does; the data are in this process")
	} else {
		objects.AddFlags(f)
		f.Lookup("cert-dir").Usage += "; also the authorities and keys that all servers of one etcd share, of which the first makes what is not there"
	}
	f.IntVarP(&s.verbosity, "v", "v", 0, "above 0: log what no client sees")
	f.IPVar(&s.advertise, "advertise-address", nil, "address to which the Service kubernetes leads (default: that of --bind-address)")
	s.peer.AddFlags(f)
	// What envtest always gives: right, but there is nothing to do for it.
	f.Bool("allow-privileged", true, "no effect: nothing runs Pods")
	planeflags.AddAdmissionControl(f, &s.admissionControl)
	s.audit.AddFlags(f)
	s.who.register(f)
	s.may.register(f)
	cmd.PreRun = func(*cobra.Command, []string) { s.flags = planeflags.Values(f) }
	return cmd
}

// newStandIn makes the command line of another program: flags that it has and
// we do nothing about are accepted, with a note; any others are mistakes. Its
// run ends with the process that started it.
func newStandIn(name, short, idle string, run func(ctx context.Context, notes io.Writer) error) *cobra.Command {
	// Not the flag of the library: a sentence of our own would be a template, which
	// calls methods by name, and then the linker has to keep every method there is.
	var version bool
	cmd := &cobra.Command{
		Use: name, Short: short, SilenceErrors: true, SilenceUsage: true,
		// Old test suites give empty arguments where a template came to nothing.
		Args: func(_ *cobra.Command, args []string) error {
			if i := slices.IndexFunc(args, func(arg string) bool { return arg != "" }); i >= 0 {
				return fmt.Errorf("%s takes flags only, but was given %q", name, args[i])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if version {
				fmt.Fprintf(cmd.OutOrStdout(), "steer %s as %s (Kubernetes API 1.37)\n", command.Version(), name)
				return nil
			}
			parent, err := awaitParent()
			if err != nil {
				return fmt.Errorf("cannot watch the parent process: %w", err)
			}
			cmd.Flags().Visit(func(f *pflag.Flag) {
				if _, ok := f.Value.(*idleValue); ok {
					cmd.PrintErrf("steer: --%s has no effect here\n", f.Name)
				}
			})
			ctx, cancel := context.WithCancel(cmd.Context())
			defer cancel()
			go func() {
				select {
				case <-parent:
					cancel()
				case <-ctx.Done():
				}
			}()
			return run(ctx, cmd.ErrOrStderr())
		},
	}
	cmd.Flags().BoolVar(&version, "version", false, "version for "+name)
	for line := range strings.Lines(idle) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		flag, bare := strings.CutSuffix(line, "*")
		f := cmd.Flags().VarPF(new(idleValue), flag, "", "no effect")
		f.Hidden = true
		if bare {
			f.NoOptDefVal = "true"
		}
	}
	return cmd
}

// idleValue is the value of a flag that is accepted and has no effect.
type idleValue struct{ text string }

func (v *idleValue) Set(text string) error { v.text = text; return nil }
func (v *idleValue) String() string        { return v.text }
func (v *idleValue) Type() string          { return "value" }

// serveHealth answers as a healthy etcd on all addresses until ctx ends.
func serveHealth(ctx context.Context, clients []string) error {
	var listeners []net.Listener
	for _, client := range clients {
		u, err := url.Parse(client)
		if err != nil || u.Scheme != "http" || u.Port() == "" {
			return fmt.Errorf("--listen-client-urls: %q is not of the form http://HOST:PORT; nothing else is served", client)
		}
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", u.Host)
		if err != nil {
			return cannotListen(err, u.Host, "--listen-client-urls")
		}
		listeners = append(listeners, l)
	}
	return serveHealthOn(ctx, listeners...)
}

// serveHealthOn is serveHealth on what listens already.
func serveHealthOn(ctx context.Context, listeners ...net.Listener) error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"health":"true","reason":""}`) // the client has gone
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "this is steer in place of etcd: it holds no data, steer's kube-apiserver keeps them itself", http.StatusNotImplemented)
	})
	asked := make(chan struct{})
	first := sync.OnceFunc(func() { close(asked) })
	server := &http.Server{
		Handler: mux, ReadHeaderTimeout: 10 * time.Second,
		ConnState: func(net.Conn, http.ConnState) { first() },
	}
	failed := make(chan error, len(listeners))
	for _, l := range listeners {
		go func() { failed <- server.Serve(l) }()
	}
	unused := time.NewTimer(firstConnection)
	defer unused.Stop()
	for {
		select {
		case <-ctx.Done():
			return server.Close()
		case err := <-failed:
			return errors.Join(err, server.Close())
		case <-asked:
			asked = nil
			unused.Stop()
		case <-unused.C:
			return errors.Join(errors.New("no request for the health of this etcd arrived: the process that started it has ended"), server.Close())
		}
	}
}

// apiserverFlags are the flags of kube-apiserver that have an effect.
type apiserverFlags struct {
	objects           Store // nil: memory
	address           net.IP
	port              uint16
	advertise         net.IP
	peer              planeflags.Peer
	certDir           string
	certFile, keyFile string
	clientCA          string
	tokenFile         string
	serviceIPs        []string
	hsts              []string
	minWatch          int // seconds
	requestLimit      time.Duration
	kubelets          planeflags.Kubelets
	gates             []string
	runtimeConfig     []string
	etcdServers       []string
	verbosity         int
	admissionControl  string
	audit             planeflags.Audit
	who               authenticationFlags
	may               authorizationFlags
	flags             map[string]string // all of them with their values
}

// run serves until ctx ends.
func (s *apiserverFlags) run(ctx context.Context, notes io.Writer) error {
	options, err := s.options(notes)
	if err != nil {
		return err
	}
	if s.objects != nil {
		return s.serveFrom(ctx, s.objects, options)
	}
	etcd, err := awaitEtcd(ctx, s.etcdServers, new(net.Dialer).DialContext)
	if err != nil {
		return err
	}
	plane, err := controlplane.New(options)
	if err != nil {
		return err
	}
	if err := plane.Start(ctx); err != nil {
		return cannotListen(err, options.Listen, "--secure-port or --bind-address")
	}
	select {
	case <-ctx.Done():
	case <-etcd:
	}
	// Nothing outlives the process, so that nothing is waited for.
	return nil
}

// dialer opens a connection, as [net.Dialer.DialContext] does.
type dialer func(ctx context.Context, network, address string) (net.Conn, error)

// awaitEtcd returns a channel that is closed when the first of the servers has
// ended; nil if there is none to watch. A parent that is killed while this program
// starts cannot be told from its heir, but the etcd it started ends with it.
func awaitEtcd(ctx context.Context, servers []string, connect dialer) (<-chan struct{}, error) {
	if len(servers) == 0 {
		return nil, nil
	}
	u, err := url.Parse(servers[0])
	if err != nil {
		return nil, fmt.Errorf("--etcd-servers: %w", err)
	}
	if u.Scheme != "http" {
		return nil, nil
	}
	dial := func() (net.Conn, error) {
		conn, err := connect(ctx, "tcp", u.Host)
		if err == nil {
			// A connection that never asks for anything is closed by the other side.
			_, err = fmt.Fprintf(conn, "GET /health HTTP/1.1\r\nHost: %s\r\n\r\n", u.Host)
		}
		return conn, err
	}
	conn, err := dial()
	if err != nil {
		return nil, fmt.Errorf("--etcd-servers: no etcd answers: %w: start it first", err)
	}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		for err == nil {
			_, _ = io.Copy(io.Discard, conn) // ends with the connection, whatever the reason
			_ = conn.Close()                 // it has ended
			select {
			case <-ctx.Done():
				return
			case <-time.After(redialAfter):
			}
			conn, err = dial()
		}
	}()
	return gone, nil
}

func (s *apiserverFlags) options(notes io.Writer) (controlplane.Options, error) {
	if s.port == 0 {
		return controlplane.Options{}, errors.New("--secure-port: must be between 1 and 65535")
	}
	o := controlplane.Options{
		Listen:  net.JoinHostPort(s.address.String(), strconv.Itoa(int(s.port))),
		Version: command.Version(), Flags: s.flags,
	}
	switch {
	case s.verbosity > 0:
		o.Log = slog.New(slog.NewTextHandler(notes, &slog.HandlerOptions{Level: slog.LevelDebug}))
	case s.objects != nil:
		o.Log = slog.New(slog.NewTextHandler(notes, &slog.HandlerOptions{Level: slog.LevelError}))
	}
	if ip, given := netip.AddrFromSlice(s.advertise); given && !ip.IsUnspecified() {
		o.Advertise = netip.AddrPortFrom(ip.Unmap(), 0)
	}
	if err := s.peer.Apply(&o); err != nil {
		return o, err
	}
	authorizer, err := s.may.authorizer()
	if err != nil {
		return o, err
	}
	o.Authorizer = authorizer
	if o.ServiceRanges, err = planeflags.ServiceRanges(s.serviceIPs); err != nil {
		return o, err
	}
	if s.minWatch < 0 || s.requestLimit < 0 {
		return o, errors.New("--min-request-timeout and --request-timeout cannot be negative")
	}
	o.StrictTransportSecurity = s.hsts
	o.Limits.MinWatch, o.Limits.RequestTimeout = orNone(time.Duration(s.minWatch)*time.Second), orNone(s.requestLimit)
	if err := s.kubelets.Apply(&o.Kubelets); err != nil {
		return o, err
	}
	if err := planeflags.ReadTokens(&o, s.tokenFile); err != nil {
		return o, fmt.Errorf("--token-auth-file: %w", err)
	}
	if err := planeflags.ReadAdmissionControl(&o, s.admissionControl); err != nil {
		return o, err
	}
	if err := s.audit.Apply(&o, os.Stdout); err != nil {
		return o, err
	}
	o.Disable = s.who.disabled(notes)
	if err := setGates(s.gates, &o); err != nil {
		return o, err
	}
	if o.Serve, err = readRuntimeConfig(s.runtimeConfig, notes); err != nil {
		return o, err
	}
	if err := selectControllers(os.Getenv(controllersVariable), &o); err != nil {
		return o, err
	}
	keys, err := s.keys()
	if err != nil {
		return o, err
	}
	o.Authentication.Keys = keys
	if err := s.who.apply(&o.Authentication); err != nil {
		return o, err
	}
	if slices.Contains(s.may.modes, "AlwaysAllow") && o.Authentication.AnonymousPaths == nil {
		o.Authentication.AnonymousPaths = openPaths() // it is not combined with anonymous requests
	}
	if s.clientCA != "" {
		if keys.Clients, err = cert.CertsFromFile(s.clientCA); err != nil {
			return o, fmt.Errorf("--client-ca-file: %w", err)
		}
	}
	keys.Serving, err = s.certificate()
	return o, err
}

// keys returns new ones, or those that all servers of an etcd share.
func (s *apiserverFlags) keys() (*controlplane.Keys, error) {
	switch {
	case s.objects == nil:
		return controlplane.NewKeys()
	case s.certDir == "":
		return nil, errors.New("--cert-dir is missing: name a folder for the authorities and keys, which all servers of one etcd share")
	}
	return controlplane.OpenKeys(s.certDir)
}

// orNone is a limit of [apiserver.Limits], where 0 is the usual one and negative is none.
func orNone(limit time.Duration) time.Duration {
	if limit == 0 {
		return -1
	}
	return limit
}

// certificate returns the one to serve with, nil for one that the plane makes.
func (s *apiserverFlags) certificate() (*tls.Certificate, error) {
	certFile, keyFile, flags := s.certFile, s.keyFile, "--tls-cert-file and --tls-private-key-file"
	switch {
	case certFile == "" && keyFile == "" && s.certDir == "":
		return nil, nil
	case certFile == "" && keyFile == "":
		certFile, keyFile, flags = filepath.Join(s.certDir, "apiserver.crt"), filepath.Join(s.certDir, "apiserver.key"), "--cert-dir"
		if err := s.ensureCertificate(certFile, keyFile); err != nil {
			return nil, fmt.Errorf("--cert-dir: %w", err)
		}
	}
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flags, err)
	}
	return &pair, nil
}

// ensureCertificate makes what is not there: a key and a certificate by itself.
func (s *apiserverFlags) ensureCertificate(certFile, keyFile string) error {
	if _, err := os.Stat(certFile); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	certPEM, keyPEM, err := cert.GenerateSelfSignedCertKey(s.address.String(), nil, []string{"localhost", "kubernetes.default.svc", "kubernetes.default", "kubernetes"})
	if err != nil {
		return err
	}
	if err := durable.MkdirAll(s.certDir, 0o755); err != nil {
		return err
	}
	// A key without its certificate is made anew.
	if err := durable.WriteFile(keyFile, keyPEM, 0o600); err != nil {
		return err
	}
	return durable.WriteFile(certFile, certPEM, 0o644)
}

// cannotListen says what to do about an address that cannot be had.
func cannotListen(err error, address, flags string) error {
	var op *net.OpError
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%s is in use by another program: stop that, or choose another address with %s", address, flags)
	case errors.As(err, &op) && op.Op == "listen":
		return fmt.Errorf("cannot listen on %s: %w: choose another address with %s", address, op.Err, flags)
	}
	return err
}
