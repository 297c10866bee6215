// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package certificate makes the TLS settings of servers, with a certificate that is read
// from files whenever they change, or generated, or issued by an authority that replicas
// share. The manager's metrics server, package webhook and custom API servers use it.
package certificate

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"net/http"
	"strings"
)

// TLS settings of a server.
type TLS struct {
	// Dir holds the certificate and its key, as a mounted Secret does; changed
	// files are taken over without a restart. Empty means a self-signed
	// certificate, which encrypts and proves nothing.
	Dir string
	// CertName is the file of the certificate in Dir. Default "tls.crt".
	CertName string
	// KeyName is the file of the key in Dir. Default "tls.key".
	KeyName string
	// HTTP2 offers HTTP/2 beside HTTP/1.1.
	HTTP2 bool
	// MinVersion is the lowest version of TLS: tls.VersionTLS12 or
	// tls.VersionTLS13. 0 means TLS 1.2; lower versions are refused.
	MinVersion uint16
	// CipherSuites of TLS 1.2; see [ParseCipherSuites]. Those of TLS 1.3 are fixed.
	// Empty means those of Go.
	CipherSuites []uint16
}

// Config returns the settings as those of a TLS server with a certificate.
func (t TLS) Config(get func(*tls.ClientHelloInfo) (*tls.Certificate, error)) *tls.Config {
	return &tls.Config{MinVersion: max(t.MinVersion, tls.VersionTLS12), CipherSuites: t.CipherSuites, GetCertificate: get}
}

// Protocols returns what an HTTP server offers.
func (t TLS) Protocols() *http.Protocols {
	p := &http.Protocols{}
	p.SetHTTP1(true)
	p.SetHTTP2(t.HTTP2)
	return p
}

func (t TLS) withDefaults() TLS {
	t.CertName = cmp.Or(t.CertName, "tls.crt")
	t.KeyName = cmp.Or(t.KeyName, "tls.key")
	return t
}

// ParseVersion reads the value of a flag --tls-min-version as Kubernetes components
// have it: VersionTLS12 or VersionTLS13; empty is the default, 0.
func ParseVersion(name string) (uint16, error) {
	switch name {
	case "":
		return 0, nil
	case "VersionTLS12":
		return tls.VersionTLS12, nil
	case "VersionTLS13":
		return tls.VersionTLS13, nil
	}
	return 0, fmt.Errorf("the TLS version %q is none of VersionTLS12 and VersionTLS13", name)
}

// ParseCipherSuites reads the value of a flag --tls-cipher-suites as Kubernetes
// components have it: Go's names of cipher suites, separated by commas; empty is the
// default, nil. Insecure suites are refused.
func ParseCipherSuites(names string) ([]uint16, error) {
	if names == "" {
		return nil, nil
	}
	known, offered := map[string]uint16{}, []string{}
	for _, suite := range tls.CipherSuites() {
		known[suite.Name] = suite.ID
		offered = append(offered, suite.Name)
	}
	var out []uint16
	for name := range strings.SplitSeq(names, ",") {
		id, ok := known[strings.TrimSpace(name)]
		if !ok {
			return nil, fmt.Errorf("the cipher suite %q is none of %s", name, strings.Join(offered, ", "))
		}
		out = append(out, id)
	}
	return out, nil
}
