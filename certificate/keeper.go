// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package certificate

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

const (
	// keepInterval is how often the Secret and the caBundles are looked at.
	keepInterval = 15 * time.Second
	// keepRetry is the time after a failure, until the first success.
	keepRetry = time.Second
	// keepTimeout bounds one look.
	keepTimeout = 30 * time.Second
	// clocksDiffer is by how much the clocks of this process and of the API server may
	// differ without a word. Certificates are backdated by more.
	clocksDiffer = 5 * time.Minute
)

// ErrOutdated is returned by [Cluster.Write] if another replica was faster.
var ErrOutdated = errors.New("certificate: another replica has written the authority meanwhile")

// Cluster is where a [Keeper] stores the authority, and where its bundle is trusted. The
// methods are not called concurrently.
type Cluster interface {
	// Read returns the data of the Secret of the authority, nil if there is none.
	Read(ctx context.Context) (map[string][]byte, error)
	// Write replaces the data that Read has returned last; [ErrOutdated] if it has
	// changed since.
	Write(ctx context.Context, data map[string][]byte) error
	// Trust gives the bundle to the API servers. complete reports that all of them have
	// it; the implementation logs what fails, with [Keeper.Tell].
	Trust(ctx context.Context, bundle []byte) (complete bool)
	// Now returns the time of the API server, the zero time if it is not known.
	Now(ctx context.Context) time.Time
}

// KeeperOptions are the options of [NewKeeper]. All are required.
type KeeperOptions struct {
	// Cluster stores the authority.
	Cluster Cluster
	// Server is the server in messages, such as "webhooks".
	Server string
	// Place is where the authority is stored, in messages: "the Secret default/notes-ca".
	Place string
	// Names are the DNS names and IP addresses of the certificate.
	Names []string
	// Advice says what to do about an error of Cluster.
	Advice func(error) string
	// Log takes what the owner should know.
	Log *slog.Logger
}

// Keeper keeps an authority of a server's own: where it is stored, the certificate that
// the server shows, and the bundle that API servers trust. It looks at them in intervals,
// and replaces the authority with overlap before it expires. Replicas share it.
type Keeper struct {
	options KeeperOptions

	authority Authority
	held      bool // authority has been read or made
	announced bool // the bundle was given as it is
	told      map[string]string

	issued    chan struct{} // closed once there is a certificate
	listening chan struct{} // closed once the server listens: API servers are given the bundle then
	ready     chan struct{} // closed once they have been given it, as far as that is possible

	mu      sync.Mutex
	shown   *tls.Certificate
	trouble error // of the last look
}

// NewKeeper returns a keeper, which [Keeper.Run] runs.
func NewKeeper(o KeeperOptions) *Keeper {
	return &Keeper{
		options: o, told: map[string]string{},
		issued: make(chan struct{}), listening: make(chan struct{}), ready: make(chan struct{}),
	}
}

// Issued returns a channel that is closed once there is a certificate.
func (k *Keeper) Issued() <-chan struct{} { return k.issued }

// Listening tells the keeper that the server listens: API servers are given the bundle
// from then on. It is called once.
func (k *Keeper) Listening() { close(k.listening) }

// Check returns nil once API servers have a certificate that they can trust.
func (k *Keeper) Check() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	select {
	case <-k.ready:
		return nil
	default:
	}
	if k.trouble != nil {
		return fmt.Errorf("the %s have no certificate yet: %w", k.options.Server, k.trouble)
	}
	return fmt.Errorf("the API server has not been given the CA of the %s yet", k.options.Server)
}

// Get is the GetCertificate of a TLS configuration. The certificate is nil before
// [Keeper.Issued].
func (k *Keeper) Get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.shown, nil
}

// Run keeps the authority until ctx ends. It is called once.
func (k *Keeper) Run(ctx context.Context) {
	for {
		err := k.look(ctx)
		if ctx.Err() != nil {
			return
		}
		wait := keepInterval
		switch {
		case err == nil:
			k.Told("authority")
			closeOnce(k.ready)
		case errors.Is(err, ErrOutdated):
			wait = keepRetry
		default:
			k.Tell("authority", err, k.options.Advice(err))
			if k.shown == nil {
				wait = keepRetry
			}
		}
		k.mu.Lock()
		k.trouble = err
		k.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// closeOnce closes a channel that only its caller closes.
func closeOnce(c chan struct{}) {
	select {
	case <-c:
	default:
		close(c)
	}
}

// look looks at everything once.
func (k *Keeper) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, keepTimeout)
	defer cancel()
	if err := k.keep(ctx); err != nil {
		return err
	}
	now := time.Now()
	if k.authority.Began().After(now) {
		k.Tell("clock", fmt.Errorf("the CA of the %s is valid from %s, which is in the future", k.options.Server, k.authority.Began().UTC().Format(time.RFC3339)), "set the clock of this node")
	}
	if k.authority.Renews(k.shown, now) {
		k.compareClocks(ctx)
		issued, err := k.authority.Issue(now, k.options.Names...)
		if err != nil {
			return fmt.Errorf("issue a certificate: %w", err)
		}
		k.mu.Lock()
		k.shown = issued
		k.mu.Unlock()
		closeOnce(k.issued)
	}
	select {
	case <-k.listening:
		k.announced = k.options.Cluster.Trust(ctx, k.authority.Bundle())
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// compareClocks compares the clock of this process with that of the API server.
func (k *Keeper) compareClocks(ctx context.Context) {
	began := time.Now()
	theirs := k.options.Cluster.Now(ctx)
	if theirs.IsZero() {
		return
	}
	ahead := began.Sub(theirs).Round(time.Second)
	if ahead.Abs() <= clocksDiffer {
		k.Told("clocks")
		return
	}
	than := "ahead of"
	if ahead < 0 {
		than = "behind"
	}
	k.Tell("clocks", fmt.Errorf("the clock of this process is %s %s that of the API server", ahead.Abs(), than),
		"set the clocks of both nodes (NTP): a certificate is not valid where the clock is more than an hour behind the one that it was made by")
}

// keep reads the authority and takes its next step. What a replica holds survives a
// Secret that was deleted or damaged.
func (k *Keeper) keep(ctx context.Context) error {
	data, err := k.options.Cluster.Read(ctx)
	if err != nil {
		return fmt.Errorf("read the CA of the %s: %w", k.options.Server, err)
	}
	stored, damage := ParseAuthority(data)
	if damage == nil {
		k.announced = k.announced && k.held && bytes.Equal(stored.Bundle(), k.authority.Bundle())
		k.authority, k.held = stored, true
	}
	if damage != nil && len(data) > 0 {
		k.Tell("secret", fmt.Errorf("the CA in %s is damaged: %w", k.options.Place, damage), "it is replaced; nothing is to be done")
	}
	if !k.held {
		if k.authority, err = NewAuthority(time.Now()); err != nil {
			return err
		}
	}
	next, changed, err := k.authority.Step(time.Now(), k.announced)
	if err != nil {
		return fmt.Errorf("replace the CA of the %s: %w", k.options.Server, err)
	}
	if damage == nil && !changed {
		return nil
	}
	if data, err = next.Data(); err != nil {
		return err
	}
	if err := k.options.Cluster.Write(ctx, data); err != nil {
		return fmt.Errorf("keep the CA of the %s: %w", k.options.Server, err)
	}
	k.options.Log.Info("There is a new CA of the "+k.options.Server, "in", k.options.Place, "expires", next.Expires().UTC().Format(time.RFC3339))
	k.authority, k.held, k.announced = next, true, false
	return nil
}

// Tell logs an error about something once, with what to do. It is called by
// [Cluster.Trust].
func (k *Keeper) Tell(about string, err error, advice string) {
	if message := err.Error(); k.told[about] != message {
		k.told[about] = message
		k.options.Log.Error("The certificate of the "+k.options.Server, "error", err, "advice", advice)
	}
}

// Told forgets what was logged about something, because it works.
func (k *Keeper) Told(about string) { delete(k.told, about) }
