// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptrace"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/client-go/rest"

	"github.com/steer-dev/steer/certificate"
	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/internal/lifecycletest"
	"github.com/steer-dev/steer/webhook"
)

// writeCertificate writes a certificate of localhost, and returns it.
func writeCertificate(t *testing.T, dir string, serial int64) *x509.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), DNSNames: []string{"localhost"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{"tls.crt": {Type: "CERTIFICATE", Bytes: der}, "tls.key": {Type: "EC PRIVATE KEY", Bytes: keyDER}} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return leaf
}

// trusting is a client that trusts one certificate.
func trusting(t *testing.T, ca *x509.Certificate) *http.Client {
	t.Helper()
	pool := x509.NewCertPool()
	pool.AddCert(ca)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: "localhost"}, ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// running is a server that listens.
type running struct {
	web
	stop  context.CancelFunc
	ended chan error
}

func (r running) url(path string) string { return "https://" + r.Addr().String() + path }

func start(t *testing.T, w web) running {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r := running{w, cancel, make(chan error, 1)}
	if err := w.Ready(nil); err == nil {
		t.Error("it is ready before it is started")
	}
	go func() { r.ended <- w.Start(ctx) }()
	t.Cleanup(cancel)
	if err := w.log.wait(t.Context(), "Serving"); err != nil {
		t.Fatal(err)
	}
	if err := w.Ready(nil); err != nil {
		t.Error(err)
	}
	return r
}

func reviewOf(t *testing.T, r *admissionv1.AdmissionRequest) []byte {
	t.Helper()
	review := admissionv1.AdmissionReview{Request: r}
	review.APIVersion, review.Kind = "admission.k8s.io/v1", "AdmissionReview"
	body, err := json.Marshal(review)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// blocking is a handler that waits.
func blocking(entered chan<- struct{}, release <-chan struct{}) webhook.HandlerFunc {
	return func(context.Context, *webhook.Request) webhook.Response {
		entered <- struct{}{}
		<-release
		return webhook.Allowed()
	}
}

func TestServerServesTheCertificateOfItsFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := writeCertificate(t, dir, 1)
	w := newWeb(t, func(o *webhook.Options) {
		o.Address, o.Drain, o.TLS = "127.0.0.1:0", -1, certificate.TLS{Dir: dir, MinVersion: tls.VersionTLS13}
	})
	if err := webhook.AddHandler(w, "/h", webhook.HandlerFunc(func(context.Context, *webhook.Request) webhook.Response { return webhook.Allowed() })); err != nil {
		t.Fatal(err)
	}
	server := start(t, w)
	trusted := trusting(t, first)
	resp, err := trusted.Post(server.url("/h"), "application/json", bytes.NewReader(reviewOf(t, request(admissionv1.Create, plain, ""))))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK || resp.ProtoMajor != 1 || resp.TLS.Version != tls.VersionTLS13 {
		t.Errorf("%d over HTTP/%d, TLS %x", resp.StatusCode, resp.ProtoMajor, resp.TLS.Version)
	}
	old := &tls.Config{RootCAs: trusted.Transport.(*http.Transport).TLSClientConfig.RootCAs, ServerName: "localhost", MaxVersion: tls.VersionTLS12}
	if c, err := tls.Dial("tcp", server.Addr().String(), old); err == nil {
		c.Close()
		t.Error("a version below the lowest is accepted")
	}
	server.stop()
	if err := <-server.ended; err != nil {
		t.Error(err)
	}
	if err := w.Ready(nil); err == nil || !strings.Contains(err.Error(), "stopping") {
		t.Errorf("a server that has ended is ready: %v", err)
	}
}

// pipes are a listener in memory.
type pipes struct {
	accepted chan net.Conn
	closed   context.Context
	close    context.CancelFunc
}

func newPipes() *pipes {
	p := &pipes{accepted: make(chan net.Conn)}
	p.closed, p.close = context.WithCancel(context.Background())
	return p
}

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case p.accepted <- theirs:
		return ours, nil
	case <-p.closed.Done():
		return nil, syscall.ECONNREFUSED
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.accepted:
		return c, nil
	case <-p.closed.Done():
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.close(); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

func TestServerAnswersWhatIsInFlightAndWhatComesWhileItDrains(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		entered, release := make(chan struct{}, 2), make(chan struct{})
		dir := t.TempDir()
		client := trusting(t, writeCertificate(t, dir, 1))
		const drain = 5 * time.Second
		w := newWeb(t, func(o *webhook.Options) { o.Drain, o.TLS = drain, certificate.TLS{Dir: dir} })
		if err := webhook.AddHandler(w, "/h", blocking(entered, release)); err != nil {
			t.Fatal(err)
		}
		listener, ended := newPipes(), make(chan error, 1)
		client.Transport.(*http.Transport).DialContext = listener.dial
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go func() { ended <- w.ServeOn(ctx, listener) }()
		body := reviewOf(t, request(admissionv1.Create, plain, ""))
		var all sync.WaitGroup
		send := func() {
			resp, err := client.Post("https://localhost/h", "application/json", bytes.NewReader(body))
			if err != nil {
				t.Errorf("a request failed: %v", err)
				return
			}
			resp.Body.Close()
			if resp.StatusCode != http.StatusOK {
				t.Errorf("status %d", resp.StatusCode)
			}
		}
		all.Go(send)
		<-entered
		stop()
		told := time.Now()
		if err := w.log.wait(t.Context(), "until the API servers have noticed"); err != nil {
			t.Fatal(err)
		}
		if err := w.Ready(nil); err == nil {
			t.Error("it is ready while it drains")
		}
		time.Sleep(drain - time.Nanosecond)
		all.Go(send)
		<-entered
		time.Sleep(drain)
		close(release)
		all.Wait()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if took := time.Since(told); took < 2*drain-time.Nanosecond || took > 2*drain {
			t.Errorf("it ended %v after it was told to, and the last request %v after", took, 2*drain-time.Nanosecond)
		}
		if c, err := listener.dial(t.Context(), "", ""); err == nil {
			c.Close()
			t.Error("it listens after its end")
		}
		time.Sleep(time.Minute) // both ends of a pipe may be writing that they close, which ends in time
	})
}

func TestServerTellsOnceThatItsCertificateIsNotTrusted(t *testing.T) {
	t.Parallel()
	dir, other := t.TempDir(), t.TempDir()
	writeCertificate(t, dir, 1)
	w := newWeb(t, func(o *webhook.Options) {
		o.Address, o.Drain, o.TLS = "127.0.0.1:0", -1, certificate.TLS{Dir: dir}
	})
	if err := webhook.AddConversion(w, &widget{}); err != nil {
		t.Fatal(err)
	}
	server := start(t, w)
	distrusting := trusting(t, writeCertificate(t, other, 2))
	for range 3 {
		if resp, err := distrusting.Post(server.url("/convert"), "application/json", nil); err == nil {
			resp.Body.Close()
			t.Fatal("the certificate is trusted")
		}
	}
	if err := w.log.wait(t.Context(), "does not trust the certificate"); err != nil {
		t.Fatal(err)
	}
	server.stop()
	if err := <-server.ended; err != nil { // all handshakes have ended
		t.Error(err)
	}
	if log := w.log.String(); strings.Count(log, "whether the clocks of both nodes agree") != 1 {
		t.Errorf("log: %s", log)
	}
}

// TestServerThatWasNotCalledYetDrains sends the first request after the server was told to
// stop: a replica may be told so as soon as it is ready.
func TestServerThatWasNotCalledYetDrains(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ca := writeCertificate(t, dir, 1)
	w := newWeb(t, func(o *webhook.Options) {
		o.Address, o.Drain, o.TLS = "127.0.0.1:0", 30*time.Second, certificate.TLS{Dir: dir}
	})
	if err := webhook.AddHandler(w, "/h", webhook.HandlerFunc(func(context.Context, *webhook.Request) webhook.Response { return webhook.Allowed() })); err != nil {
		t.Fatal(err)
	}
	server := start(t, w)
	url := server.url("/h")
	server.stop()
	if err := w.log.wait(t.Context(), "until the API servers have noticed"); err != nil {
		t.Fatal(err)
	}
	resp, err := trusting(t, ca).Post(url, "application/json", bytes.NewReader(reviewOf(t, request(admissionv1.Create, plain, ""))))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
}

// TestServerAnswersOnIdleConnectionsWhileItDrains sends a request on a connection that was
// idle when the server was told to stop: the answer closes it, and not the server before.
func TestServerAnswersOnIdleConnectionsWhileItDrains(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ca := writeCertificate(t, dir, 1)
	w := newWeb(t, func(o *webhook.Options) {
		o.Address, o.Drain, o.TLS = "127.0.0.1:0", 30*time.Second, certificate.TLS{Dir: dir}
	})
	if err := webhook.AddHandler(w, "/h", webhook.HandlerFunc(func(context.Context, *webhook.Request) webhook.Response { return webhook.Allowed() })); err != nil {
		t.Fatal(err)
	}
	server := start(t, w)
	c := trusting(t, ca)
	url, body := server.url("/h"), reviewOf(t, request(admissionv1.Create, plain, ""))
	send := func() (reused, closes bool) {
		t.Helper()
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) { reused = i.Reused }})
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		resp, err := c.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		return reused, resp.Close
	}
	if _, closes := send(); closes {
		t.Error("a connection ends with its first answer")
	}
	server.stop()
	if err := w.log.wait(t.Context(), "until the API servers have noticed"); err != nil {
		t.Fatal(err)
	}
	if reused, closes := send(); !reused || !closes {
		t.Errorf("on an idle connection: %t, closed by the answer: %t", reused, closes)
	}
}

func TestHandlerIsToldWhenTheAPIServerStopsWaiting(t *testing.T) {
	t.Parallel()
	w := newWeb(t, nil)
	err := webhook.AddHandler(w, "/h", webhook.HandlerFunc(func(ctx context.Context, _ *webhook.Request) webhook.Response {
		<-ctx.Done()
		if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			t.Error(ctx.Err())
		}
		return webhook.Denied("too late")
	}))
	if err != nil {
		t.Fatal(err)
	}
	post(w, "/h?timeout=1ms", string(reviewOf(t, request(admissionv1.Create, plain, ""))))
	if log := w.log.String(); !strings.Contains(log, "raise timeoutSeconds") {
		t.Errorf("log: %s", log)
	}
}

func TestServerThatCannotListenSaysWhatToDo(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for name, c := range map[string]struct {
		change func(*webhook.Options)
		says   string
	}{
		"the port is taken": {func(o *webhook.Options) { o.Address = taken.Addr().String() }, "--webhook-port"},
		"no certificate":    {func(o *webhook.Options) { o.TLS.Dir = "/nowhere" }, "--webhook-cert-path"},
	} {
		w := newWeb(t, c.change)
		if err := webhook.AddConversion(w, &widget{}); err != nil {
			t.Fatal(err)
		}
		if err := w.Start(t.Context()); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestServerKeepsTheLifecycle(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"127.0.0.1:0", "0"} {
		t.Run(address, func(t *testing.T) {
			lifecycletest.RunBlocking(t, func(t *testing.T) lifecycletest.Blocking {
				w := newWeb(t, func(o *webhook.Options) { o.Address = address })
				if err := webhook.AddConversion(w, &widget{}); err != nil {
					t.Error(err)
				}
				return lifecycletest.Blocking{Run: w.Start, ErrStarted: webhook.ErrStarted, Running: func(ctx context.Context) error {
					return w.log.wait(ctx, "Serving")
				}}
			})
		})
	}
}

// TestServerWaitsForItsAuthority runs a server whose API server cannot be reached.
func TestServerWaitsForItsAuthority(t *testing.T) {
	t.Parallel()
	open := func(t *testing.T) web {
		c, err := client.New(&rest.Config{Host: "http://127.0.0.1:1"}, client.Options{})
		if err != nil {
			t.Error(err)
		}
		w := newWeb(t, func(o *webhook.Options) {
			o.Address, o.Client, o.Authority.Namespace = "127.0.0.1:0", c, "default"
		})
		if err := webhook.AddConversion(w, &widget{}); err != nil {
			t.Error(err)
		}
		return w
	}
	lifecycletest.RunBlocking(t, func(t *testing.T) lifecycletest.Blocking {
		w := open(t)
		return lifecycletest.Blocking{Run: w.Start, ErrStarted: webhook.ErrStarted, Running: func(ctx context.Context) error {
			if err := w.log.wait(ctx, "read the CA of the webhooks"); err != nil {
				return err
			}
			if err := w.Ready(nil); err == nil {
				t.Error("it is ready without a certificate")
			}
			return nil
		}}
	})
}

func TestConnectionsAreBounded(t *testing.T) {
	t.Parallel()
	w := newWeb(t, func(o *webhook.Options) { o.Address, o.Drain, o.MaxConnections = "127.0.0.1:0", -1, 2 })
	if err := webhook.AddHandler(w, "/h", webhook.HandlerFunc(func(context.Context, *webhook.Request) webhook.Response { return webhook.Allowed() })); err != nil {
		t.Fatal(err)
	}
	server := start(t, w)
	var handshakes []func() error
	for range 3 {
		c, err := new(net.Dialer).DialContext(t.Context(), "tcp", server.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		handshakes = append(handshakes, tls.Client(c, &tls.Config{InsecureSkipVerify: true}).Handshake) // it is about who is answered
	}
	if err := handshakes[2](); err == nil {
		t.Error("of three connections, where two are allowed, the third one is served")
	}
	for i, handshake := range handshakes[:2] {
		if err := handshake(); err != nil {
			t.Errorf("connection %d: %v", i, err)
		}
	}
	server.stop()
	if err := <-server.ended; err != nil {
		t.Error(err)
	}
}
