// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package ranges

import "net/netip"

// Buckets of what stands for addresses and ranges.
const (
	AddressBucket = "networking.k8s.io/ipaddresses"
	Bucket        = "networking.k8s.io/servicecidrs"
)

// Manager is who IPAddresses of Services say that they are kept by.
const Manager = "ipallocator.k8s.io"

// IsHost reports whether an address of a range is neither that of the network nor,
// of IPv4, the one for all.
func IsHost(p netip.Prefix, ip netip.Addr) bool {
	return p.Contains(ip) && ip != p.Addr() && (ip.Is6() || p.Contains(ip.Next()))
}
