// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"cmp"
	"context"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"sync"

	"github.com/steer-dev/steer/controlplane/kubernetesservice"
	"github.com/steer-dev/steer/controlplane/leadership"
	"github.com/steer-dev/steer/storage"
)

// share makes the plane one of several servers if its store is one of several. The one that
// leads boots, executes what changes something, and runs the controllers.
func (p *Plane) share() {
	store, ok := p.store.(storage.Elector)
	if !ok {
		return
	}
	p.several = leadership.New(leadership.Options{
		Store: store, Identity: p.identity(), Log: p.options.Log,
		Authority: func() (*x509.Certificate, error) {
			keys, err := p.keys()
			if err != nil {
				return nil, err
			}
			return keys.Peer.Certificate, nil
		},
		Keys: func() (leadership.Fingerprints, error) {
			keys, err := p.keys()
			if err != nil {
				return nil, err
			}
			return keys.fingerprints()
		},
		Certificate: (&clientCertificate{keys: p.keys, issue: forServers}).get,
		Load:        p.list.Load, Follows: p.list.Follows(),
		TakeOver: p.takeOver, Lead: p.govern,
		Prepared: func() {
			p.stages.Announced.Store(true)
			p.stages.Booted.Store(true)
		},
	})
}

// identity is different for every start of a server.
func (p *Plane) identity() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return host + "_" + string(p.options.Entropy.UID())
}

// takeOver prepares the plane to execute requests: what it keeps of writes is read from
// the store, which has all of them, and what every cluster has is there. What may be refused,
// or wait for others, is left for later: no request of a user waits for it.
func (p *Plane) takeOver(ctx context.Context) error {
	if err := p.list.Lead(ctx); err != nil {
		return fmt.Errorf("controlplane: take over: %w", err)
	}
	if err := p.boot(ctx, true); err != nil {
		return err
	}
	if p.listener != nil {
		p.self.Adopt()
		if err := p.announce(ctx); err != nil {
			return err
		}
		p.upkeep.Due(redirecting, p.self.Redirect)
	}
	return ctx.Err()
}

// register names the plane to its clients and to other servers, once it listens: one of several,
// and one whose objects outlive it. In memory the renewals would be all that is ever written.
func (p *Plane) register(at *net.TCPAddr) {
	host, _ := os.Hostname() // the address distinguishes servers as well
	identity := kubernetesservice.Identity{
		Host: host, Holder: string(p.options.Entropy.UID()),
		Address: kubernetesservice.AddressOf(at),
	}
	switch {
	case p.several != nil:
		p.registered = p.self.Register(identity, p.options.Log)
	case p.options.DataDir != "" && p.options.Store == nil && !p.options.ManualControllers:
		p.registered = p.self.RegisterAlone(identity, p.options.Log)
	}
}

// govern runs what the server that leads runs until ctx ends.
func (p *Plane) govern(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	if p.registered != nil {
		running.Go(func() { p.self.Follow(ctx, p.options.Log) })
	}
	running.Go(func() { p.upkeep.Run(ctx) })
	p.control(ctx)
}

// compete runs the plane as one of several servers until ctx ends.
func (p *Plane) compete(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	address := ""
	if p.registered != nil {
		at := kubernetesservice.Advertised(p.listener.address(), cmp.Or(p.options.PeerAddress, p.options.Advertise))
		address = kubernetesservice.AddressOf(at).String()
		running.Go(func() { p.registered.Run(ctx) })
	}
	running.Go(func() {
		if err := p.local.Run(ctx); err != nil && ctx.Err() == nil {
			p.options.Log.Error("the controllers of this server have stopped", "err", err)
		}
		p.local.Close()
	})
	p.several.Run(ctx, address)
}
