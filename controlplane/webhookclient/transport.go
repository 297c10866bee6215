// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package webhookclient

import (
	"context"
	"crypto/tls"
	"maps"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// Bounds of connections.
const (
	handshakeTimeout = 10 * time.Second
	// idleTimeout is how long a connection stays open without requests.
	idleTimeout = 90 * time.Second
	// mostIdle connections to one webhook stay open without requests.
	mostIdle = 25
	// mostPooled webhooks are remembered with their connections.
	mostPooled = 200
)

// target is what connections have in common that requests share.
type target struct {
	scheme, host, bundle, plugin string
	service                      Service
	// address that [Options.Resolve] gave for the service; empty: it is at its endpoints.
	address string
}

// pooled are the connections to one target.
type pooled struct {
	carrier http.RoundTripper
	base    *http.Transport
	// used is the number of the last request.
	used uint64
}

// pool keeps connections between requests.
type pool struct {
	mu       sync.Mutex
	requests uint64
	byTarget map[target]*pooled
}

// get returns what carries requests to a target, and makes it if it is new.
func (p *pool) get(key target, create func() (*pooled, error)) (http.RoundTripper, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests++
	at := p.byTarget[key]
	if at == nil {
		var err error
		if at, err = create(); err != nil {
			return nil, err
		}
		if p.byTarget == nil {
			p.byTarget = map[target]*pooled{}
		}
		p.shrink(mostPooled - 1)
		key.bundle = strings.Clone(key.bundle)
		p.byTarget[key] = at
	}
	at.used = p.requests
	return at.carrier, nil
}

// shrink forgets the targets that have been unused for longest until at most n are left.
// Requests in flight end; connections without one are closed.
func (p *pool) shrink(n int) {
	for len(p.byTarget) > n {
		var oldest target
		first := true
		for key, at := range p.byTarget {
			if first || at.used < p.byTarget[oldest].used {
				oldest, first = key, false
			}
		}
		p.byTarget[oldest].base.CloseIdleConnections()
		delete(p.byTarget, oldest)
	}
}

func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for at := range maps.Values(p.byTarget) {
		at.base.CloseIdleConnections()
	}
	clear(p.byTarget)
}

// transport returns what carries requests to a webhook.
func (c *Client) transport(ctx context.Context, t Target, address *url.URL) (http.RoundTripper, error) {
	key := target{scheme: address.Scheme, host: address.Host, bundle: string(t.CABundle), plugin: t.Plugin}
	if t.Service != nil {
		if at, ok := c.services.Given(ctx, *t.Service); ok && at.Transport != nil {
			return at.Transport, nil
		} else if ok {
			key.address = at.Address
		}
		key.service = *t.Service
	}
	return c.pool.get(key, func() (*pooled, error) { return c.connect(key) })
}

// connect returns a transport without connections.
func (c *Client) connect(to target) (*pooled, error) {
	config, err := c.credentials[to.plugin].forHost(to.host)
	if err != nil {
		return nil, err
	}
	config.CAData = []byte(strings.TrimSpace(to.bundle))
	behind := to.service != Service{}
	if behind {
		config.ServerName = to.service.ServerName()
	}
	security, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, err
	}
	if security == nil {
		security = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	// One connection of HTTP/2 would not spread requests over the endpoints of a Service, and costs
	// more for each of them.
	security.NextProtos = []string{"http/1.1"}
	dialer := c.services.Dialer()
	base := &http.Transport{
		TLSClientConfig: security, TLSHandshakeTimeout: handshakeTimeout,
		MaxIdleConnsPerHost: mostIdle, IdleConnTimeout: idleTimeout, DisableCompression: true,
		DialContext: dialer.DialContext,
	}
	switch {
	case to.address != "":
		base.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, network, to.address)
		}
	case behind:
		base.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
			return c.services.Dial(ctx, network, to.service)
		}
	}
	carrier, err := rest.HTTPWrappersForConfig(config, base)
	return &pooled{carrier: carrier, base: base}, err
}
