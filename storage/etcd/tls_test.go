// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/steer-dev/steer/storage/etcd"
)

// authority signs the certificates of a member and of its clients.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{}
	pair := a.sign(t, &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}, time.Hour)
	a.certificate, a.key = pair.Leaf, pair.PrivateKey.(*ecdsa.PrivateKey)
	return a
}

// sign returns a certificate that ends after a time, which may be negative.
func (a *authority) sign(t *testing.T, template *x509.Certificate, life time.Duration) *tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template.SerialNumber, template.Subject = big.NewInt(time.Now().UnixNano()), pkix.Name{CommonName: "etcd"}
	template.NotBefore, template.NotAfter = time.Now().Add(-2*time.Hour), time.Now().Add(life)
	if template.DNSNames == nil {
		template.DNSNames = []string{"localhost"}
	}
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	parent, signer := a.certificate, a.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

// secureMember returns an etcd that wants certificates of its clients, and shows one of a name.
func secureMember(t *testing.T, a *authority, name string) *member {
	t.Helper()
	dir := t.TempDir()
	write := func(name, kind string, der []byte) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	pair := a.sign(t, &x509.Certificate{DNSNames: []string{name}}, time.Hour)
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	return ownMember(t, "--unsafe-no-fsync", "--client-cert-auth",
		"--listen-client-urls=unixs://localhost:1", "--advertise-client-urls=unixs://localhost:1",
		"--trusted-ca-file="+write("ca.crt", "CERTIFICATE", a.certificate.Raw),
		"--cert-file="+write("tls.crt", "CERTIFICATE", pair.Certificate[0]), "--key-file="+write("tls.key", "PRIVATE KEY", key))
}

// secure returns the options of a store with the certificate that current has.
func (m *member) secure(a *authority, current *atomic.Pointer[tls.Certificate]) etcd.Options {
	o := m.options()
	o.Endpoints = []string{"unixs://" + filepath.Join(m.dir, "localhost:1")}
	o.TLS = &tls.Config{
		MinVersion: tls.VersionTLS12, ServerName: "localhost", RootCAs: x509.NewCertPool(),
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return current.Load(), nil },
	}
	o.TLS.RootCAs.AddCert(a.certificate)
	return o
}

func TestStoreGoesOnWithARenewedCertificate(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	m := secureMember(t, a, "localhost")
	var current atomic.Pointer[tls.Certificate]
	current.Store(a.sign(t, &x509.Certificate{}, time.Hour))
	s := lead(t, m.secure(a, &current))
	mustPut(t, s, "n", "1")
	current.Store(a.sign(t, &x509.Certificate{}, -time.Hour)) // it has expired
	m.kill()
	if err := m.start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, func(ctx context.Context) error {
		if s.Sync(ctx, 0) == nil {
			return errors.New("a read succeeds with an expired certificate")
		}
		return nil
	})
	current.Store(a.sign(t, &x509.Certificate{}, time.Hour))
	eventually(t, func(ctx context.Context) error { return errors.Join(s.Sync(ctx, 0), s.Health()) })
	putLeading(t, s, "n", "2")
}

func TestOpenFailsWithoutACertificateThatEtcdTrusts(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	m := secureMember(t, a, "localhost")
	var current atomic.Pointer[tls.Certificate]
	current.Store(a.sign(t, &x509.Certificate{}, time.Hour))
	open(t, m.secure(a, &current))
	for name, certificate := range map[string]*tls.Certificate{
		"none": {}, "that of another authority": newAuthority(t).sign(t, &x509.Certificate{}, time.Hour),
	} {
		var other atomic.Pointer[tls.Certificate]
		other.Store(certificate)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		if _, err := etcd.Open(ctx, m.secure(a, &other)); err == nil {
			t.Errorf("%s: it opens", name)
		}
		cancel()
	}
}

// A server does not speak to an etcd whose certificate its authority did not sign, or signed for
// another name, though that etcd would have it.
func TestOpenFailsWhereAnotherAuthoritySignedForEtcd(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	m := secureMember(t, a, "localhost")
	var current atomic.Pointer[tls.Certificate]
	current.Store(a.sign(t, &x509.Certificate{}, time.Hour))
	others := x509.NewCertPool()
	others.AddCert(newAuthority(t).certificate)
	for name, o := range map[string]struct {
		m     *member
		roots *x509.CertPool
	}{
		"another authority":         {m, others},
		"the system's":              {m, nil},
		"a certificate for another": {secureMember(t, a, "example.com"), m.secure(a, &current).TLS.RootCAs},
	} {
		options := o.m.secure(a, &current)
		options.TLS.RootCAs = o.roots
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		if _, err := etcd.Open(ctx, options); err == nil {
			t.Errorf("%s: it opens", name)
		}
		cancel()
	}
	open(t, m.secure(a, &current))
}
