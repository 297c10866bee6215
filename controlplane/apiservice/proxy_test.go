// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apiservice_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/controlplane/apiservice"
	"github.com/steer-dev/steer/controlplane/component"
	"github.com/steer-dev/steer/controlplane/component/componenttest"
	"github.com/steer-dev/steer/controlplane/core"
	"github.com/steer-dev/steer/controlplane/internal/egress"
)

// create stores an APIService by a request.
func (w *world) create(s *v1.APIService) {
	w.t.Helper()
	body, err := json.Marshal(s)
	if err != nil {
		w.t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, "https://steer.invalid"+services, bytes.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	if code, answer, _ := w.do(componenttest.Admin(), request); code != http.StatusCreated {
		w.t.Fatal(code, answer)
	}
}

// get sends a GET of the administrator.
func (w *world) get(path string, header http.Header) (int, string, http.Header) {
	w.t.Helper()
	return w.getAs(componenttest.Admin(), path, header)
}

func (w *world) getAs(user *auth.User, path string, header http.Header) (int, string, http.Header) {
	w.t.Helper()
	request, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, "https://steer.invalid"+path, http.NoBody)
	if err != nil {
		w.t.Fatal(err)
	}
	request.Header = header
	if header == nil {
		request.Header = http.Header{}
	}
	return w.do(user, request)
}

func (w *world) do(user *auth.User, request *http.Request) (int, string, http.Header) {
	w.t.Helper()
	response, err := w.Client(user).Transport.RoundTrip(request)
	if err != nil {
		w.t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return response.StatusCode, string(body), response.Header
}

// flying returns a server with wings, one of which a server in process serves.
func flying(t *testing.T, answer func(*http.Request) (*http.Response, error)) (*world, *other) {
	t.Helper()
	server := &other{answers: map[string]func(*http.Request) (*http.Response, error){"/apis/example.com/v1": text(200, "application/json", resourceList), wing: answer}}
	w := newWorld(t, egress.Services{Resolve: resolve(server)}, controllers)
	w.create(wings())
	w.get("/version", nil) // the controllers are done
	server.requests()
	return w, server
}

const wing = "/apis/example.com/v1/namespaces/default/wings/a"

func TestProxyNamesTheUser(t *testing.T) {
	t.Parallel()
	w, server := flying(t, text(200, "text/plain", "one wing", "X-Own", "yes"))
	user := &auth.User{Name: "jane", UID: "uid-of-jane", Groups: []string{"g 1", "g2", auth.Masters}, Extra: map[string][]string{"example.com/Teams%": {"a", "b"}}}
	code, body, header := w.getAs(user, wing+"?watch=x", http.Header{
		"X-Remote-User": {"root"}, "x-remote_group": {"system:masters"}, "X-Remote-Extra-Team": {"all"}, "X_Remote_Uid": {"0"},
		"Authorization": {"Bearer secret"}, "Cookie": {"a=b"}, "Proxy-Authorization": {"x"}, "X-Other": {"stays"}, "User-Agent": {"jane/1"},
	})
	same(t, "the answer", []any{200, "one wing", "yes"}, []any{code, body, header.Get("X-Own")})
	sent := server.seen[0]
	same(t, "where it is sent", "https://wings.default.svc:443"+wing+"?watch=x", sent.URL.String())
	got := http.Header{}
	for name, values := range sent.Header {
		if name != "Audit-Id" && !strings.HasPrefix(name, "X-Forwarded-") {
			got[name] = values
		}
	}
	same(t, "what it is sent with", http.Header{
		"X-Remote-User": {"jane"}, "X-Remote-Uid": {"uid-of-jane"}, "X-Remote-Group": {"g 1", "g2", auth.Masters},
		"X-Remote-Extra-Example.com%2fteams%25": {"a", "b"}, "X-Other": {"stays"}, "User-Agent": {"jane/1"},
	}, got)
	if id := sent.Header.Get("Audit-Id"); id == "" || id != header.Get("Audit-Id") {
		t.Errorf("the request has the audit ID %q, the answer %q", id, header.Get("Audit-Id"))
	}
}

func TestProxyUsesTheHeadersOfTheFrontProxy(t *testing.T) {
	t.Parallel()
	server := &other{answers: map[string]func(*http.Request) (*http.Response, error){"/apis/example.com/v1": text(200, "application/json", resourceList), wing: text(200, "", "")}}
	w := &world{t: t}
	proxy := &auth.FrontProxy{UserHeaders: []string{"X-User", "X-Login"}, UIDHeaders: []string{"X-Id"}, GroupHeaders: []string{"X-Groups"}, ExtraPrefixes: []string{"X-More-"}}
	w.Server = componenttest.New(t, func(d *component.Deps) component.List {
		w.aggregation = apiservice.NewAggregation(d.Store, d.Server, &egress.Services{Store: d.Store, Resolve: resolve(server)},
			apiservice.Identity{Certificate: func() (*tls.Certificate, error) { return &tls.Certificate{}, nil }, Proxy: proxy}, slog.New(slog.DiscardHandler))
		return append(component.List{{Name: "kinds", Resources: core.Resources()}, w.aggregation.Component(*d)}, controllers(d, w.aggregation)...)
	})
	w.create(wings())
	w.get("/version", nil)
	server.requests()
	user := &auth.User{Name: "jane", UID: "7", Groups: []string{auth.Masters}, Extra: map[string][]string{"team": {"a"}}}
	w.getAs(user, wing, http.Header{"X-Login": {"root"}, "x_groups": {"all"}, "X-More-Of": {"b"}, "X-Remote-User": {"root"}, "User-Agent": {"jane/1"}})
	got := http.Header{}
	for name, values := range server.seen[0].Header {
		if !strings.HasPrefix(name, "X-Forwarded-") && name != "Audit-Id" {
			got[name] = values
		}
	}
	same(t, "what it is sent with", http.Header{"X-User": {"jane"}, "X-Id": {"7"}, "X-Groups": {auth.Masters}, "X-More-Team": {"a"}, "User-Agent": {"jane/1"}}, got)
}

func TestProxyRemovesTokensOfBrowsers(t *testing.T) {
	t.Parallel()
	w, server := flying(t, text(400, "", "no"))
	w.get(wing, http.Header{"Sec-Websocket-Protocol": {"base64url.bearer.authorization.k8s.io.c2VjcmV0, v4.channel.k8s.io", "v5.channel.k8s.io"}})
	same(t, "the protocols", []string{"v4.channel.k8s.io, v5.channel.k8s.io"}, server.seen[0].Header["Sec-Websocket-Protocol"])
}

func TestProxyAnswersForServersThatFail(t *testing.T) {
	t.Parallel()
	for what, tt := range map[string]struct {
		answer func(*http.Request) (*http.Response, error)
		code   int
		body   string
	}{
		"an error of the server":         {text(500, "text/plain", "broken"), 500, "broken"},
		"no connection":                  {down, 503, "error trying to reach service: connection refused\n"},
		"a redirect":                     {text(302, "", "", "Location", "https://elsewhere.invalid/"), 502, "the backend attempted to redirect this request, which is not permitted"},
		"an answer like a redirect":      {text(304, "", ""), 304, ""},
		"a connection that ends at once": {func(*http.Request) (*http.Response, error) { return nil, io.EOF }, 503, "error trying to reach service: EOF\n"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w, _ := flying(t, tt.answer)
			code, body, _ := w.get(wing, nil)
			same(t, "the answer", []any{tt.code, tt.body}, []any{code, body})
		})
	}
}

func TestProxyAnswersForServicesThatAreNotAvailable(t *testing.T) {
	t.Parallel()
	w := newWorld(t, egress.Services{}, controllers)
	w.create(wings())
	code, body, _ := w.get(wing, nil)
	same(t, "the answer", []any{503, "service unavailable\n"}, []any{code, body})
}

func TestProxyEndsItsRequestsWhenItIsClosed(t *testing.T) {
	t.Parallel()
	sent := make(chan struct{})
	w, server := flying(t, func(r *http.Request) (*http.Response, error) {
		close(sent)
		<-r.Context().Done()
		return nil, r.Context().Err()
	})
	go func() {
		<-sent
		w.aggregation.Close()
		w.aggregation.Close()
	}()
	code, _, _ := w.get(wing, nil)
	same(t, "the code of a request that was under way", 503, code)
	server.requests()
	code, body, _ := w.get(wing, nil)
	same(t, "the answer afterwards", []any{503, "service unavailable\n"}, []any{code, body})
	if got := server.requests(); slices.Contains(got, "GET "+wing) {
		t.Errorf("the server still gets %q", got)
	}
}

func TestProxyBoundsDiscovery(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const version = "/apis/example.com/v1"
		w, server := flying(t, text(200, "", ""))
		server.answers[version] = func(r *http.Request) (*http.Response, error) { <-r.Context().Done(); return nil, r.Context().Err() }
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://steer.invalid"+version, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		response, err := w.Server.Server.RoundTripper(componenttest.Admin()).RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		response.Body.Close()
		same(t, "the answer", []any{503, "error trying to reach service: context deadline exceeded\n", nil}, []any{response.StatusCode, string(body), err})
		same(t, "time that it took", 5*time.Second, time.Since(began))
	})
}

// TestBackendVerifiesCertificates has a real connection to a server with a certificate of its own.
func TestBackendVerifiesCertificates(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(resourceList)) }))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	address := server.Listener.Addr().String()
	services := egress.Services{Resolve: func(context.Context, egress.Service) (egress.Backend, bool) {
		return egress.Backend{Address: address}, true
	}}
	url := "https://" + address + "/apis/example.com/v1"
	for what, tt := range map[string]struct {
		change func(*v1.APIService)
		want   string
	}{
		"no authority": {
			func(s *v1.APIService) { s.Spec.InsecureSkipTLSVerify = false },
			"Available=False FailedDiscoveryCheck: failing or missing response from " + url + ": Get \"" + url + "\": tls: failed to verify certificate: x509: ",
		},
		"garbage": {
			func(s *v1.APIService) { s.Spec.InsecureSkipTLSVerify, s.Spec.CABundle = false, []byte("garbage") },
			"Available=False FailedDiscoveryCheck: failing or missing response from " + url + ": Get \"" + url + "\": unable to load root certificates: ",
		},
		"no verification": {func(*v1.APIService) {}, "Available=True Passed: all checks passed"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, services, nil)
			d := drive(w, apiservice.NewAvailability(w.aggregation))
			d.put(wingsKey, wings(tt.change))
			d.step()
			if got := d.step(); !strings.HasPrefix(got, status+" "+tt.want) {
				t.Errorf("the condition is %s, want %s", got, tt.want)
			}
			w.aggregation.Close()
		})
	}
}
