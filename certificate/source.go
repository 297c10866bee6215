// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package certificate

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
)

const (
	// certificateCheck is how long a handshake trusts what was read last.
	certificateCheck = 10 * time.Second
	// selfSignedFor is how long a self-signed certificate is valid; it is made
	// anew a day before its end.
	selfSignedFor = 365 * 24 * time.Hour
	renewBefore   = 24 * time.Hour
)

// Options of [Open].
type Options struct {
	// Server is the server in messages, such as "metrics".
	Server string
	// Advice on a certificate that cannot be read at the start: the option and the flag.
	Advice string
	// Read is called when files have been read, with the error; nil is not called.
	Read func(error)
	// Log takes what the operator's owner should know. Required.
	Log *slog.Logger
}

// Source is the certificate of a server: that of two files, read again when a
// handshake comes and they may have changed, or a self-signed one. It has no
// goroutine, and is safe for concurrent use.
type Source struct {
	certFile, keyFile string // empty: self-signed
	opts              Options

	mu      sync.Mutex
	checked time.Time
	content [2][]byte
	current *tls.Certificate
	told    string
}

// Open reads the files, so that a wrong path shows at the start.
func Open(t TLS, o Options) (*Source, error) {
	c := &Source{opts: o}
	if t = t.withDefaults(); t.Dir != "" {
		c.certFile, c.keyFile = filepath.Join(t.Dir, t.CertName), filepath.Join(t.Dir, t.KeyName)
	}
	if err := c.refresh(time.Now()); err != nil {
		return nil, fmt.Errorf("certificate of the %s server: %w; %s", o.Server, err, o.Advice)
	}
	return c, nil
}

// Get is the GetCertificate of a TLS configuration.
func (c *Source) Get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if now.Sub(c.checked) >= certificateCheck {
		c.tell(c.refresh(now), now)
	}
	return c.current, nil
}

// refresh takes over what has changed; when it fails the former one stays.
func (c *Source) refresh(now time.Time) error {
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
	if c.opts.Read != nil {
		c.opts.Read(err)
	}
	if err != nil {
		return err
	}
	if fresh != nil {
		c.current, c.content = fresh, content
	}
	return nil
}

// read returns nil when the files are as before.
func (c *Source) read() (fresh *tls.Certificate, content [2][]byte, err error) {
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
func (c *Source) tell(err error, now time.Time) {
	if err == nil && now.After(c.current.Leaf.NotAfter) {
		err = fmt.Errorf("%s has expired at %s", c.certFile, c.current.Leaf.NotAfter.UTC().Format(time.RFC3339))
	}
	if err == nil {
		c.told = ""
		return
	}
	if message := err.Error(); message != c.told {
		c.told = message
		c.opts.Log.Error("the "+c.opts.Server+" server shows its former certificate", "error", err, "advice",
			"renew the certificate (cert-manager, or what writes the Secret); it is taken over without a restart")
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
