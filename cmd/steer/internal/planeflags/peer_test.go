// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package planeflags

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/steer-dev/steer/controlplane"
)

func TestPeersReachAServerWhereItsFlagsSay(t *testing.T) {
	t.Parallel()
	advertised := netip.MustParseAddrPort("192.0.2.7:7443")
	for _, test := range []struct {
		args      []string
		advertise netip.AddrPort
		want      string // an address, or words of an error
	}{
		{nil, advertised, "invalid AddrPort"},
		{[]string{"--peer-advertise-ip=10.0.0.1"}, netip.AddrPort{}, "10.0.0.1:0"},
		{[]string{"--peer-advertise-ip=10.0.0.1", "--peer-advertise-port=8443"}, advertised, "10.0.0.1:8443"},
		{[]string{"--peer-advertise-ip=fd00::1"}, advertised, "[fd00::1]:0"},
		{[]string{"--peer-advertise-port=8443"}, advertised, "192.0.2.7:8443"},
		{[]string{"--peer-advertise-port=8443"}, netip.AddrPort{}, "is needed, such as"},
		{[]string{"--peer-advertise-ip=0.0.0.0"}, advertised, "is needed, such as"},
	} {
		var p Peer
		f := pflag.NewFlagSet("", pflag.ContinueOnError)
		p.AddFlags(f)
		if err := f.Parse(test.args); err != nil {
			t.Fatal(err)
		}
		o := controlplane.Options{Advertise: test.advertise}
		var got string
		if err := p.Apply(&o); err != nil {
			got = err.Error()
		} else {
			got = o.PeerAddress.String()
		}
		if !strings.Contains(got, test.want) {
			t.Errorf("%q with %v: %s, want %s", test.args, test.advertise, got, test.want)
		}
	}
}
