// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/steer-dev/steer/apiserver"
	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/certificate"
	"github.com/steer-dev/steer/storage"
	"github.com/steer-dev/steer/storage/local"
)

// stopTimeout bounds how long requests in flight get when the server ends.
const stopTimeout = 30 * time.Second

// program is a server while it runs.
type program struct {
	Server
	options   Options
	log       *slog.Logger
	resources []*resource.Resource
	store     storage.Store
	listener  net.Listener
	draining  chan struct{} // closed when the server was told to stop
}

// home is where the users and the certificate of a server come from: a cluster, or itself.
type home struct {
	authenticator auth.Authenticator
	authorizer    auth.Authorizer
	admission     resource.Admissions
	checks        []apiserver.Check
	// keeper keeps the authority of the certificate; nil with certificate files.
	keeper *certificate.Keeper
	// run keeps all that up to date until ctx ends.
	run func(ctx context.Context)
}

// serve is [Run] after the options were read.
func serve(ctx context.Context, s Server, o Options) (err error) {
	p := &program{Server: s, options: o, log: o.Log, draining: make(chan struct{})}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := p.install(ctx); err != nil {
		return err
	}
	if err := p.open(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.store.Close()) }()
	if p.listener = o.Listener; p.listener == nil {
		if p.listener, err = new(net.ListenConfig).Listen(ctx, "tcp", o.Address); err != nil {
			return fmt.Errorf("extension: %w; choose another address (--bind-address)", err)
		}
	}
	defer func() { _ = p.listener.Close() }() // it is closed by the HTTP server, if there was one
	h, err := p.home(ctx)
	if err != nil {
		return err
	}
	server, err := p.server(h)
	if err != nil {
		return err
	}
	return p.serve(ctx, h, server)
}

// install makes the resources.
func (p *program) install(ctx context.Context) error {
	kinds, err := p.Kinds(ctx)
	if err != nil {
		return fmt.Errorf("extension: the kinds of %s: %w", p.Name, err)
	}
	for _, k := range kinds {
		r, err := k.Resource()
		if err != nil {
			return err
		}
		p.resources = append(p.resources, r)
	}
	return nil
}

// open opens the store.
func (p *program) open() (err error) {
	switch {
	case p.Store != nil:
		if p.store, err = p.Store(p.options); err != nil {
			return fmt.Errorf("extension: open the store of %s: %w", p.Name, err)
		}
		return nil
	case p.options.DataDir == "":
		if slices.ContainsFunc(p.resources, func(r *resource.Resource) bool { return r.Backend == nil }) {
			p.log.Warn("Objects are kept in memory: a restart loses them, and other replicas do not have them", "advice", "name a directory (--data-dir)")
		}
		p.store = storage.NewMemory(storage.MemoryOptions{})
		return nil
	}
	kept, err := local.Open(filepath.Join(p.options.DataDir, "objects"), local.Options{})
	if err != nil {
		return err
	}
	p.store = kept
	return nil
}

func (p *program) home(ctx context.Context) (*home, error) {
	if p.options.Cluster == nil {
		return p.alone()
	}
	return p.behind(ctx)
}

// server returns the API server with its resources.
func (p *program) server(h *home) (*apiserver.Server, error) {
	checks := append(slices.Concat(h.checks, p.options.Checks), apiserver.Check{Name: "drain", ReadyOnly: true, Run: func() error {
		select {
		case <-p.draining:
			return errors.New("the server was told to stop")
		default:
			return nil
		}
	}})
	if h.keeper != nil {
		checks = append(checks, apiserver.Check{Name: "certificate", ReadyOnly: true, Run: h.keeper.Check})
	}
	admission := h.admission
	if p.Admission != nil {
		admission = append(admission, p.Admission)
	}
	server, err := apiserver.New(apiserver.Options{
		Store: p.store, Authenticator: h.authenticator, Authorizer: h.authorizer, Admission: admission,
		Limits: p.options.Limits, Checks: checks, Metrics: p.options.Metrics, Log: p.log,
	})
	if err != nil {
		return nil, err
	}
	return server, server.Install(p.resources...)
}

// serve listens until ctx ends.
func (p *program) serve(ctx context.Context, h *home, server *apiserver.Server) error {
	var background sync.WaitGroup
	defer background.Wait()
	keeping, end := context.WithCancel(context.WithoutCancel(ctx)) // until the last request is answered
	defer end()
	background.Go(func() { h.run(keeping) })
	get, err := p.certificate(ctx, h.keeper)
	if err != nil {
		return err
	}
	hs := server.HTTPServer()
	hs.ErrorLog = slog.NewLogLogger(p.log.Handler(), slog.LevelDebug)
	hs.TLSConfig = p.options.TLS.Config(get)
	hs.TLSConfig.ClientAuth = tls.RequestClientCert // whether it is good is for the authenticator to say
	served := make(chan error, 1)
	go func() { served <- hs.ServeTLS(server.Bound(p.listener), "", "") }()
	if h.keeper != nil {
		h.keeper.Listening()
	}
	p.log.Info("Serving", "server", p.Name, "address", p.listener.Addr().String())
	beside, cancel := context.WithCancel(keeping)
	defer cancel()
	failed := p.background(beside, server)
	select {
	case err := <-served:
		cancel()
		failure := <-failed
		ended, end := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		defer end()
		return errors.Join(fmt.Errorf("extension: serve: %w", err), failure, server.Stop(ended))
	case err := <-failed:
		return errors.Join(err, stop(server, hs, served))
	case <-ctx.Done():
	}
	close(p.draining)
	time.Sleep(p.options.Drain)
	cancel()
	return errors.Join(<-failed, stop(server, hs, served))
}

// background runs what the author runs beside the server. The channel has its error, or is
// closed when it has ended because ctx has.
func (p *program) background(ctx context.Context, server *apiserver.Server) <-chan error {
	ended := make(chan error, 1)
	go func() {
		defer close(ended)
		if p.Background == nil {
			<-ctx.Done()
			return
		}
		err := p.Background(ctx, &rest.Config{
			Host: "https://" + p.Name, Transport: server.RoundTripper(&auth.User{Name: "system:apiserver", Groups: []string{auth.Masters}}), QPS: -1,
		})
		switch {
		case err != nil && !errors.Is(err, context.Canceled):
			ended <- fmt.Errorf("extension: what runs beside %s: %w", p.Name, err)
		case ctx.Err() == nil:
			ended <- fmt.Errorf("extension: what runs beside %s has ended: let Background return when its context ends", p.Name)
		}
	}()
	return ended
}

// certificate returns what the server shows: the certificate of files, or one of its
// authority, for which it waits.
func (p *program) certificate(ctx context.Context, keeper *certificate.Keeper) (get func(*tls.ClientHelloInfo) (*tls.Certificate, error), err error) {
	if keeper == nil {
		source, err := certificate.Open(p.options.TLS, certificate.Options{
			Server: "API", Advice: "check --cert-path, or leave it out for an authority of the server's own", Log: p.log,
		})
		if err != nil {
			return nil, err
		}
		return source.Get, nil
	}
	select {
	case <-keeper.Issued():
		return keeper.Get, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("extension: the server was told to stop before it had a certificate: %w", keeper.Check())
	}
}

// stop ends watches, then the requests in flight, then connections.
func stop(server *apiserver.Server, hs *http.Server, served <-chan error) error {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	err := server.Stop(ctx)
	if failed := hs.Shutdown(ctx); failed != nil {
		err = errors.Join(err, failed, hs.Close())
	}
	if ended := <-served; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	return err
}

// port returns the port that the server listens on.
func (p *program) port() int {
	if tcp, ok := p.listener.Addr().(*net.TCPAddr); ok {
		return tcp.Port
	}
	return 443
}

// url returns where clients on this machine reach the server.
func (p *program) url() string {
	host := "127.0.0.1"
	if tcp, ok := p.listener.Addr().(*net.TCPAddr); ok && !tcp.IP.IsUnspecified() {
		host = tcp.IP.String()
	}
	return "https://" + net.JoinHostPort(host, fmt.Sprint(p.port()))
}

// certificateNames are the names under which the server is reached.
func (p *program) certificateNames() []string {
	names := []string{"localhost", "127.0.0.1", "::1"}
	if p.options.Cluster != nil {
		names = append([]string{"*." + p.options.Service.Namespace + ".svc"}, names...)
	}
	if tcp, ok := p.listener.Addr().(*net.TCPAddr); ok && !tcp.IP.IsUnspecified() && !tcp.IP.IsLoopback() {
		names = append(names, tcp.IP.String())
	}
	return names
}
