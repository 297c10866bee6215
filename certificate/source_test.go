// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package certificate

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// writeCertificate writes a fresh certificate, made at a time, as a Secret would.
func writeCertificate(t *testing.T, dir string, made time.Time) *x509.Certificate {
	t.Helper()
	c, err := selfSigned(made)
	if err != nil {
		t.Fatal(err)
	}
	key, err := x509.MarshalECPrivateKey(c.PrivateKey.(*ecdsa.PrivateKey))
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{
		"tls.crt": {Type: "CERTIFICATE", Bytes: c.Certificate[0]}, "tls.key": {Type: "EC PRIVATE KEY", Bytes: key},
	} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return c.Leaf
}

func TestSourceTakesOverFilesThatChange(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		failures := 0
		options := Options{Server: "test", Log: slog.New(slog.NewTextHandler(&log, nil)), Read: func(err error) {
			if err != nil {
				failures++
			}
		}}
		first := writeCertificate(t, dir, time.Now())
		c, err := Open(TLS{Dir: dir}, options)
		if err != nil {
			t.Fatal(err)
		}
		shown := func() *x509.Certificate {
			t.Helper()
			got, err := c.Get(nil)
			if err != nil {
				t.Fatal(err)
			}
			return got.Leaf
		}
		if !shown().Equal(first) {
			t.Error("it shows another certificate")
		}
		second := writeCertificate(t, dir, time.Now())
		if !shown().Equal(first) {
			t.Error("the files are read for every handshake")
		}
		time.Sleep(certificateCheck)
		if !shown().Equal(second) {
			t.Error("the new certificate is not shown")
		}
		if err := os.WriteFile(filepath.Join(dir, "tls.key"), []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			time.Sleep(certificateCheck)
			if !shown().Equal(second) {
				t.Error("a broken file replaced a good certificate")
			}
		}
		if n := strings.Count(log.String(), "renew the certificate"); n != 1 {
			t.Errorf("told %d times: %s", n, &log)
		}
		if failures != 3 {
			t.Errorf("%v failures are reported, want 3", failures)
		}
	})
}

func TestSourceTellsOfAnExpiredCertificateWithAdvice(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		options := Options{Server: "test", Log: slog.New(slog.NewTextHandler(&log, nil))}
		writeCertificate(t, dir, time.Now())
		c, err := Open(TLS{Dir: dir}, options)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(selfSignedFor + time.Hour)
		if _, err := c.Get(nil); err != nil {
			t.Fatal(err)
		}
		if got := log.String(); !strings.Contains(got, "has expired at") || !strings.Contains(got, "renew the certificate") {
			t.Errorf("log: %s", got)
		}
	})
}

func TestSourceMakesASelfSignedCertificateAnewBeforeItEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, err := Open(TLS{}, Options{Server: "test", Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			time.Sleep(selfSignedFor - renewBefore/2)
			got, err := c.Get(nil)
			if err != nil {
				t.Fatal(err)
			}
			if time.Now().After(got.Leaf.NotAfter) {
				t.Error("it shows an expired certificate")
			}
		}
	})
}

func TestOpenSaysWhatToDoAboutAWrongPath(t *testing.T) {
	t.Parallel()
	_, err := Open(TLS{Dir: t.TempDir()}, Options{Server: "test", Advice: "check --path"})
	if err == nil || !strings.Contains(err.Error(), "check --path") {
		t.Errorf("got %v", err)
	}
}

func TestParseReadsTheFlagsOfKubernetesComponents(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]uint16{"": 0, "VersionTLS12": tls.VersionTLS12, "VersionTLS13": tls.VersionTLS13} {
		if got, err := ParseVersion(value); err != nil || got != want {
			t.Errorf("%q: %x, %v", value, got, err)
		}
	}
	for _, value := range []string{"VersionTLS11", "1.3"} {
		if _, err := ParseVersion(value); err == nil || !strings.Contains(err.Error(), "VersionTLS13") {
			t.Errorf("%q: %v", value, err)
		}
	}
	got, err := ParseCipherSuites("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384")
	if want := []uint16{tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%x, %v", got, err)
	}
	if _, err := ParseCipherSuites("TLS_RSA_WITH_RC4_128_SHA"); err == nil || !strings.Contains(err.Error(), "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256") {
		t.Errorf("an insecure suite: %v", err)
	}
	if c := (TLS{MinVersion: tls.VersionTLS11}).Config(nil); c.MinVersion != tls.VersionTLS12 { // what must be refused
		t.Errorf("the lowest version is %x", c.MinVersion)
	}
}
