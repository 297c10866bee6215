// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"crypto/tls"
	"net"
)

// ServeOn is [Server.Start] with a certificate of files, on a listener that may be in
// memory, so that it runs in virtual time.
func (s *Server) ServeOn(ctx context.Context, listener net.Listener) error {
	get, stop, err := s.certificates(ctx)
	if err != nil {
		return err
	}
	defer stop()
	return s.serveOn(ctx, listener, get)
}

// Keep runs the keeper of the authority alone, without a listener, so that it runs in
// virtual time. shown is the certificate that a listener would show.
func (s *Server) Keep(ctx context.Context) (shown func() *tls.Certificate) {
	k := newKeeper(s)
	k.Listening()
	go k.Run(ctx)
	return func() *tls.Certificate {
		c, _ := k.Get(nil)
		return c
	}
}
