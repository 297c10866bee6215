// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package loopback

import (
	"encoding/binary"
	"hash/fnv"
	"net/netip"
)

// Addresses gives every member an address of its own on the loopback network,
// 127.0.0.0/8. Linux has all of them without further ado.
type Addresses struct {
	// Seed keeps sets of members apart that have the same names.
	Seed uint64
}

// Peer implements etcdcluster.Addresses.
func (a Addresses) Peer(namespace, member string) string { return a.url(namespace, member, "2380") }

// Client implements etcdcluster.Addresses.
func (a Addresses) Client(namespace, member string) string { return a.url(namespace, member, "2379") }

func (a Addresses) url(namespace, member, port string) string {
	h := fnv.New64a()
	_, _ = h.Write(binary.BigEndian.AppendUint64(nil, a.Seed)) // a hash does not fail
	_, _ = h.Write([]byte(namespace + "/" + member))
	sum := h.Sum(nil)
	// 1 to 250: neither the network's own names nor the usual 127.0.0.1.
	ip := netip.AddrFrom4([4]byte{127, sum[0]%250 + 1, sum[1]%250 + 1, sum[2]%250 + 1})
	return "http://" + ip.String() + ":" + port
}
