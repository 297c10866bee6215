// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"net/http"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// closeConnections closes the connections to the API server on which nothing is under
// way. Those of a transport that is not the manager's own (rest.Config.Transport) are
// opened anew when they are needed.
func (m *Manager) closeConnections() {
	closeIdle(m.http.Transport)
	if m.electing != nil {
		closeIdle(m.electing.Transport)
	}
}

func closeIdle(transport http.RoundTripper) {
	for {
		switch t := transport.(type) {
		case interface{ CloseIdleConnections() }:
			t.CloseIdleConnections()
			return
		case utilnet.RoundTripperWrapper:
			transport = t.WrappedRoundTripper()
		default:
			return
		}
	}
}
