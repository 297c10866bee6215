// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package planeflags

import (
	"fmt"
	"net/netip"

	"github.com/spf13/pflag"
)

// serviceRange is where cluster IPs of Services are from unless a flag says otherwise.
const serviceRange = "10.0.0.0/24"

// AddServiceRanges defines the flag whose values [ServiceRanges] reads.
func AddServiceRanges(f *pflag.FlagSet, ranges *[]string) {
	f.StringSliceVar(ranges, "service-cluster-ip-range", []string{serviceRange}, "where cluster IPs of Services are from: a range, or one of IPv4 and one of IPv6, the default first")
}

// ServiceRanges are the ranges of cluster IPs that a flag names.
func ServiceRanges(ranges []string) ([]netip.Prefix, error) {
	var out []netip.Prefix
	for _, text := range ranges {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("--service-cluster-ip-range: %w: give it as in %s", err, serviceRange)
		}
		out = append(out, p)
	}
	return out, nil
}

// AddKubelets defines the flag whose values [Kubelets] reads.
func AddKubelets(f *pflag.FlagSet, ranges *[]string) {
	f.StringSliceVar(ranges, "kubelets", nil, `addresses that the server may connect to for logs, exec, attach and port-forward, where a node states
the endpoint of a kubelet: ranges such as 127.0.0.0/8,172.18.0.0/16 (default none)`)
}

// Kubelets are the ranges of addresses that a flag names.
func Kubelets(ranges []string) ([]netip.Prefix, error) {
	var out []netip.Prefix
	for _, text := range ranges {
		reach, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("--kubelets: %q is no range of addresses: write one such as 127.0.0.0/8", text)
		}
		out = append(out, reach)
	}
	return out, nil
}
