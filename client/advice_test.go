// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/client/wire"
)

// authority signs certificates for loopback.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	a := &authority{key: key}
	a.cert = &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, a.cert, a.cert, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	return a
}

func (a *authority) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})
}

// issue makes a certificate, for a name, that ends at a time.
func (a *authority) issue(t *testing.T, name string, ends time.Time) (certificate, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: ends, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, a.cert, private.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: encoded})
}

// TestCredentialsThatAreNotAcceptedComeWithAdvice shakes hands for real.
func TestCredentialsThatAreNotAcceptedComeWithAdvice(t *testing.T) {
	t.Parallel()
	ca, other := newAuthority(t), newAuthority(t)
	past, future := time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	for name, c := range map[string]struct {
		signed     *authority // of the server's certificate
		host       string     // that it is for
		ends       time.Time
		clientEnds time.Time
		advice     string
	}{
		"expired server":   {ca, "localhost", past, future, "the certificate of the API server has expired"},
		"unknown CA":       {other, "localhost", future, future, "certificate-authority-data"},
		"other name":       {ca, "kubernetes", future, future, "is for other names"},
		"expired client":   {ca, "localhost", future, past, "refuses the client certificate"},
		"all is well":      {ca, "localhost", future, future, ""},
		"but for the user": {ca, "localhost", future, future, "the credentials are not accepted"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if name == "but for the user" {
					w.WriteHeader(http.StatusUnauthorized)
					return
				}
				w.WriteHeader(http.StatusNotFound)
			}))
			server.Config.ErrorLog = log.New(io.Discard, "", 0)
			cert, key := c.signed.issue(t, c.host, c.ends)
			pair, err := tls.X509KeyPair(cert, key)
			if err != nil {
				t.Fatal(err)
			}
			clients := x509.NewCertPool()
			clients.AddCert(ca.cert)
			server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients}
			server.StartTLS()
			defer server.Close()
			cfg := &rest.Config{Host: strings.Replace(server.URL, "127.0.0.1", "localhost", 1), TLSClientConfig: rest.TLSClientConfig{CAData: ca.pem()}}
			cfg.CertData, cfg.KeyData = ca.issue(t, "user", c.clientEnds)
			scheme, err := client.NewScheme(corev1.AddToScheme)
			if err != nil {
				t.Fatal(err)
			}
			live, err := client.New(cfg, client.Options{Scheme: scheme, Log: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			err = live.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "x"}, &corev1.ConfigMap{})
			if err == nil {
				t.Fatal("the server has nothing")
			}
			if got := wire.Advice(err); (c.advice == "") != (got == "") || !strings.Contains(got, c.advice) {
				t.Errorf("advice %q for %v, want %q", got, err, c.advice)
			}
		})
	}
	if wire.Advice(nil) != "" || wire.Advice(errors.New("x")) != "" || wire.Advice(apierrors.NewUnauthorized("x")) == "" {
		t.Error("advice for what needs none, or none for what does")
	}
}
