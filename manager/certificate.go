// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/steer-dev/steer/manager/internal/metrics"
)

const (
	// certificateCheck is how long a handshake trusts what was read last.
	certificateCheck = 10 * time.Second
	// selfSignedFor is how long a self-signed certificate is valid; it is made
	// anew a day before its end.
	selfSignedFor = 365 * 24 * time.Hour
	renewBefore   = 24 * time.Hour
)

// certificate is what a server shows: that of two files, read again when a
// handshake comes and they may have changed, or a self-signed one. It needs no
// goroutine.
type certificate struct {
	certFile, keyFile string // empty: self-signed
	log               *slog.Logger
	reads, failures   prometheus.Counter

	mu      sync.Mutex
	checked time.Time
	content [2][]byte
	current *tls.Certificate
	told    string
}

// newCertificate reads the files, so that a wrong path shows at the start.
func newCertificate(o TLS, m *metrics.Metrics, log *slog.Logger) (*certificate, error) {
	c := &certificate{log: log, reads: m.CertReads, failures: m.CertFailures}
	if o.Dir != "" {
		c.certFile, c.keyFile = filepath.Join(o.Dir, o.CertName), filepath.Join(o.Dir, o.KeyName)
	}
	if err := c.refresh(time.Now()); err != nil {
		return nil, fmt.Errorf("manager: certificate of the metrics server: %w; check Options.Metrics.TLS (--metrics-cert-path), or leave it empty for a self-signed one", err)
	}
	return c, nil
}

// get is the GetCertificate of a TLS configuration.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if now.Sub(c.checked) >= certificateCheck {
		c.tell(c.refresh(now), now)
	}
	return c.current, nil
}

// refresh takes over what has changed; when it fails the former one stays.
func (c *certificate) refresh(now time.Time) error {
	c.checked = now
	if c.certFile == "" {
		if c.current != nil && now.Before(c.current.Leaf.NotAfter.Add(-renewBefore)) {
			return nil
		}
		fresh, err := selfSigned(now)
		if err == nil {
			c.current = fresh
		}
		return err
	}
	fresh, content, err := c.read()
	if err != nil {
		c.failures.Inc()
		return err
	}
	if fresh != nil {
		c.current, c.content = fresh, content
	}
	return nil
}

// read returns nil when the files are as before.
func (c *certificate) read() (fresh *tls.Certificate, content [2][]byte, err error) {
	c.reads.Inc()
	for i, name := range []string{c.certFile, c.keyFile} {
		if content[i], err = os.ReadFile(name); err != nil {
			return nil, content, err
		}
	}
	if c.current != nil && bytes.Equal(content[0], c.content[0]) && bytes.Equal(content[1], c.content[1]) {
		return nil, content, nil
	}
	pair, err := tls.X509KeyPair(content[0], content[1])
	if err != nil {
		return nil, content, fmt.Errorf("%s and %s: %w", c.certFile, c.keyFile, err)
	}
	return &pair, content, nil
}

// tell says once what is wrong and what to do.
func (c *certificate) tell(err error, now time.Time) {
	if err == nil && now.After(c.current.Leaf.NotAfter) {
		err = fmt.Errorf("%s has expired at %s", c.certFile, c.current.Leaf.NotAfter.UTC().Format(time.RFC3339))
	}
	if err == nil {
		c.told = ""
		return
	}
	if message := err.Error(); message != c.told {
		c.told = message
		c.log.Error("the metrics server shows its former certificate", "error", err, "advice",
			"renew the certificate (cert-manager, or whoever writes the Secret); it is taken over without a restart")
	}
}

// selfSigned makes a certificate that encrypts and proves nothing.
func selfSigned(now time.Time) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: host}, DNSNames: []string{host, "localhost"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(selfSignedFor),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, errors.Join(errors.New("self-signed certificate"), err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, nil
}
