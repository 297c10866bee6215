// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package egress connects the server to others: it bounds where to, for kubelets, webhooks and API
// servers alike, and finds what is behind a Service.
package egress

import (
	"context"
	"fmt"
	"net/netip"
	"syscall"
)

// RefusedError is the error of an address that the server may not connect to.
type RefusedError struct{ Address string }

func (e *RefusedError) Error() string {
	return fmt.Sprintf("this server may not connect to %s", e.Address)
}

// Control returns a function for [net.Dialer]. It runs after a name has been resolved and before the
// connection is made, so that the address which is checked is the one that is connected to.
// Addresses are passed to allowed without zone, IPv4 ones never as IPv6.
func Control(allowed func(netip.Addr) bool) func(context.Context, string, string, syscall.RawConn) error {
	return func(_ context.Context, _, resolved string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(resolved)
		if err != nil || !allowed(at.Addr().Unmap().WithZone("")) {
			return &RefusedError{Address: resolved}
		}
		return nil
	}
}

// Within returns a function that reports whether one of the prefixes contains an address.
func Within(prefixes []netip.Prefix) func(netip.Addr) bool {
	return func(a netip.Addr) bool {
		for _, p := range prefixes {
			if p.Contains(a) {
				return true
			}
		}
		return false
	}
}

// Metadata reports whether an address is one at which clouds serve the metadata and credentials of
// their machines: link-local addresses, those that providers have elsewhere, and what
// translates to them from IPv6.
func Metadata(a netip.Addr) bool {
	if translated := netip.MustParsePrefix("64:ff9b::/96"); translated.Contains(a) {
		b := a.As16()
		a = netip.AddrFrom4([4]byte(b[12:]))
	}
	switch a.String() {
	case "fd00:ec2::254", "fd20:ce::254", "100.100.100.200", "168.63.129.16", "192.0.0.192":
		return true
	}
	return a.IsLinkLocalUnicast()
}
