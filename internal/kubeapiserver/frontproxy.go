// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeapiserver

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// FrontProxyFlags returns the flags with which kube-apiserver passes on the users of
// aggregated requests, as clusters of kubeadm do, with keys made for the test.
func FrontProxyFlags(t testing.TB) []string {
	t.Helper()
	dir := t.TempDir()
	write := func(name, form string, der []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: form, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	newKey := func() *ecdsa.PrivateKey {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	template := func(name string, serial int64) *x509.Certificate {
		return &x509.Certificate{
			SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: name},
			NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), KeyUsage: x509.KeyUsageDigitalSignature,
		}
	}
	authority, caKey := template("front-proxy-ca", 1), newKey()
	authority.KeyUsage, authority.IsCA, authority.BasicConstraintsValid = x509.KeyUsageCertSign, true, true
	ca, err := x509.CreateCertificate(rand.Reader, authority, authority, caKey.Public(), caKey)
	if err != nil {
		t.Fatal(err)
	}
	client, key := template("front-proxy-client", 2), newKey()
	client.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	leaf, err := x509.CreateCertificate(rand.Reader, client, authority, key.Public(), caKey)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return []string{
		"--requestheader-client-ca-file=" + write("ca.crt", "CERTIFICATE", ca),
		"--requestheader-allowed-names=front-proxy-client",
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-uid-headers=X-Remote-Uid",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + write("client.crt", "CERTIFICATE", leaf),
		"--proxy-client-key-file=" + write("client.key", "EC PRIVATE KEY", der),
	}
}
