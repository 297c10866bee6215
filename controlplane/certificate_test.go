// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/controlplane/certificates"
)

// leaves are the certificates that a plane issues for itself and its users.
func leaves(t *testing.T, keys *Keys) map[string]*x509.Certificate {
	t.Helper()
	serving := &servingCertificate{keys: keys, hosts: servingHosts(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}, nil)}
	server, err := serving.get(nil)
	if err != nil {
		t.Fatal(err)
	}
	admin, err := keys.issue(pkix.Name{CommonName: adminName, Organization: []string{auth.Masters}}, nil, x509.ExtKeyUsageClientAuth)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]*x509.Certificate{"sslserver": server.Leaf, "sslclient": admin.Leaf}
}

// formerKeys writes the keys of a data directory as they were before the
// certificates of authority and server had names of their own.
func formerKeys(t *testing.T, dir string) {
	t.Helper()
	signer, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	serial, err := certificates.NewSerial()
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "steer"},
		NotBefore: time.Now().Add(-clockSkew), NotAfter: time.Now().Add(caLifetime),
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
		IsCA:     true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, signer.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	key, err := encodeKey(signer)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{"ca.crt": encodeCertificate(der), "ca.key": key} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// authorities are a new one, one in a directory of an earlier version, and the
// test keys.
func authorities(t *testing.T) map[string]*Keys {
	t.Helper()
	dir := t.TempDir()
	formerKeys(t, dir)
	out := map[string]*Keys{}
	for name, open := range map[string]func() (*Keys, error){
		"new": NewKeys, "former": func() (*Keys, error) { return OpenKeys(dir) }, "test": TestKeys,
	} {
		keys, err := open()
		if err != nil {
			t.Fatal(err)
		}
		out[name] = keys
	}
	return out
}

// OpenSSL takes a certificate whose issuer is its subject for self-signed.
func TestCertificatesNameTheirIssuerAndThemselvesDifferently(t *testing.T) {
	t.Parallel()
	for name, keys := range authorities(t) {
		if name == "new" && keys.CA.KeyUsage != x509.KeyUsageCertSign|x509.KeyUsageCRLSign|x509.KeyUsageDigitalSignature {
			t.Errorf("%s: the authority has key usage %b", name, keys.CA.KeyUsage)
		}
		if len(keys.CA.SubjectKeyId) == 0 {
			t.Errorf("%s: the authority has no key identifier", name)
		}
		var serials []string
		for purpose, leaf := range leaves(t, keys) {
			switch {
			case bytes.Equal(leaf.RawSubject, keys.CA.RawSubject):
				t.Errorf("%s, %s: subject and issuer are both %s", name, purpose, leaf.Subject)
			case !bytes.Equal(leaf.RawIssuer, keys.CA.RawSubject), !bytes.Equal(leaf.AuthorityKeyId, keys.CA.SubjectKeyId):
				t.Errorf("%s, %s: the certificate does not name its issuer", name, purpose)
			case len(leaf.SubjectKeyId) == 0, bytes.Equal(leaf.SubjectKeyId, keys.CA.SubjectKeyId):
				t.Errorf("%s, %s: key identifier %x", name, purpose, leaf.SubjectKeyId)
			case leaf.KeyUsage != x509.KeyUsageDigitalSignature, len(leaf.ExtKeyUsage) != 1, !leaf.BasicConstraintsValid, leaf.IsCA:
				t.Errorf("%s, %s: usages %b and %v, authority %v", name, purpose, leaf.KeyUsage, leaf.ExtKeyUsage, leaf.IsCA)
			case leaf.NotAfter.After(keys.CA.NotAfter):
				t.Errorf("%s, %s: it outlives its issuer", name, purpose)
			}
			serials = append(serials, leaf.SerialNumber.String())
			var ips []string
			for _, ip := range leaf.IPAddresses {
				ips = append(ips, ip.String())
			}
			for _, names := range [][]string{leaf.DNSNames, ips} {
				if slices.Sort(names); len(slices.Compact(slices.Clone(names))) != len(names) {
					t.Errorf("%s, %s: names more than once: %v", name, purpose, names)
				}
			}
		}
		if serials[0] == serials[1] {
			t.Errorf("%s: two certificates have serial number %s", name, serials[0])
		}
	}
}

// The strict mode is the default of Python from 3.13 on.
func TestCertificatesVerifyWithOpenSSL(t *testing.T) {
	t.Parallel()
	openssl, err := exec.LookPath("openssl")
	if err != nil {
		t.Skip("there is no openssl on this machine")
	}
	for name, keys := range authorities(t) {
		dir := t.TempDir()
		ca := filepath.Join(dir, "ca.crt")
		if err := os.WriteFile(ca, keys.CertificatePEM(), 0o600); err != nil {
			t.Fatal(err)
		}
		for purpose, leaf := range leaves(t, keys) {
			file := filepath.Join(dir, purpose)
			if err := os.WriteFile(file, encodeCertificate(leaf.Raw), 0o600); err != nil {
				t.Fatal(err)
			}
			args := []string{"verify", "-x509_strict", "-check_ss_sig", "-purpose", purpose, "-CAfile", ca}
			if purpose == "sslserver" {
				args = append(args, "-verify_hostname", "localhost")
			}
			if out, err := exec.CommandContext(t.Context(), openssl, append(args, file)...).CombinedOutput(); err != nil {
				t.Errorf("%s, %s: %v\n%s", name, purpose, err, out)
			}
		}
	}
}

// What a user has from before, a kubeconfig or another copy of the authority's
// certificate, stays good: the authority in the directory is kept.
func TestCertificatesKeepAnAuthorityOfAnEarlierVersion(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	formerKeys(t, dir)
	before, err := os.ReadFile(filepath.Join(dir, "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	keys, err := OpenKeys(dir)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(before)
	for purpose, leaf := range leaves(t, keys) {
		if _, err := leaf.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: leaf.ExtKeyUsage}); err != nil {
			t.Errorf("%s: %v", purpose, err)
		}
	}
	if _, err := tls.X509KeyPair(before, mustEncodeKey(t, keys)); err != nil {
		t.Errorf("the authority has another key: %v", err)
	}
}

func mustEncodeKey(t *testing.T, keys *Keys) []byte {
	t.Helper()
	key, err := encodeKey(keys.Signer)
	if err != nil {
		t.Fatal(err)
	}
	return key
}
