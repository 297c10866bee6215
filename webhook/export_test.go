// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"crypto/tls"
)

// Keep runs the keeper of the authority alone, without a listener, so that it runs in
// virtual time. shown is the certificate that a listener would show.
func (s *Server) Keep(ctx context.Context) (shown func() *tls.Certificate) {
	k := newKeeper(s)
	close(k.listening)
	go k.run(ctx)
	return func() *tls.Certificate {
		c, _ := k.get(nil)
		return c
	}
}
