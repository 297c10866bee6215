// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package webhookclient_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/steer-dev/steer/controlplane/webhookclient"
	"github.com/steer-dev/steer/storage"
)

// authority signs the certificates of webhooks.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{}
	a.certificate, a.key = sign(t, nil, &x509.Certificate{
		Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	})
	return a
}

// sign returns a certificate with a new key, signed by the authority, or by itself if that is nil.
func sign(t *testing.T, by *authority, template *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, big.NewInt(1<<62)); err != nil {
		t.Fatal(err)
	}
	parent, signer := template, key
	if by != nil {
		parent, signer = by.certificate, by.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return certificate, key
}

// bundle is the authority as a caBundle.
func (a *authority) bundle() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.certificate.Raw})
}

// issue returns a serving certificate for names and addresses, valid until a time.
func (a *authority) issue(t *testing.T, until time.Time, hosts ...string) *tls.Certificate {
	t.Helper()
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "webhook"}, NotBefore: until.Add(-time.Hour), NotAfter: until,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	certificate, key := sign(t, a, template)
	return &tls.Certificate{Certificate: [][]byte{certificate.Raw}, PrivateKey: key}
}

// webhook is a server on the loopback interface.
type webhook struct {
	*httptest.Server
	// connections is how many there have been; closed has a value for each that has ended.
	connections atomic.Int32
	closed      chan struct{}
	certificate atomic.Pointer[tls.Certificate]
}

func serve(t *testing.T, certificate *tls.Certificate, handler http.HandlerFunc) *webhook {
	t.Helper()
	w := &webhook{closed: make(chan struct{}, 100)}
	w.certificate.Store(certificate)
	w.Server = httptest.NewUnstartedServer(handler)
	w.EnableHTTP2 = true
	w.TLS = &tls.Config{MinVersion: tls.VersionTLS12, GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		return &tls.Config{
			MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}, Certificates: []tls.Certificate{*w.certificate.Load()},
		}, nil
	}}
	w.Config.ErrorLog = silent()
	w.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		switch s {
		case http.StateNew:
			w.connections.Add(1)
		case http.StateClosed:
			w.closed <- struct{}{}
		}
	}
	w.StartTLS()
	t.Cleanup(w.Close)
	return w
}

// port of the webhook.
func (w *webhook) port() int32 { return int32(w.Listener.Addr().(*net.TCPAddr).Port) } // a port

// answers is a webhook that answers with the path and the body that it gets.
func answers(w http.ResponseWriter, r *http.Request) {
	body := new(strings.Builder)
	_ = r.Write(body)
	_, after, _ := strings.Cut(body.String(), "\r\n\r\n")
	_, _ = w.Write([]byte(r.URL.String() + " " + after))
}

// newClient returns a client over a store with objects, given by their keys.
func newClient(t *testing.T, o webhookclient.Options, public bool, objects map[storage.Key]any) *webhookclient.Client {
	t.Helper()
	store := storage.NewMemory(storage.MemoryOptions{})
	for key, obj := range objects {
		value, err := json.Marshal(obj)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := store.Commit(t.Context(), storage.Write{Key: key, Value: value, Expect: storage.Absent}); err != nil {
			t.Fatal(err)
		}
	}
	c, err := webhookclient.New(o, webhookclient.Deps{Store: store, Public: public})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// mustPost returns the answer to a request that has to succeed.
func mustPost(t *testing.T, c *webhookclient.Client, target webhookclient.Target) string {
	t.Helper()
	answer, err := c.Post(t.Context(), target, []byte("review"))
	if err != nil {
		t.Fatal(err)
	}
	return string(answer)
}

// wantError fails unless a request fails with an error that has a text.
func wantError(t *testing.T, c *webhookclient.Client, target webhookclient.Target, text string) {
	t.Helper()
	wantErrorWithin(t.Context(), t, c, target, text)
}

func wantErrorWithin(ctx context.Context, t *testing.T, c *webhookclient.Client, target webhookclient.Target, text string) {
	t.Helper()
	answer, err := c.Post(ctx, target, []byte("review"))
	if err == nil {
		t.Errorf("the answer is %q, want an error with %q", answer, text)
	} else if !strings.Contains(err.Error(), text) {
		t.Errorf("the error is %q, want one with %q", err, text)
	}
}
