// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/certificate"
	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/internal/connections"
	"github.com/steer-dev/steer/trace"
	"github.com/steer-dev/steer/webhook/conversion"
)

// Options of [New]. In a manager's options, the fields from Scheme on are the
// manager's unless given.
type Options struct {
	// Address of the server. Default ":9443"; "0" listens nowhere, and requests come
	// through [Server.ServeHTTP] alone.
	Address string
	// TLS of the server. Without files the certificate is that of Authority.
	TLS certificate.TLS
	// Authority signs the certificate where there are no files.
	Authority Authority
	// Disabled serves no webhook: the functions that add them check what they are
	// given, and that is all.
	Disabled bool
	// Drain is how long the server goes on serving after it was told to stop, so that
	// API servers that have not noticed yet are answered. Default 10 s; negative does not
	// wait, nor does a server with a self-signed certificate, which `steer dev` calls.
	Drain time.Duration
	// MaxConnections is how many connections are open at once: of one too many the newest of
	// the address that has the most is closed. Default 1,000; negative: no bound.
	MaxConnections int
	// Scheme knows the Go types of the kinds.
	Scheme *runtime.Scheme
	// Client keeps the Secret of Authority, and gives API servers its caBundle. nil
	// keeps none.
	Client client.Client
	// Context changes the context that handlers of admission requests are called with;
	// nil leaves it as it is. In a manager, cached reads in it wait until the caches have
	// been started and synced.
	Context func(context.Context) context.Context
	// OnMistake is called with a [NotIdempotentError] when a defaulter, called again with
	// what it has returned, changes the object once more, and with a [NotServedError] for
	// a call at a path that nothing serves. nil, the default, does not call defaulters again.
	OnMistake func(error)
	// Trace records the requests, beside reconciles; nil records nothing.
	Trace *trace.Recorder
	// Metrics measures the requests; nil measures nothing.
	Metrics Metrics
	// Log takes what the operator's owner should know. Default slog.Default().
	Log *slog.Logger
}

// Metrics measure webhooks. The methods must be fast and safe for concurrent use.
type Metrics interface {
	// WebhookAdded is called once for each path, before its first request.
	WebhookAdded(path string)
	// WebhookBegan is called when a request comes.
	WebhookBegan(path string)
	// WebhookEnded is called when it has been answered, with the HTTP status.
	WebhookEnded(path string, status int, took time.Duration)
	// WebhookPanicked is called when a handler, or a conversion, has panicked.
	WebhookPanicked(conversion bool)
	// CertificateRead is called when certificate files have been read, with the error.
	CertificateRead(err error)
}

const (
	defaultAddress = ":9443"
	defaultDrain   = 10 * time.Second
	defaultSecret  = "webhook-ca"
	// noAddress listens nowhere.
	noAddress = "0"
)

// ErrStarted is a second Start.
var ErrStarted = errors.New("webhook: the server has been started before, and is started once: make another one")

// Server answers API servers. It is made by [New], filled by [AddDefaulter] and its
// siblings, and run once by Start. Its methods are safe for concurrent use.
type Server struct {
	opts    Options
	started atomic.Bool
	// admissions and conversions bound the reviews.
	admissions, conversions bounds

	mu        sync.Mutex
	handlers  map[string]http.Handler
	converter *conversion.Converter
	converted []schema.GroupKind
	keeper    *certificate.Keeper // nil without an authority
	address   net.Addr            // nil while it does not listen
	stopping  bool
}

// New makes a server without webhooks.
func New(o Options) *Server {
	o.Address = cmp.Or(o.Address, defaultAddress)
	o.Drain = cmp.Or(o.Drain, defaultDrain)
	o.Authority.Secret = cmp.Or(o.Authority.Secret, defaultSecret)
	if o.Authority.Configurations == nil {
		o.Authority.Configurations = []string{"mutating-webhook-configuration", "validating-webhook-configuration"}
	}
	o.Log = cmp.Or(o.Log, slog.Default())
	return &Server{
		opts: o, handlers: map[string]http.Handler{}, converter: conversion.NewConverter(o.Scheme),
		admissions:  bounds{maxAdmission, bodyTimeout, newBudget(admissionBytes, admissionShare)},
		conversions: bounds{maxConversion, listTimeout, newBudget(conversionBytes, conversionBytes)},
	}
}

// handle serves a handler at a path.
func (s *Server) handle(path string, h Handler) error {
	if !strings.HasPrefix(path, "/") || strings.ContainsAny(path, "?#") {
		return fmt.Errorf("the path %q must begin with a slash, and have no query", path)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if path == conversionPath || s.handlers[path] != nil {
		return fmt.Errorf("the path %s is taken: give one of the two another one, with webhook.Path", path)
	}
	s.serve(path, admission{s, path, h})
	return nil
}

// serve adds a path. The lock is held.
func (s *Server) serve(path string, h http.Handler) {
	if s.opts.Metrics != nil {
		s.opts.Metrics.WebhookAdded(path)
	}
	s.handlers[path] = h
}

// Paths returns the paths that are served, sorted; none while webhooks are disabled.
func (s *Server) Paths() []string {
	if s.opts.Disabled {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]string, 0, len(s.handlers))
	for path := range s.handlers {
		out = append(out, path)
	}
	slices.Sort(out)
	return out
}

// Converts reports whether the server converts objects of a kind.
func (s *Server) Converts(kind schema.GroupKind) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.opts.Disabled && slices.Contains(s.converted, kind)
}

// Addr returns the address that the server listens on, nil while it does not.
func (s *Server) Addr() net.Addr {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.address
}

// Certificate returns the certificate of [Options.Authority], for other servers of the
// operator behind Services of its namespace: it is the GetCertificate of their TLS
// configuration. It is an error while there is none.
func (s *Server) Certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	s.mu.Lock()
	k := s.keeper
	s.mu.Unlock()
	if k != nil {
		if shown, err := k.Get(hello); shown != nil || err != nil {
			return shown, err
		}
	}
	return nil, errors.New("webhook: there is no certificate of the operator's own authority yet, or Options.TLS names files")
}

// idle reports whether there is nothing to serve, and nothing to keep.
func (s *Server) idle() bool {
	return len(s.Paths()) == 0 && (s.opts.Disabled || len(s.opts.Authority.APIServices) == 0)
}

// Ready reports nil while requests are answered, or there are no webhooks. It is a
// readiness check.
func (s *Server) Ready(*http.Request) error {
	if s.idle() {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.stopping:
		return errors.New("the webhooks are stopping")
	case !s.started.Load():
	case s.opts.Address == noAddress:
		return nil
	case s.keeper != nil:
		return s.keeper.Check()
	case s.address != nil:
		return nil
	}
	return errors.New("the webhooks are not served yet")
}

// Start serves until ctx ends and [Options.Drain] has passed, and returns when the
// last request has been answered. Without webhooks it only waits. It is called once.
func (s *Server) Start(ctx context.Context) error {
	if s.started.Swap(true) {
		return ErrStarted
	}
	if s.idle() || s.opts.Address == noAddress {
		if !s.idle() {
			s.opts.Log.Debug("Serving webhooks in process alone", "paths", s.Paths())
		}
		<-ctx.Done()
		s.stop()
		return nil
	}
	get, stopKeeping, err := s.certificates(ctx)
	if err != nil {
		return err
	}
	defer stopKeeping()
	if ctx.Err() != nil {
		s.stop()
		return nil
	}
	listener, err := net.Listen("tcp", s.opts.Address)
	if err != nil {
		return fmt.Errorf("webhook: %w; choose another port (--webhook-port)", err)
	}
	return s.serveOn(ctx, listener, get)
}

// serveOn is Start from the listener on.
func (s *Server) serveOn(ctx context.Context, listener net.Listener, get getCertificate) error {
	server := s.httpServer(ctx, get)
	s.mu.Lock()
	s.address = listener.Addr()
	if s.keeper != nil {
		s.keeper.Listening()
	}
	s.mu.Unlock()
	s.opts.Log.Info("Serving", "server", "webhooks", "address", listener.Addr().String(), "paths", s.Paths())

	broken := make(chan error, 1)
	go func() { broken <- server.ServeTLS(connections.Bound(listener, s.opts.MaxConnections), "", "") }()
	select {
	case err := <-broken:
		s.stop()
		return fmt.Errorf("webhook: serve: %w", err)
	case <-ctx.Done():
	}
	s.stop()
	s.drain(server)
	if err := <-broken; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("webhook: serve: %w", err)
	}
	return nil
}

// getCertificate is the GetCertificate of a TLS configuration.
type getCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error)

// certificates returns what the server shows: the certificate of its files, one of its
// authority, for which it waits, or a self-signed one. stop is called at the end.
func (s *Server) certificates(ctx context.Context) (get getCertificate, stop func(), err error) {
	if s.opts.TLS.Dir == "" && s.opts.Authority.Namespace != "" && s.opts.Client != nil {
		k := newKeeper(s)
		s.mu.Lock()
		s.keeper = k
		s.mu.Unlock()
		keeping, cancel := context.WithCancel(context.WithoutCancel(ctx))
		ended := make(chan struct{})
		go func() { defer close(ended); k.Run(keeping) }()
		select {
		case <-k.Issued():
		case <-ctx.Done():
		}
		return k.Get, func() { cancel(); <-ended }, nil
	}
	read := func(error) {}
	if s.opts.Metrics != nil {
		read = s.opts.Metrics.CertificateRead
	}
	source, err := certificate.Open(s.opts.TLS, certificate.Options{
		Server: "webhook", Advice: "check Options.Webhooks.TLS (--webhook-cert-path), or leave it empty for an authority of the operator's own", Read: read, Log: s.opts.Log,
	})
	if err != nil {
		return nil, nil, err
	}
	if s.opts.TLS.Dir == "" {
		s.opts.Log.Warn("the webhooks have a self-signed certificate, which API servers do not trust", "advice",
			"give certificate files (--webhook-cert-path), or the namespace of the operator (POD_NAMESPACE) for an authority of its own; `steer dev` needs neither")
	}
	return source.Get, func() {}, nil
}

func (s *Server) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopping, s.address = true, nil
}

func (s *Server) httpServer(ctx context.Context, get getCertificate) *http.Server {
	server := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if s.isStopping() {
				w.Header().Set("Connection", "close")
			}
			s.ServeHTTP(w, r)
		}),
		TLSConfig:         s.opts.TLS.Config(get),
		Protocols:         s.opts.TLS.Protocols(),
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       time.Minute,
		WriteTimeout:      time.Minute,
		IdleTimeout:       90 * time.Second,
		MaxHeaderBytes:    64 << 10,
		BaseContext:       func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
		ErrorLog:          log.New(&connectionLog{log: s.opts.Log}, "", 0),
	}
	server.TLSConfig.NextProtos = nil // ServeTLS adds those of Protocols
	return server
}

// connectionLog takes what net/http says of connections. It is for debugging, but for
// clients that do not trust the certificate, of which it tells once.
type connectionLog struct {
	log  *slog.Logger
	told atomic.Bool
}

// Write implements io.Writer.
func (c *connectionLog) Write(line []byte) (int, error) {
	text := strings.TrimSpace(string(line))
	if strings.Contains(text, "remote error: tls:") && strings.Contains(text, "certificate") && !c.told.Swap(true) {
		c.log.Warn("a client does not trust the certificate of the webhooks", "error", text, "advice",
			"if it is an API server: see whether the caBundle of its configurations is that of the certificate, whether the certificate has the name of the Service, and whether the clocks of both nodes agree")
		return len(line), nil
	}
	c.log.Debug(text)
	return len(line), nil
}

// trustable reports whether the certificate is one that API servers may trust.
func (s *Server) trustable() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.opts.TLS.Dir != "" || s.keeper != nil
}

func (s *Server) isStopping() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stopping
}

// drain serves for a while on connections that end with their next answer, then waits for
// the requests in flight as long again. Idle connections stay open meanwhile: an API server
// that sends a request on one while it is closed fails it.
func (s *Server) drain(server *http.Server) {
	if s.opts.Drain > 0 && s.trustable() {
		s.opts.Log.Info("Serving webhooks until the API servers have noticed the end", "for", s.opts.Drain.String())
		time.Sleep(s.opts.Drain)
	}
	ctx, cancel := context.WithTimeout(context.Background(), max(s.opts.Drain, time.Second))
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		_ = server.Close()
	}
}
