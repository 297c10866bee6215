// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package up

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/spf13/pflag"

	"github.com/steer-dev/steer/cmd/steer/internal/planeflags"
	"github.com/steer-dev/steer/controlplane"
)

// several are the flags for a server that others stand beside, or a balancer in front of. They
// have the names that they have in kube-apiserver and kubeadm.
type several struct {
	certDir   string
	endpoint  string
	advertise string
	peer      planeflags.Peer
	delay     time.Duration
}

// defaultPort is that of an endpoint without one.
const defaultPort = "6443"

func (s *several) addFlags(f *pflag.FlagSet) {
	f.StringVar(&s.certDir, "cert-dir", "", "folder of the certificate authorities and keys, which all servers of one etcd share; what it lacks is made (default: pki in the data directory)")
	f.StringVar(&s.endpoint, "control-plane-endpoint", "", "name or address, and port, by which clients reach the servers together, such as api.example.com:6443: that of a load balancer")
	f.StringVar(&s.advertise, "advertise-address", "", "address by which Pods and the other servers reach this one, with a port if that differs (default: that of --listen)")
	s.peer.AddFlags(f)
	f.DurationVar(&s.delay, "shutdown-delay-duration", 0, "how long to go on serving with a failing /readyz when stopped, so that load balancers notice")
}

// apply takes the flags over.
func (s *several) apply(o *controlplane.Options) (err error) {
	if s.delay < 0 {
		return fmt.Errorf("--shutdown-delay-duration %v: a time that is not negative is needed", s.delay)
	}
	o.ShutdownDelay = s.delay
	if o.Endpoint, err = hostPort(s.endpoint); err != nil {
		return fmt.Errorf("--control-plane-endpoint: %w", err)
	}
	if o.Advertise, err = addressPort(s.advertise); err != nil {
		return fmt.Errorf("--advertise-address: %w", err)
	}
	if err := s.peer.Apply(o); err != nil {
		return err
	}
	o.Authentication.KeyDir = s.certDir
	return nil
}

// readable returns the private keys in a folder that other users of the machine can read.
// Windows has no such modes.
func readable(dir string) (files []string) {
	if dir == "" || runtime.GOOS == "windows" {
		return nil
	}
	keys, _ := filepath.Glob(filepath.Join(dir, "*.key")) // the pattern is good
	for _, file := range keys {
		if info, err := os.Stat(file); err == nil && info.Mode().Perm()&0o077 != 0 {
			files = append(files, file)
		}
	}
	return files
}

// hostPort returns a host with its port, as clients connect to it.
func hostPort(text string) (string, error) {
	if text == "" {
		return "", nil
	}
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		if ip, bad := netip.ParseAddr(text); bad == nil {
			text = ip.String()
		}
		return hostPortOf(text, defaultPort)
	}
	return hostPortOf(host, port)
}

func hostPortOf(host, port string) (string, error) {
	joined := net.JoinHostPort(host, port)
	if _, err := net.LookupPort("tcp", port); err != nil || host == "" {
		return "", fmt.Errorf("%q is no name or address with a port: write one such as api.example.com:6443", joined)
	}
	return joined, nil
}

// addressPort returns an address; port 0 if it has none.
func addressPort(text string) (netip.AddrPort, error) {
	if text == "" {
		return netip.AddrPort{}, nil
	}
	if ip, err := netip.ParseAddr(text); err == nil && !ip.IsUnspecified() {
		return netip.AddrPortFrom(ip, 0), nil
	}
	at, err := netip.ParseAddrPort(text)
	if err != nil || at.Addr().IsUnspecified() {
		return at, errors.New("an IP address that others connect to is needed, such as 10.0.0.1 or 10.0.0.1:6443")
	}
	return at, nil
}
