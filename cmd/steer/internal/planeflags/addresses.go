// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package planeflags

import (
	"crypto/tls"
	"fmt"
	"net/netip"

	"github.com/spf13/pflag"
	"k8s.io/client-go/util/cert"

	"github.com/steer-dev/steer/controlplane/kubelet"
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

// Kubelets are the flags that say how kubelets are reached.
type Kubelets struct {
	ranges                      []string
	authority, certificate, key string
}

// AddFlags defines the flags.
func (k *Kubelets) AddFlags(f *pflag.FlagSet) {
	f.StringSliceVar(&k.ranges, "kubelets", nil, `addresses that the server may connect to for logs, exec, attach and port-forward, where a node states
the endpoint of a kubelet: ranges such as 127.0.0.0/8,172.18.0.0/16 (default none)`)
	f.StringVar(&k.authority, "kubelet-certificate-authority", "", "file with the authorities that verify the certificates of kubelets (default: they are not verified)")
	f.StringVar(&k.certificate, "kubelet-client-certificate", "", "file with the client certificate that kubelets are shown, read again for each connection (default: one of this server's authority)")
	f.StringVar(&k.key, "kubelet-client-key", "", "file with its private key")
}

// Apply takes the flags over.
func (k *Kubelets) Apply(o *kubelet.Options) error {
	for _, text := range k.ranges {
		reach, err := netip.ParsePrefix(text)
		if err != nil {
			return fmt.Errorf("--kubelets: %q is no range of addresses: write one such as 127.0.0.0/8", text)
		}
		o.Reach = append(o.Reach, reach)
	}
	if k.authority != "" {
		authorities, err := cert.NewPool(k.authority)
		if err != nil {
			return fmt.Errorf("--kubelet-certificate-authority: %w", err)
		}
		o.Authorities = authorities
	}
	if k.certificate == "" && k.key == "" {
		return nil
	}
	o.Certificate = func() (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(k.certificate, k.key)
		return &pair, err
	}
	if _, err := o.Certificate(); err != nil {
		return fmt.Errorf("--kubelet-client-certificate and --kubelet-client-key: %w", err)
	}
	return nil
}
