// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package wiretest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// webhookService is the Service that the certificate of the webhook server is for.
const webhookService = "webhook.default.svc"

// webhookServer serves the webhooks of one run on loopback and remembers what it was
// sent.
type webhookServer struct {
	hooks map[string]*Webhook
	// backends are the paths of the aggregated API server.
	backends map[string]*Webhook
	// fill replaces captured values in answers.
	fill func(string) string

	server, expired *httptest.Server
	port            string
	// authority and stranger are certificates in PEM, as base64. The servers' own are
	// signed by authority.
	authority, stranger string

	mu    sync.Mutex
	calls []call
}

// call is one request to the webhook server.
type call struct {
	line   string
	review any
	sorted bool
	// backend reports that it is a request to the aggregated API server.
	backend bool
}

// startWebhooks starts a server. The caller must close it. fill replaces captured values in
// answers.
func startWebhooks(script *Script, fill func(string) string) (*webhookServer, error) {
	s := &webhookServer{hooks: map[string]*Webhook{}, backends: map[string]*Webhook{}, fill: fill}
	for _, hook := range script.Webhooks {
		s.hooks[hook.Path] = hook
	}
	for _, backend := range script.Backends {
		s.backends[backend.Path] = backend
	}
	now := time.Now()
	authority, err := newAuthority("webhooks")
	if err != nil {
		return nil, err
	}
	stranger, err := newAuthority("stranger")
	if err != nil {
		return nil, err
	}
	current, err := authority.issue(now.Add(-time.Hour), now.Add(24*time.Hour))
	if err != nil {
		return nil, err
	}
	old, err := authority.issue(time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2021, 1, 1, 0, 0, 0, 0, time.UTC))
	if err != nil {
		return nil, err
	}
	s.authority, s.stranger = authority.bundle(), stranger.bundle()
	s.server, s.expired = s.listen(s, current), s.listen(expiredServer{s}, old)
	s.port = portOf(s.server)
	return s, nil
}

func (s *webhookServer) listen(h http.Handler, certificate tls.Certificate) *httptest.Server {
	server := httptest.NewUnstartedServer(h)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	if len(s.backends) > 0 {
		server.TLS.ClientAuth, server.EnableHTTP2 = tls.RequestClientCert, true
	}
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // clients that refuse the certificate
	server.StartTLS()
	return server
}

// expiredServer answers at the port whose certificate has expired.
type expiredServer struct{ *webhookServer }

func (s expiredServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if len(s.backends) > 0 {
		r.URL.Path = "/expired" + r.URL.Path // it is another API server
	}
	s.webhookServer.ServeHTTP(w, r)
}

func portOf(server *httptest.Server) string {
	return strconv.Itoa(server.Listener.Addr().(*net.TCPAddr).Port)
}

func (s *webhookServer) close() {
	s.server.CloseClientConnections()
	s.server.Close()
	s.expired.Close()
}

// vars are the variables that stand for the server in a conversation.
func (s *webhookServer) vars() map[string]string {
	return map[string]string{
		"webhook_url":         s.server.URL,
		"webhook_port":        s.port,
		"webhook_ca":          s.authority,
		"webhook_expired_url": s.expired.URL,
		"expired_port":        portOf(s.expired),
		"webhook_other_ca":    s.stranger,
	}
}

// take returns the calls since the last one, those without an order sorted.
func (s *webhookServer) take() []call {
	s.mu.Lock()
	defer s.mu.Unlock()
	calls := s.calls
	s.calls = nil
	slices.SortStableFunc(calls, func(a, b call) int {
		if !a.sorted || !b.sorted {
			return 0
		}
		return strings.Compare(a.line, b.line)
	})
	return calls
}

// record adds a call, unless the API server sent the request to itself, which it does at
// any time.
func (s *webhookServer) record(c call) {
	review, _ := c.review.(map[string]any)
	if slices.Contains(parsePath("request.userInfo.username").find(review), any("system:apiserver")) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, c)
}

func (s *webhookServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, limit))
	if err != nil {
		return // the client is gone
	}
	if backend := s.backends[r.URL.Path]; backend != nil || s.hooks[r.URL.Path] == nil && len(s.backends) > 0 {
		s.serveBackend(w, r, body, backend)
		return
	}
	hook := s.hooks[r.URL.Path]
	review := map[string]any{}
	if err := json.Unmarshal(body, &review); err != nil {
		review["undecodable"] = string(body)
	}
	s.record(call{line: r.Method + " " + r.URL.RequestURI(), review: review, sorted: hook != nil && hook.concurrent})
	if hook == nil {
		http.NotFound(w, r)
		return
	}
	hook.pause(r.Context())
	if hook.hangUp {
		panic(http.ErrAbortHandler)
	}
	text := []byte(s.fill(hook.body))
	if hook.raw {
		text = []byte(pad(string(text)))
	} else {
		// The review is decoded once more: conversions change it.
		sent := map[string]any{}
		if err = json.Unmarshal(body, &sent); err == nil {
			text, err = hook.answer(sent, string(text))
		}
		if err != nil {
			http.Error(w, fmt.Sprintf("the section of webhook %s: %v", hook.Path, err), http.StatusInternalServerError)
			return
		}
	}
	w.Header().Set("Content-Type", "application/json")
	for key, values := range hook.header {
		w.Header().Set(key, s.fill(values[0]))
	}
	w.WriteHeader(hook.code)
	_, _ = w.Write(text) // a client that left is not told
}

// authority signs the certificates of webhook servers.
type authority struct {
	key         *ecdsa.PrivateKey
	certificate *x509.Certificate
}

func newAuthority(name string) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: name},
		NotBefore:             time.Date(2019, 1, 1, 0, 0, 0, 0, time.UTC),
		NotAfter:              time.Now().Add(24 * time.Hour),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign,
	}
	data, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	certificate, err := x509.ParseCertificate(data)
	return &authority{key: key, certificate: certificate}, err
}

// bundle is the certificate in PEM, as base64: the form of a caBundle in JSON.
func (a *authority) bundle() string {
	return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.certificate.Raw}))
}

// issue returns a serving certificate for loopback and for [webhookService].
func (a *authority) issue(from, until time.Time) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2),
		Subject:      pkix.Name{CommonName: webhookService},
		DNSNames:     []string{webhookService},
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore:    from,
		NotAfter:     until,
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	data, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	return tls.Certificate{Certificate: [][]byte{data}, PrivateKey: key}, err
}
