// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package planeflags

import (
	"errors"
	"net"
	"net/netip"

	"github.com/spf13/pflag"

	"github.com/steer-dev/steer/controlplane"
)

// Peer are the flags that say where the other servers of a store reach a server.
type Peer struct {
	ip   net.IP
	port uint16
}

// AddFlags adds them, with the names that they have in kube-apiserver.
func (p *Peer) AddFlags(f *pflag.FlagSet) {
	f.IPVar(&p.ip, "peer-advertise-ip", nil, "address by which the other servers of the etcd reach this one (default: that of --advertise-address)")
	f.Uint16Var(&p.port, "peer-advertise-port", 0, "port by which they do (default: the one that is listened on)")
}

// Apply takes them over, after the address that is advertised.
func (p *Peer) Apply(o *controlplane.Options) error {
	ip, given := netip.AddrFromSlice(p.ip)
	switch {
	case !given && p.port == 0:
		return nil
	case !given:
		ip = o.Advertise.Addr()
	}
	if ip = ip.Unmap(); !ip.IsValid() || ip.IsUnspecified() {
		return errors.New("--peer-advertise-ip: an address that the other servers connect to is needed, such as 10.0.0.1")
	}
	o.PeerAddress = netip.AddrPortFrom(ip, p.port)
	return nil
}
