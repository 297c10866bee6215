// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/controlplane/leadership"
)

// renewBefore is how long before its end a serving certificate is replaced.
const renewBefore = 30 * 24 * time.Hour

// listener serves a handler over TLS.
type listener struct {
	net    net.Listener
	server *http.Server
	// served is closed when serving has ended, for the reason err.
	served chan struct{}
	err    error
}

// listen takes the address and begins to serve on it, on what bound makes of the listener. Where other returns a certificate,
// that is shown; nil: there is no other.
func listen(ctx context.Context, address string, hosts []string, keys *Keys, server *http.Server, bound func(net.Listener) net.Listener, other func(*tls.ClientHelloInfo) (*tls.Certificate, error), log *slog.Logger) (*listener, error) {
	if keys.areForTests() {
		return nil, ErrTestKeys
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("controlplane: listen on %s: %w", address, err)
	}
	certificates := &servingCertificate{keys: keys, hosts: servingHosts(l.Addr(), hosts)}
	if _, err := certificates.get(nil); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	server.ErrorLog = slog.NewLogLogger(log.Handler(), slog.LevelDebug)
	server.TLSConfig = &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: certificates.get,
		// Small records at first help browsers to begin with a page. Here they
		// would only make three system calls of every event of a watch.
		DynamicRecordSizingDisabled: true,
		// Whether a certificate is good is for the authenticator to say, so
		// that the answer to a bad one is a Status.
		ClientAuth: tls.RequestClientCert,
		ClientCAs:  keys.pool(),
	}
	if other != nil {
		server.TLSConfig.GetCertificate = func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			if shown, err := other(hello); shown != nil || err != nil {
				return shown, err
			}
			return certificates.get(hello)
		}
	}
	out := &listener{net: l, server: server, served: make(chan struct{})}
	go func() {
		defer close(out.served)
		out.err = out.server.ServeTLS(bound(l), "", "")
	}()
	return out, nil
}

// close stops serving. Requests get until ctx ends. Closing twice is no error.
func (l *listener) close(ctx context.Context) error {
	err := l.server.Shutdown(ctx)
	if err != nil {
		err = errors.Join(fmt.Errorf("controlplane: some requests did not end in time: %w", err), l.server.Close())
	}
	if <-l.served; !errors.Is(l.err, http.ErrServerClosed) {
		err = errors.Join(err, l.err)
	}
	return err
}

// servingCertificate is the certificate of a listener, renewed before it ends.
type servingCertificate struct {
	keys  *Keys
	hosts []string

	mu      sync.Mutex
	current *tls.Certificate
}

func (s *servingCertificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if s.keys.Serving != nil {
		return s.keys.Serving, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == nil || time.Until(s.current.Leaf.NotAfter) < renewBefore {
		issued, err := s.keys.issue(pkix.Name{CommonName: serverName}, s.hosts, x509.ExtKeyUsageServerAuth)
		if err != nil {
			return nil, err
		}
		s.current = &issued
	}
	return s.current, nil
}

// clientCertificate is one that the plane shows to others, renewed before it ends.
type clientCertificate struct {
	// issue signs a new one.
	issue func(keys *Keys) (tls.Certificate, error)
	keys  func() (*Keys, error)

	mu      sync.Mutex
	current *tls.Certificate
}

func (k *clientCertificate) get() (*tls.Certificate, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.current == nil || time.Until(k.current.Leaf.NotAfter) < renewBefore {
		keys, err := k.keys()
		if err != nil {
			return nil, err
		}
		issued, err := k.issue(keys)
		if err != nil {
			return nil, err
		}
		k.current = &issued
	}
	return k.current, nil
}

// forKubelets issues the certificate that kubelets are shown. They ask this server what the
// user may do: everything, as in clusters of kubeadm.
func forKubelets(keys *Keys) (tls.Certificate, error) {
	return keys.issue(pkix.Name{CommonName: "kube-apiserver-kubelet-client", Organization: []string{auth.Masters}}, nil, x509.ExtKeyUsageClientAuth)
}

// forBackends issues the certificate that API servers behind APIServices are shown.
func forBackends(keys *Keys) (tls.Certificate, error) {
	return keys.FrontProxy.Issue(pkix.Name{CommonName: frontProxyName}, nil, x509.ExtKeyUsageClientAuth)
}

// forServers issues the certificate that servers of one store show one another.
func forServers(keys *Keys) (tls.Certificate, error) {
	return keys.Peer.Issue(pkix.Name{CommonName: peerName}, []string{leadership.ServerName}, x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth)
}

// servingHosts returns the names that clients use for a listener.
func servingHosts(addr net.Addr, more []string) []string {
	hosts := []string{
		"localhost", "127.0.0.1", "::1",
		"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local",
	}
	if name, err := os.Hostname(); err == nil {
		hosts = append(hosts, name)
	}
	if tcp, ok := addr.(*net.TCPAddr); ok && !tcp.IP.IsUnspecified() {
		hosts = append(hosts, tcp.IP.String())
	}
	hosts = append(hosts, more...)
	slices.Sort(hosts)
	return slices.Compact(hosts)
}

// address returns where it listens.
func (l *listener) address() *net.TCPAddr { return l.net.Addr().(*net.TCPAddr) }

// url returns where clients on this machine find the listener.
func (l *listener) url() string {
	tcp := l.address()
	host := tcp.IP.String()
	if tcp.IP.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "https://" + net.JoinHostPort(host, fmt.Sprint(tcp.Port))
}
