// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package leadership_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"log"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/steer-dev/steer/apiserver"
	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/controlplane/leadership"
	"github.com/steer-dev/steer/storage"
	"github.com/steer-dev/steer/storage/storagetest/shared"
)

// authority signs the certificates of servers.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	a := &authority{key: key}
	a.certificate = a.sign(t, &x509.Certificate{Subject: pkix.Name{CommonName: "peers"}, IsCA: true, BasicConstraintsValid: true}, key)
	return a
}

func (a *authority) sign(t *testing.T, template *x509.Certificate, key *ecdsa.PrivateKey) *x509.Certificate {
	t.Helper()
	template.SerialNumber, template.NotBefore, template.NotAfter = big.NewInt(1), time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent := a.certificate
	if parent == nil {
		parent = template
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	out, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// issue returns one for both ends of a connection between servers.
func (a *authority) issue(t *testing.T) *tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	leaf := a.sign(t, &x509.Certificate{
		Subject: pkix.Name{CommonName: "peer"}, DNSNames: []string{leadership.ServerName},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, key)
	return &tls.Certificate{Certificate: [][]byte{leaf.Raw}, PrivateKey: key, Leaf: leaf}
}

func clusterKeys() (leadership.Fingerprints, error) {
	return leadership.Fingerprints{"ca": "1", "sa": "2"}, nil
}

// pair is a server that leads, whose requests handler answers, and one that follows.
type pair struct {
	leader, follower *leadership.Server
	address          string
	authority        *authority
	store            storage.Elector // of the follower
	stop             func()          // ends the leader's part
}

func newPair(t *testing.T, handler http.HandlerFunc) *pair {
	t.Helper()
	a := newAuthority(t)
	db := shared.New(1)
	open := func(identity string) (*leadership.Server, storage.Elector) {
		store, certificate := db.OpenServer(storage.MemoryOptions{}), a.issue(t)
		t.Cleanup(func() { _ = store.Close() })
		return leadership.New(leadership.Options{
			Store: store, Identity: identity, Log: slog.New(slog.DiscardHandler),
			Authority:   func() (*x509.Certificate, error) { return a.certificate, nil },
			Certificate: func() (*tls.Certificate, error) { return certificate, nil },
			Keys:        clusterKeys,
			Load:        func(context.Context) error { return nil }, Prepared: func() {},
			TakeOver: func(context.Context) error { return nil }, Lead: func(ctx context.Context) { <-ctx.Done() },
		}), store
	}
	p := &pair{authority: a}
	leader, _ := open("leader")
	follower, store := open("follower")
	p.leader, p.follower, p.store = leader, follower, store
	server := httptest.NewUnstartedServer(leader.Handler(handler))
	server.EnableHTTP2 = true
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.TLS = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: leader.GetCertificate, ClientAuth: tls.RequestClientCert}
	server.StartTLS()
	t.Cleanup(server.Close)
	t.Cleanup(follower.Close)
	p.address = server.Listener.Addr().String()
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan struct{})
	go func() {
		defer close(ran)
		leader.Run(ctx, p.address)
	}()
	p.stop = func() {
		cancel()
		<-ran
	}
	t.Cleanup(p.stop)
	if err := follower.AwaitPrepared(t.Context()); err != nil {
		t.Fatal(err)
	}
	return p
}

// forward has the follower pass a request on.
func (p *pair) forward(t *testing.T, header http.Header) (*httptest.ResponseRecorder, bool, error) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "https://follower/api/v1/namespaces?dryRun=All", nil)
	r.Header = header
	w := httptest.NewRecorder()
	answered, err := p.follower.Forward(w, apiserver.Forwarded{
		Request: r, Body: []byte("body"), AuditID: "audit",
		User: &auth.User{Name: "jane", UID: "7", Groups: []string{"dev"}, Extra: map[string][]string{"k": {"v"}}},
	})
	return w, answered, err
}

func TestServersOfAnotherProtocolRefuseEachOther(t *testing.T) {
	t.Parallel()
	var executed atomic.Int32
	p := newPair(t, func(http.ResponseWriter, *http.Request) { executed.Add(1) })
	p.follower.SetProtocol("3")
	_, answered, err := p.forward(t, http.Header{})
	if answered || !apierrors.IsServiceUnavailable(err) || !strings.Contains(err.Error(), "has version 2 of the protocol between servers, and this one 3") {
		t.Errorf("answered %v: %v", answered, err)
	}
	if n := executed.Load(); n != 0 {
		t.Errorf("%d requests of another protocol were executed", n)
	}
	p.follower.SetProtocol("2")
	if _, answered, err := p.forward(t, http.Header{"Steer-Peer-Protocol": {"7"}}); !answered || err != nil || executed.Load() != 1 {
		t.Errorf("with the same protocol: %v, %v", answered, err)
	}
}

func TestForwardNamesTheUserAndNothingThatTheClientClaims(t *testing.T) {
	t.Parallel()
	var got *http.Request
	var body []byte
	p := newPair(t, func(w http.ResponseWriter, r *http.Request) {
		got = r
		body, _ = io.ReadAll(r.Body)
		w.Header().Set("Audit-Id", r.Header.Get("Audit-Id"))
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, "created")
	})
	w, answered, err := p.forward(t, http.Header{
		"Authorization": {"Bearer x"}, "Cookie": {"a=b"}, "X-Remote-User": {"root"}, "X-Remote-Extra-A": {"b"},
		"Steer-Peer-User": {"e30="}, "Connection": {"X-Hop"}, "X-Hop": {"1"}, "Idempotency-Key": {"1"},
		"Impersonate-User": {"joe"}, "Content-Type": {"application/json"},
	})
	if err != nil || !answered || w.Code != http.StatusCreated || w.Body.String() != "created" || w.Header().Get("Audit-Id") != "audit" {
		t.Fatalf("%v, %v: %d %s %v", answered, err, w.Code, w.Body, w.Header())
	}
	want := &auth.User{Name: "jane", UID: "7", Groups: []string{"dev"}, Extra: map[string][]string{"k": {"v"}}}
	if diff := cmp.Diff(want, auth.UserFrom(got.Context())); diff != "" {
		t.Errorf("user (-want +got)\n%s", diff)
	}
	if got.URL.RequestURI() != "/api/v1/namespaces?dryRun=All" || string(body) != "body" {
		t.Errorf("%s with %q", got.URL.RequestURI(), body)
	}
	header := got.Header.Clone()
	header.Del("Content-Length")
	if diff := cmp.Diff(http.Header{"Impersonate-User": {"joe"}, "Content-Type": {"application/json"}, "Audit-Id": {"audit"}}, header); diff != "" {
		t.Errorf("headers (-want +got)\n%s", diff)
	}
}

func TestForwardSendsATokenInPlaceOfItsUser(t *testing.T) {
	t.Parallel()
	var got *http.Request
	p := newPair(t, func(_ http.ResponseWriter, r *http.Request) { got = r })
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "https://follower/api/v1/namespaces", nil)
	r.Header = http.Header{"Steer-Peer-User": {"eyJOYW1lIjoicm9vdCJ9"}, "Authorization": {"Basic x"}}
	if answered, err := p.follower.Forward(httptest.NewRecorder(), apiserver.Forwarded{Request: r, User: &auth.User{Name: "jane"}, Token: "t"}); !answered || err != nil {
		t.Fatalf("%v, %v", answered, err)
	}
	if user := auth.UserFrom(got.Context()); user != nil {
		t.Errorf("the leader believes that the user is %s", user.Name)
	}
	if got.Header.Get("Authorization") != "Bearer t" || len(got.TLS.PeerCertificates)+len(got.TLS.VerifiedChains) > 0 {
		t.Errorf("the leader authenticates %q, with %d certificates", got.Header.Get("Authorization"), len(got.TLS.PeerCertificates))
	}
	for name := range got.Header {
		if strings.HasPrefix(name, leadership.HeaderPrefix) {
			t.Errorf("the leader goes on with the header %s", name)
		}
	}
}

func TestHandlerBelievesTheUserOfServersAlone(t *testing.T) {
	t.Parallel()
	named := make(chan *auth.User, 1)
	p := newPair(t, func(_ http.ResponseWriter, r *http.Request) { named <- auth.UserFrom(r.Context()) })
	roots := x509.NewCertPool()
	roots.AddCert(p.authority.certificate)
	for name, certificate := range map[string]*tls.Certificate{"none": nil, "another authority's": newAuthority(t).issue(t)} {
		config := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots, ServerName: leadership.ServerName}
		if certificate != nil {
			config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return certificate, nil }
		}
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: config}}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+p.address+"/", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Steer-Peer-Protocol", "2")
		r.Header.Set("Steer-Peer-User", "eyJOYW1lIjoicm9vdCJ9") // {"Name":"root"}
		answer, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if user := <-named; user != nil {
			t.Errorf("certificate %s: the request is of %s", name, user.Name)
		}
		client.CloseIdleConnections()
	}
}

func TestForwardRepeatsNoRequestThatBroke(t *testing.T) {
	t.Parallel()
	var received atomic.Int32
	p := newPair(t, func(http.ResponseWriter, *http.Request) {
		received.Add(1)
		panic(http.ErrAbortHandler)
	})
	for range 3 {
		_, answered, err := p.forward(t, http.Header{})
		if answered || !apierrors.IsInternalError(err) || !strings.Contains(err.Error(), "whether it was executed is unknown") {
			t.Errorf("%v, %v", answered, err)
		}
	}
	if n := received.Load(); n != 3 {
		t.Errorf("3 requests were received %d times", n)
	}
}

func TestForwardAsksAgainWhenNothingWasExecuted(t *testing.T) {
	t.Parallel()
	p := newPair(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Steer-Peer-Refused", "true")
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	if w, answered, err := p.forward(t, http.Header{}); answered || err != nil || len(w.Header()) > 0 {
		t.Errorf("refused by the leader: %v, %v, %v", answered, err, w.Header())
	}
}

// A server is ready while the leader executes requests, and that is this one or one that it
// reaches.
func TestReadyWhileTheLeaderIsReached(t *testing.T) {
	t.Parallel()
	p := newPair(t, nil)
	p.leader.Ask(t.Context()) // it may be taking over
	if err := p.leader.Ready(); err != nil {
		t.Errorf("the leader: %v", err)
	}
	if err := p.follower.Ready(); err == nil {
		t.Error("a follower that never asked the leader is ready")
	}
	p.follower.Ask(t.Context())
	if err := p.follower.Ready(); err != nil {
		t.Errorf("a follower: %v", err)
	}
	p.stop()
	p.follower.Ask(t.Context())
	if err := p.follower.Ready(); err == nil {
		t.Error("a follower is ready without a leader")
	}
	if err := p.leader.Ready(); err == nil {
		t.Error("a server whose term has ended is ready")
	}
}

// A server that cannot take over is not ready, and one that is elected and not reached is no
// leader to the others.
func TestNotReadyWhileNobodyExecutesRequests(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	db := shared.New(1)
	store, certificate := db.OpenServer(storage.MemoryOptions{}), a.issue(t)
	t.Cleanup(func() { _ = store.Close() })
	trying := make(chan struct{})
	server := leadership.New(leadership.Options{
		Keys:  clusterKeys,
		Store: store, Identity: "a", Log: slog.New(slog.DiscardHandler),
		Authority:   func() (*x509.Certificate, error) { return a.certificate, nil },
		Certificate: func() (*tls.Certificate, error) { return certificate, nil },
		Load:        func(context.Context) error { return nil }, Prepared: func() {},
		TakeOver: func(ctx context.Context) error {
			close(trying)
			<-ctx.Done()
			return ctx.Err()
		},
		Lead: func(ctx context.Context) { <-ctx.Done() },
	})
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan struct{})
	go func() {
		defer close(ran)
		server.Run(ctx, "127.0.0.1:1")
	}()
	defer func() {
		cancel()
		<-ran
	}()
	<-trying
	if err := server.Ready(); err == nil || !strings.Contains(err.Error(), "taking over") {
		t.Errorf("a server that takes over: %v", err)
	}
	other := leadership.New(leadership.Options{
		Store: elsewhere{store}, Identity: "b", Log: slog.New(slog.DiscardHandler),
		Authority:   func() (*x509.Certificate, error) { return a.certificate, nil },
		Certificate: func() (*tls.Certificate, error) { return certificate, nil },
		Dial: func(context.Context, string, string) (net.Conn, error) {
			return nil, errors.New("no route to host")
		},
	})
	other.Ask(t.Context())
	if err := other.Ready(); err == nil || !strings.Contains(err.Error(), "no route to host") {
		t.Errorf("a server that does not reach the leader: %v", err)
	}
}

func TestForwardAsksAgainWhenTheLeaderIsNotReached(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	p := &pair{follower: leadership.New(leadership.Options{
		Store: elsewhere{}, Identity: "other", Log: slog.New(slog.DiscardHandler),
		Authority: func() (*x509.Certificate, error) { return a.certificate, nil },
		Dial:      func(context.Context, string, string) (net.Conn, error) { return nil, io.ErrUnexpectedEOF },
	})}
	if _, answered, err := p.forward(t, http.Header{}); answered || err != nil {
		t.Errorf("%v, %v", answered, err)
	}
}

// elsewhere is a store whose leader is at an address where no server is.
type elsewhere struct{ storage.Elector }

func (elsewhere) Leader() (storage.Leader, <-chan struct{}) {
	return storage.Leader{Member: storage.Member{Identity: "x", Address: "192.0.2.1:1"}, Term: 1}, nil
}

func TestRunLetsRequestsEndBeforeItResigns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := shared.New(1).OpenServer(storage.MemoryOptions{})
		defer store.Close()
		s := leadership.New(leadership.Options{
			Keys:  clusterKeys,
			Store: store, Identity: "one", Log: slog.New(slog.DiscardHandler),
			Load: func(context.Context) error { return nil }, Prepared: func() {},
			TakeOver: func(context.Context) error { return nil }, Lead: func(ctx context.Context) { <-ctx.Done() },
		})
		ctx, cancel := context.WithCancel(t.Context())
		ran := make(chan struct{})
		go func() {
			defer close(ran)
			s.Run(ctx, "")
		}()
		synctest.Wait()
		leave, err := s.Enter(t.Context())
		if err != nil || leave == nil {
			t.Fatalf("the leader does not execute requests: %v", err)
		}
		cancel()
		synctest.Wait()
		if next, err := s.Enter(t.Context()); err != nil || next != nil {
			t.Errorf("a request enters a server that resigns: %v", err)
		}
		// The request under way still writes.
		w := storage.Write{Key: storage.Key{Bucket: "b", Name: "n"}, Value: []byte("1"), Expect: storage.Absent}
		if _, err := store.Commit(t.Context(), w); err != nil {
			t.Errorf("the request under way: %v", err)
		}
		select {
		case <-ran:
			t.Error("the server has resigned before the request ended")
		default:
		}
		leave()
		<-ran
		synctest.Wait()
		if now, _ := store.Leader(); now.Term != 0 {
			t.Errorf("%v leads", now)
		}
	})
}

func TestEnterRefusesWhatAnotherServerPassedOnUnlessItLeads(t *testing.T) {
	t.Parallel()
	p := newPair(t, func(w http.ResponseWriter, r *http.Request) { t.Error("answered by the leader") })
	var entered error
	handler := p.follower.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, entered = p.follower.Enter(r.Context()) }))
	certificate := p.authority.issue(t)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil)
	r.Header.Set("Steer-Peer-Protocol", "2")
	r.Header.Set("Steer-Peer-User", "eyJOYW1lIjoicm9vdCJ9") // {"Name":"root"}
	r.TLS = &tls.ConnectionState{ServerName: leadership.ServerName, PeerCertificates: []*x509.Certificate{certificate.Leaf}}
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	if !errors.Is(entered, storage.ErrNotLeader) || w.Header().Get("Steer-Peer-Refused") == "" {
		t.Errorf("%v, %v", entered, w.Header())
	}
}

// The record of the cluster's keys may come while a server with others runs.
func TestServersWithOtherKeysDoNothing(t *testing.T) {
	t.Parallel()
	p := newPair(t, func(http.ResponseWriter, *http.Request) {})
	certificate := p.authority.issue(t)
	tookOver := false
	other := leadership.New(leadership.Options{
		Store: p.store, Identity: "other", Log: slog.New(slog.DiscardHandler),
		Authority:   func() (*x509.Certificate, error) { return p.authority.certificate, nil },
		Certificate: func() (*tls.Certificate, error) { return certificate, nil },
		Keys:        func() (leadership.Fingerprints, error) { return leadership.Fingerprints{"ca": "1", "sa": "other"}, nil },
		Load:        func(context.Context) error { return nil },
		TakeOver:    func(context.Context) error { tookOver = true; return nil },
	})
	if err := p.follower.CatchUp(t.Context()); err != nil {
		t.Errorf("with the keys of the cluster: %v", err)
	}
	for name, err := range map[string]error{
		"a request": other.CatchUp(t.Context()), "the start": other.AwaitPrepared(t.Context()),
	} {
		if !errors.Is(err, leadership.ErrOtherKeys) || !strings.Contains(err.Error(), ": sa: ") {
			t.Errorf("%s: got error %v, want ErrOtherKeys for sa alone", name, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	other.Run(ctx, "127.0.0.1:1")
	if tookOver {
		t.Error("it leads")
	}
}
