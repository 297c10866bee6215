// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package webhookclient_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/steer-dev/steer/controlplane/webhookclient"
)

func silent() *log.Logger { return log.New(io.Discard, "", 0) }

// hour is the time until which certificates of tests are valid.
func hour() time.Time { return time.Now().Add(time.Hour) }

func TestClientPostsToAURL(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	header := make(chan http.Header, 1)
	w := serve(t, a.issue(t, hour(), "127.0.0.1"), func(w http.ResponseWriter, r *http.Request) {
		header <- r.Header
		answers(w, r)
	})
	c := newClient(t, webhookclient.Options{}, false, nil)
	got := mustPost(t, c, webhookclient.Target{URL: w.URL + "/validate/", CABundle: a.bundle(), Timeout: 5 * time.Second})
	if want := "/validate?timeout=5s review"; got != want {
		t.Errorf("the webhook got %q, want %q", got, want)
	}
	h := <-header
	if h.Get("Content-Type") != "application/json" || h.Get("Authorization") != "" || h["Idempotency-Key"] != nil {
		t.Errorf("the webhook got the headers %v", h)
	}
}

func TestClientVerifiesCertificates(t *testing.T) {
	t.Parallel()
	a, other := newAuthority(t), newAuthority(t)
	c := newClient(t, webhookclient.Options{}, false, nil)
	for name, test := range map[string]struct {
		certificate *tls.Certificate
		bundle      []byte
		want        string
	}{
		"wrong name":    {a.issue(t, hour(), "example.com"), a.bundle(), "doesn't contain any IP SANs"},
		"expired":       {a.issue(t, time.Now().Add(-time.Minute), "127.0.0.1"), a.bundle(), "certificate has expired"},
		"wrong bundle":  {a.issue(t, hour(), "127.0.0.1"), other.bundle(), "certificate signed by unknown authority"},
		"no bundle":     {a.issue(t, hour(), "127.0.0.1"), nil, "x509"},
		"broken bundle": {a.issue(t, hour(), "127.0.0.1"), []byte("broken"), "unable to load root certificates"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := serve(t, test.certificate, answers)
			wantError(t, c, webhookclient.Target{URL: w.URL, CABundle: test.bundle}, test.want)
		})
	}
}

func TestClientVerifiesARotatedCertificateByItsNewBundle(t *testing.T) {
	t.Parallel()
	before, after := newAuthority(t), newAuthority(t)
	w := serve(t, before.issue(t, hour(), "127.0.0.1"), answers)
	c := newClient(t, webhookclient.Options{}, false, nil)
	mustPost(t, c, webhookclient.Target{URL: w.URL, CABundle: before.bundle()})
	w.certificate.Store(after.issue(t, hour(), "127.0.0.1"))
	mustPost(t, c, webhookclient.Target{URL: w.URL, CABundle: after.bundle()})
	w.CloseClientConnections()
	<-w.closed
	<-w.closed
	wantError(t, c, webhookclient.Target{URL: w.URL, CABundle: before.bundle()}, "unknown authority")
	mustPost(t, c, webhookclient.Target{URL: w.URL, CABundle: after.bundle()})
}

func TestClientFollowsNoRedirect(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	certificate := a.issue(t, hour(), "127.0.0.1")
	reached := atomic.Bool{}
	away := serve(t, certificate, func(http.ResponseWriter, *http.Request) { reached.Store(true) })
	c := newClient(t, webhookclient.Options{}, false, nil)
	for _, code := range []int{301, 302, 303, 307, 308} {
		w := serve(t, certificate, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, away.URL, code) })
		wantError(t, c, webhookclient.Target{URL: w.URL, CABundle: a.bundle()}, "redirects are not followed")
	}
	if reached.Load() {
		t.Error("a redirect was followed")
	}
}

func TestClientReachIsCheckedAfterNamesAreResolved(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	w := serve(t, a.issue(t, hour(), "127.0.0.1", "localhost"), answers)
	named := webhookclient.Target{URL: strings.Replace(w.URL, "127.0.0.1", "localhost", 1), CABundle: a.bundle()}
	outside := newClient(t, webhookclient.Options{Reach: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}}, false, nil)
	wantError(t, outside, named, "this server may not connect to")
	nowhere := newClient(t, webhookclient.Options{Reach: []netip.Prefix{}}, false, nil)
	wantError(t, nowhere, named, "this server may not connect to")
	if w.connections.Load() != 0 {
		t.Error("a connection was made")
	}
	inside := newClient(t, webhookclient.Options{Reach: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}, true, nil)
	mustPost(t, inside, named)
}

func TestClientRefusesMetadataAddressesWhenPublic(t *testing.T) {
	t.Parallel()
	c := newClient(t, webhookclient.Options{}, true, nil)
	for _, host := range []string{
		"169.254.169.254", "169.254.170.2", "[fe80::1]", "[fd00:ec2::254]", "[::ffff:169.254.169.254]", "[64:ff9b::a9fe:a9fe]", "100.100.100.200",
	} {
		wantError(t, c, webhookclient.Target{URL: "https://" + host}, "this server may not connect to")
	}
	a := newAuthority(t)
	w := serve(t, a.issue(t, hour(), "127.0.0.1"), answers)
	mustPost(t, c, webhookclient.Target{URL: w.URL, CABundle: a.bundle()})
}

func TestClientBoundsAnswers(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	c := newClient(t, webhookclient.Options{}, false, nil)
	piece := bytes.Repeat([]byte("x"), 1<<20)
	for name, length := range map[string]string{"stated": fmt.Sprint(17 << 20), "not stated": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := serve(t, a.issue(t, hour(), "127.0.0.1"), func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				if length != "" {
					w.Header().Set("Content-Length", length)
				}
				for range 17 {
					_, _ = w.Write(piece)
				}
			})
			target := webhookclient.Target{URL: w.URL, CABundle: a.bundle()}
			wantError(t, c, target, "longer than 16777216 bytes")
			// The answer to a large review may be large.
			if answer, err := c.Post(t.Context(), target, bytes.Repeat([]byte("x"), 5<<20)); err != nil || len(answer) != 17<<20 {
				t.Errorf("the answer has %d bytes, the error is %v", len(answer), err)
			}
		})
	}
}

func TestClientAnswersWithTheErrorsOfWebhooks(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	c := newClient(t, webhookclient.Options{}, false, nil)
	for name, test := range map[string]struct {
		code       int
		kind, body string
		want       string
	}{
		"not found":   {404, "text/plain", "404 page not found", "the server could not find the requested resource"},
		"text":        {500, "text/plain", "it broke", `an error on the server ("it broke") has prevented the request from succeeding`},
		"no text":     {500, "application/json", "{}", `an error on the server ("unknown") has prevented the request from succeeding`},
		"status":      {500, "application/json", `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"no such luck"}`, "no such luck"},
		"teapot":      {418, "text/plain", "", "the server responded with the status code 418 but did not return more information"},
		"unavailable": {503, "text/plain", "later", "the server is currently unable to handle the request"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := serve(t, a.issue(t, hour(), "127.0.0.1"), func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", test.kind)
				w.WriteHeader(test.code)
				_, _ = io.WriteString(w, test.body)
			})
			wantError(t, c, webhookclient.Target{URL: w.URL, CABundle: a.bundle()}, test.want)
		})
	}
}

func TestClientEndsRequestsAtTheirDeadline(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	hang, headers := make(chan struct{}), make(chan struct{}, 3)
	defer close(hang)
	w := serve(t, a.issue(t, hour(), "127.0.0.1"), func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/body" {
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
		}
		_, _ = io.Copy(io.Discard, r.Body)
		headers <- struct{}{}
		select {
		case <-hang:
		case <-r.Context().Done():
		}
	})
	c := newClient(t, webhookclient.Options{}, false, nil)
	for _, path := range []string{"/header", "/body"} {
		wantError(t, c, webhookclient.Target{URL: w.URL + path, CABundle: a.bundle(), Timeout: time.Millisecond}, "context deadline exceeded")
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-headers
		cancel()
	}()
	wantErrorWithin(ctx, t, c, webhookclient.Target{URL: w.URL + "/header", CABundle: a.bundle()}, "context canceled")
}

func TestClientSurvivesWebhooksThatHangUp(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	var asked atomic.Int32
	w := serve(t, a.issue(t, hour(), "127.0.0.1"), func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) == 1 {
			panic(http.ErrAbortHandler)
		}
		answers(w, r)
	})
	c := newClient(t, webhookclient.Options{}, false, nil)
	target := webhookclient.Target{URL: w.URL, CABundle: a.bundle()}
	if _, err := c.Post(t.Context(), target, nil); err == nil {
		t.Error("a webhook that hangs up gave an answer")
	}
	mustPost(t, c, target)
}

// A connection that has carried a request may have been closed by the webhook meanwhile, so
// that a review without an answer on it is sent again, on another connection.
func TestClientSendsReviewsAgainThatAUsedConnectionEndsWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	type requests struct{}
	var endings atomic.Int32
	w := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Context().Value(requests{}).(*atomic.Int32).Add(1) > 1 {
			endings.Add(1)
			panic(http.ErrAbortHandler)
		}
		answers(w, r)
	}))
	w.Config.ConnContext = func(ctx context.Context, _ net.Conn) context.Context {
		return context.WithValue(ctx, requests{}, new(atomic.Int32))
	}
	w.Config.ErrorLog = silent()
	w.TLS = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{*a.issue(t, hour(), "127.0.0.1")}}
	w.StartTLS()
	defer w.Close()
	c := newClient(t, webhookclient.Options{}, false, nil)
	for range 20 {
		mustPost(t, c, webhookclient.Target{URL: w.URL, CABundle: a.bundle()})
	}
	if endings.Load() == 0 {
		t.Error("no connection was used twice: the test proves nothing")
	}
}

func TestClientReusesConnections(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	w := serve(t, a.issue(t, hour(), "127.0.0.1"), answers)
	c := newClient(t, webhookclient.Options{}, false, nil)
	for range 50 {
		mustPost(t, c, webhookclient.Target{URL: w.URL, CABundle: a.bundle()})
	}
	// net/http gives up a connection whose writer has not reported 50 ms after the answer, as
	// on a machine that is very busy.
	if got := w.connections.Load(); got > 10 {
		t.Errorf("50 requests made %d connections", got)
	}
}

func TestClientForgetsTheTargetsThatAreUnusedForLongest(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	w := serve(t, a.issue(t, hour(), "127.0.0.1"), answers)
	c := newClient(t, webhookclient.Options{}, false, nil)
	first := webhookclient.Target{URL: w.URL, CABundle: a.bundle()}
	mustPost(t, c, first)
	for i := range 200 {
		// Other bundles are other targets: these fail, but are remembered.
		wantError(t, c, webhookclient.Target{URL: "https://127.0.0.1:1", CABundle: fmt.Appendf(a.bundle(), "\n%d", i)}, "refused")
	}
	<-w.closed
	mustPost(t, c, first)
	if got := w.connections.Load(); got != 2 {
		t.Errorf("there were %d connections, want 2", got)
	}
}

func TestClientCloseEndsRequestsAndConnections(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	asked := make(chan struct{})
	w := serve(t, a.issue(t, hour(), "127.0.0.1"), func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // the server notices from then on that a client has gone
		close(asked)
		<-r.Context().Done()
	})
	c := newClient(t, webhookclient.Options{}, false, nil)
	var all sync.WaitGroup
	all.Go(func() {
		if _, err := c.Post(t.Context(), webhookclient.Target{URL: w.URL, CABundle: a.bundle()}, []byte("review")); err == nil {
			t.Error("a request to a closed client gave an answer")
		}
	})
	<-asked
	c.Close()
	c.Close()
	all.Wait()
	<-w.closed
	wantError(t, c, webhookclient.Target{URL: w.URL}, "the server is stopping")
}

func TestClientShowsTheCredentialsOfItsPlugin(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	w := serve(t, a.issue(t, hour(), "127.0.0.1", "localhost", "hook.default.svc"), func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Header.Get("Authorization"))
	})
	address := w.Listener.Addr().String()
	file := filepath.Join(t.TempDir(), "config")
	config := fmt.Sprintf(`apiVersion: v1
kind: Config
users:
- {name: %q, user: {token: exact}}
- {name: "*.default.svc", user: {token: pattern}}
- {name: "*", user: {username: a, password: b}}
`, address)
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	c := newClient(t, webhookclient.Options{
		KubeConfigFiles: map[string]string{"MutatingAdmissionWebhook": file},
		Resolve: func(context.Context, webhookclient.Service) (webhookclient.Backend, bool) {
			return webhookclient.Backend{Address: address}, true
		},
	}, false, nil)
	for name, test := range map[string]struct {
		target webhookclient.Target
		want   string
	}{
		"exact":   {webhookclient.Target{URL: w.URL, Plugin: "MutatingAdmissionWebhook"}, "Bearer exact"},
		"pattern": {webhookclient.Target{Service: &webhookclient.Service{Namespace: "default", Name: "hook"}, Plugin: "MutatingAdmissionWebhook"}, "Bearer pattern"},
		"default": {webhookclient.Target{URL: strings.Replace(w.URL, "127.0.0.1", "localhost", 1), Plugin: "MutatingAdmissionWebhook"}, "Basic YTpi"},
		"another": {webhookclient.Target{URL: w.URL, Plugin: "ValidatingAdmissionWebhook"}, ""},
		"none":    {webhookclient.Target{URL: w.URL}, ""},
	} {
		test.target.CABundle = a.bundle()
		if got := mustPost(t, c, test.target); got != test.want {
			t.Errorf("%s: the webhook was shown %q, want %q", name, got, test.want)
		}
	}
	if _, err := webhookclient.New(webhookclient.Options{KubeConfigFiles: map[string]string{"P": "/missing"}}, webhookclient.Deps{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is missing gives %v", err)
	}
}

func TestClientUsesNoProxy(t *testing.T) {
	proxied := atomic.Bool{}
	proxy := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { proxied.Store(true) }))
	defer proxy.Close()
	t.Setenv("HTTPS_PROXY", proxy.URL)
	c := newClient(t, webhookclient.Options{Reach: []netip.Prefix{}}, false, nil)
	wantError(t, c, webhookclient.Target{URL: "https://192.0.2.1"}, "this server may not connect to")
	if proxied.Load() {
		t.Error("the proxy of the environment was used")
	}
}

func TestClientCountsCertificatesThatAreRefusedForTheirAge(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	var at *webhook
	c := newClient(t, webhookclient.Options{Resolve: func(context.Context, webhookclient.Service) (webhookclient.Backend, bool) {
		return webhookclient.Backend{Address: at.Listener.Addr().String()}, true
	}}, false, nil)
	registry := prometheus.NewRegistry()
	registry.MustRegister(c.Collectors()...)
	signed := func(algorithm x509.SignatureAlgorithm, name string, names ...string) *tls.Certificate {
		certificate, key := sign(t, a, &x509.Certificate{
			Subject: pkix.Name{CommonName: name}, DNSNames: names, SignatureAlgorithm: algorithm, NotBefore: time.Now().Add(-time.Hour), NotAfter: hour(),
		})
		return &tls.Certificate{Certificate: [][]byte{certificate.Raw}, PrivateKey: key}
	}
	for _, step := range []struct {
		certificate *tls.Certificate
		want        string
		counts      [2]float64 // of SHA-1 and of missing names so far
	}{
		{signed(x509.ECDSAWithSHA256, "other", "other"), "certificate is valid for other", [2]float64{0, 0}},
		{signed(x509.ECDSAWithSHA256, "hook.default.svc"), "relies on legacy Common Name field", [2]float64{0, 1}},
		{signed(x509.ECDSAWithSHA1, "hook", "hook.default.svc"), "insecure algorithm ECDSA-SHA1", [2]float64{1, 1}},
	} {
		at = serve(t, step.certificate, answers)
		wantError(t, c, webhookclient.Target{Service: behind("hook", 443), CABundle: a.bundle()}, step.want)
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for i, name := range []string{"apiserver_webhooks_x509_insecure_sha1_total", "apiserver_webhooks_x509_missing_san_total"} {
			if got := families[i].GetMetric()[0].GetCounter().GetValue(); families[i].GetName() != name || got != step.counts[i] {
				t.Errorf("%s: %s is %v, want %s %v", step.want, families[i].GetName(), got, name, step.counts[i])
			}
		}
	}
}
