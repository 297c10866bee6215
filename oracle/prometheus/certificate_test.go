// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/steer-dev/steer/manager"
	"github.com/steer-dev/steer/steertest"
)

// TestAnUnreadableCertificateCausesItsAlert with a socket, and so in real time: files are
// read again at the first handshake after ten seconds. The scrapes before and after are told
// to have been repeated for long.
func TestAnUnreadableCertificateCausesItsAlert(t *testing.T) {
	t.Parallel()
	rules, _ := monitoring(t)
	dir := t.TempDir()
	writePair(t, dir)
	served := make(chan string, 1)
	m := newManager(t, steertest.New(t, steertest.Options{}).Config, manager.Options{
		Metrics: manager.Metrics{Address: "127.0.0.1:0", Secure: true, TLS: manager.TLS{Dir: dir}}, Log: slog.New(addresses{slog.DiscardHandler, served}),
	})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- m.Start(ctx) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	address := <-served
	<-m.Elected()

	var seen scrapes
	at := time.Unix(1e9, 0)
	for range 2 * int(healthy/time.Minute) {
		at = at.Add(interval)
		seen.scrape(t, at, m.Registry())
	}
	fault := at
	if err := os.WriteFile(filepath.Join(dir, "tls.crt"), []byte("half of a certifi"), 0o600); err != nil {
		t.Fatal(err)
	}
	bounded, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	pause := time.NewTicker(500 * time.Millisecond)
	defer pause.Stop()
	for !unreadable(t, m) {
		conn, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			t.Fatal(err) // the former certificate is shown
		}
		_ = conn.Close()
		select {
		case <-pause.C:
		case <-bounded.Done():
			t.Fatal("the files were not read again")
		}
	}
	for range 60 {
		at = at.Add(interval)
		seen.scrape(t, at, m.Registry())
	}
	only(t, newEngine(t), rules, &seen, fault, "OperatorCertificateUnreadable")
}

// unreadable reports whether a read has failed.
func unreadable(t *testing.T, m *manager.Manager) bool {
	t.Helper()
	families, err := m.Registry().Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "certwatcher_read_certificate_errors_total" {
			return f.GetMetric()[0].GetCounter().GetValue() > 0
		}
	}
	return false
}

// addresses passes on where the metrics are served.
type addresses struct {
	slog.Handler
	metrics chan<- string
}

// Enabled implements slog.Handler.
func (addresses) Enabled(context.Context, slog.Level) bool { return true }

// Handle implements slog.Handler.
func (a addresses) Handle(_ context.Context, r slog.Record) error {
	of := map[string]string{}
	r.Attrs(func(attr slog.Attr) bool { of[attr.Key] = attr.Value.String(); return true })
	if r.Message == "Serving" && of["server"] == "metrics" {
		a.metrics <- of["address"]
	}
	return nil
}

// writePair writes a certificate and its key.
func writePair(t *testing.T, dir string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	about := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	certificate, err := x509.CreateCertificate(rand.Reader, about, about, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{"tls.crt": {Type: "CERTIFICATE", Bytes: certificate}, "tls.key": {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
