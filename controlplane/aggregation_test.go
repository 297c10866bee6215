// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/websocket"
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/cert"

	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/controlplane"
	"github.com/steer-dev/steer/controlplane/webhookclient"
	"github.com/steer-dev/steer/storage"
)

const (
	apiServices = "/apis/apiregistration.k8s.io/v1/apiservices"
	wings       = "/apis/wings.example.com/v1/namespaces/default/wings"
)

// wingServer is an API server of others, which notes what it was sent.
type wingServer struct {
	*httptest.Server
	handlers map[string]http.HandlerFunc // by path
	// verbs of wings in discovery, as JSON.
	verbs string

	mu   sync.Mutex
	sent []*http.Request
}

// newWingServer starts a server that answers by the path; the resources of its version are
// always there.
func newWingServer(t *testing.T, handlers map[string]http.HandlerFunc) *wingServer {
	t.Helper()
	s := &wingServer{handlers: handlers, verbs: `"get"`}
	s.Server = httptest.NewUnstartedServer(s)
	s.TLS = &tls.Config{ClientAuth: tls.RequestClientCert, MinVersion: tls.VersionTLS12}
	s.EnableHTTP2 = true
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // clients that refuse the certificate
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

func (s *wingServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/apis/wings.example.com/v1" {
		_, _ = io.WriteString(w, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"wings.example.com/v1","resources":[
{"name":"wings","singularName":"wing","namespaced":true,"kind":"Wing","verbs":[`+s.verbs+`]},{"name":"wings/exec","namespaced":true,"kind":"Wing","verbs":["create"]}]}`)
		return
	}
	h := s.handlers[r.URL.Path]
	if h == nil {
		http.NotFound(w, r)
		return
	}
	s.mu.Lock()
	s.sent = append(s.sent, r)
	s.mu.Unlock()
	h(w, r)
}

// requests returns those for the paths of handlers.
func (s *wingServer) requests() []*http.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sent
}

// resolve says that all Services are this server.
func (s *wingServer) resolve(context.Context, webhookclient.Service) (webhookclient.Backend, bool) {
	return webhookclient.Backend{Address: s.Listener.Addr().String()}, true
}

// wingService is an APIService of the server.
const wingService = `apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.wings.example.com}
spec: {group: wings.example.com, version: v1, groupPriorityMinimum: 100, versionPriority: 10, service: {namespace: default, name: wings}, `

// aggregating serves a plane over HTTP/1.1 that passes the requests for wings on, and returns
// where it is.
func aggregating(t *testing.T, s *wingServer, edit func(*controlplane.Options)) (base string, plane *controlplane.Plane, a *api) {
	t.Helper()
	o := controlplane.Options{
		ManualControllers: true, Webhooks: webhookclient.Options{Resolve: s.resolve},
		Authentication: controlplane.Authentication{Tokens: auth.Tokens{
			"secret": {Name: "admin", Groups: []string{"system:masters"}},
			"jane":   {Name: "jane", UID: "17", Groups: []string{"wings"}, Extra: map[string][]string{"Example.com/Colour %": {"red", "blue"}}},
		}},
	}
	if edit != nil {
		edit(&o)
	}
	plane, a = planeOf(t, o)
	front := httptest.NewServer(plane.Handler())
	t.Cleanup(front.Close)
	a.must("POST", apiServices, wingService+"insecureSkipTLSVerify: true}\n")
	settle(t, plane)
	a.must("POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles", "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: wings}\nrules: [{apiGroups: [wings.example.com], resources: ['*'], verbs: ['*']}]\n")
	a.must("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: wings}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: wings}\nsubjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: wings}]\n")
	return front.URL, plane, a
}

// availability is the condition of the APIService.
func availability(a *api) string {
	c, _, _ := unstructured.NestedSlice(a.must("GET", apiServices+"/v1.wings.example.com", "").Object, "status", "conditions")
	if len(c) == 0 {
		return "none"
	}
	m := c[0].(map[string]any)
	return fmt.Sprint(m["status"], " ", m["reason"], ": ", m["message"])
}

func TestAggregatorPassesRequestsOnAsTheUser(t *testing.T) {
	t.Parallel()
	s := newWingServer(t, map[string]http.HandlerFunc{wings: func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(http.StatusTeapot)
		fmt.Fprintf(w, "%s %s %s", r.Method, r.URL, body)
	}})
	base, _, a := aggregating(t, s, nil)
	if got := availability(a); got != "True Passed: all checks passed" {
		t.Fatal(got)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+wings+"?b=1&a=2&a=3", strings.NewReader("a wing"))
	if err != nil {
		t.Fatal(err)
	}
	request.Header = http.Header{
		"Authorization": {"Bearer jane"}, "Cookie": {"c=d"}, "X-Remote-User": {"admin"}, "X-Remote-Group": {"system:masters"}, "X-Remote-Uid": {"1"},
		"X-Remote-Extra-Scopes": {"all"}, "X_remote_user": {"admin"}, "X-Custom": {"kept"}, "Accept": {"application/cbor"}, "User-Agent": {"wing-client"},
	}
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if want := "POST " + wings + "?a=2&a=3&b=1 a wing"; response.StatusCode != http.StatusTeapot || string(body) != want || err != nil {
		t.Errorf("%d %s %v, want %s", response.StatusCode, body, err, want)
	}
	if got := response.Header["Cache-Control"]; len(got) != 1 || got[0] != "no-store" {
		t.Errorf("Cache-Control: %q", got)
	}
	sent := s.requests()[0]
	got := http.Header{}
	for name, values := range sent.Header {
		if lower := strings.ToLower(name); strings.HasPrefix(lower, "x") || lower == "authorization" || lower == "cookie" || lower == "accept" || lower == "user-agent" {
			got[name] = values
		}
	}
	want := http.Header{
		"X-Remote-User": {"jane"}, "X-Remote-Uid": {"17"}, "X-Remote-Group": {"wings", "system:authenticated"}, "X-Remote-Extra-Example.com%2fcolour%20%25": {"red", "blue"},
		"X-Custom": {"kept"}, "Accept": {"application/cbor"}, "User-Agent": {"wing-client"},
		"X-Forwarded-For": {"127.0.0.1"}, "X-Forwarded-Host": got["X-Forwarded-Host"], "X-Forwarded-Proto": {"http"}, "X-Forwarded-Uri": {wings},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("headers (-want +got):\n%s", diff)
	}
	if id := response.Header["Audit-Id"]; len(id) != 1 || sent.Header.Get("Audit-Id") != id[0] {
		t.Errorf("the audit ID is %q here and %q there", id, sent.Header["Audit-Id"])
	}
	if sent.ProtoMajor != 2 {
		t.Errorf("the request was sent by %s", sent.Proto)
	}
}

// TestAggregatorShowsItsOwnAuthority: the certificate is one of the authority in
// extension-apiserver-authentication, which signs nothing else.
func TestAggregatorShowsItsOwnAuthority(t *testing.T) {
	t.Parallel()
	s := newWingServer(t, map[string]http.HandlerFunc{wings: func(http.ResponseWriter, *http.Request) {}})
	plane, a := listening(t, controlplane.Options{Webhooks: webhookclient.Options{Resolve: s.resolve}})
	trust := a.must("GET", "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication", "")
	data, _, _ := unstructured.NestedStringMap(trust.Object, "data")
	if data["requestheader-allowed-names"] != `["front-proxy-client"]` || data["requestheader-username-headers"] != `["X-Remote-User"]` {
		t.Errorf("the ConfigMap says %v", data)
	}
	a.must("POST", apiServices, wingService+"insecureSkipTLSVerify: true}\n")
	if _, err := plane.Idle(t.Context()); err != nil {
		t.Fatal(err)
	}
	if code, body := a.do("GET", wings, ""); code != http.StatusOK {
		t.Fatalf("%d %s: %s", code, body, availability(a))
	}
	shown := s.requests()[0].TLS.PeerCertificates
	if len(shown) != 1 || shown[0].Subject.CommonName != "front-proxy-client" {
		t.Fatalf("%d certificates are shown", len(shown))
	}
	for name, good := range map[string]bool{"requestheader-client-ca-file": true, "client-ca-file": false} {
		all, err := cert.ParseCertsPEM([]byte(data[name]))
		if err != nil {
			t.Fatal(err)
		}
		roots := x509.NewCertPool()
		for _, c := range all {
			roots.AddCert(c)
		}
		if _, err := shown[0].Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); (err == nil) != good {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestAggregatorUsesTheHeadersOfTheFrontProxy that the plane believes, because servers
// believe those as well: no client can set one of them.
func TestAggregatorUsesTheHeadersOfTheFrontProxy(t *testing.T) {
	t.Parallel()
	s := newWingServer(t, map[string]http.HandlerFunc{wings: func(http.ResponseWriter, *http.Request) {}})
	base, _, _ := aggregating(t, s, func(o *controlplane.Options) {
		o.Authentication.FrontProxy = &auth.FrontProxy{
			Certificates: auth.NewCertificates(), UserHeaders: []string{"X-Wing-User", "X-Other-User"}, GroupHeaders: []string{"X-Wing-Group"}, ExtraPrefixes: []string{"X-Wing-Extra-"},
		}
	})
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+wings, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.Header = http.Header{
		"Authorization": {"Bearer secret"}, "X-Wing-User": {"a"}, "X-Other-User": {"a"}, "X-Wing-Group": {"a"}, "X-Wing-Extra-A": {"a"}, "X_wing_group": {"a"}, "X-Remote-User": {"a"},
	}
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	got := http.Header{}
	for name, values := range s.requests()[0].Header {
		if upper := strings.ToUpper(name); strings.HasPrefix(upper, "X") && !strings.HasPrefix(upper, "X-FORWARDED-") {
			got[name] = values
		}
	}
	want := http.Header{"X-Wing-User": {"admin"}, "X-Wing-Group": {"system:masters", "system:authenticated"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("headers (-want +got):\n%s", diff)
	}
}

// TestAggregatorFollowsNoRedirects: the class of CVE-2022-3172.
func TestAggregatorFollowsNoRedirects(t *testing.T) {
	t.Parallel()
	away := newWingServer(t, map[string]http.HandlerFunc{"/away": func(http.ResponseWriter, *http.Request) {}})
	to := away.URL + "/away"
	redirect := func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, to, http.StatusTemporaryRedirect) }
	s := newWingServer(t, map[string]http.HandlerFunc{wings: redirect})
	base, _, _ := aggregating(t, s, nil)
	for _, upgrade := range []string{"", "SPDY/3.1"} {
		response, text := connect(t, "GET", base+wings, "jane", upgrade)
		if response.Header.Get("Location") != "" || len(away.requests()) > 0 {
			t.Errorf("upgrade %q: the client is sent to %q", upgrade, response.Header.Get("Location"))
		}
		code, want := http.StatusBadGateway, "the backend attempted to redirect this request, which is not permitted"
		if upgrade != "" {
			code, want = http.StatusServiceUnavailable, "invalid upgrade response: status code 307\n"
		}
		if response.StatusCode != code || text != want {
			t.Errorf("upgrade %q: %d %q, want %d %q", upgrade, response.StatusCode, text, code, want)
		}
	}
}

// TestAggregatorUsesNoConnectionAgainAfterAFailedUpgrade: the class of CVE-2018-1002105. What
// a client sends after a request for an upgrade that fails reaches nobody.
func TestAggregatorUsesNoConnectionAgainAfterAFailedUpgrade(t *testing.T) {
	t.Parallel()
	var fail http.HandlerFunc = func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no terminal here", http.StatusForbidden) }
	var take http.HandlerFunc = func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "taken") }
	s := newWingServer(t, map[string]http.HandlerFunc{wings + "/w/exec": fail, wings + "/w/taken": take})
	base, _, _ := aggregating(t, s, nil)
	const smuggled = "GET " + wings + "/w/taken HTTP/1.1\r\nHost: x\r\nX-Remote-User: admin\r\nX-Remote-Group: system:masters\r\n\r\n"
	for name, first := range map[string]string{
		"an upgrade":             "GET " + wings + "/w/exec HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer jane\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
		"an upgrade with a body": "POST " + wings + "/w/exec HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer jane\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\nContent-Length: 4\r\n\r\nbody",
	} {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(base, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(conn, first+smuggled)
		all, err := io.ReadAll(conn) // ends, because the connection is closed
		_ = conn.Close()
		if text := string(all); !strings.HasPrefix(text, "HTTP/1.1 403 Forbidden\r\n") || !strings.HasSuffix(text, "no terminal here\n") || strings.Contains(text, "taken") {
			t.Errorf("%s: %v\n%s", name, err, text)
		}
	}
	connections := map[string]bool{}
	for _, r := range s.requests() {
		if r.URL.Path != wings+"/w/exec" || r.Header.Get("X-Remote-User") != "jane" || connections[r.RemoteAddr] {
			t.Errorf("the server was sent %s as %s from %s", r.URL, r.Header.Get("X-Remote-User"), r.RemoteAddr)
		}
		connections[r.RemoteAddr] = true
	}
	if len(connections) != 2 {
		t.Errorf("%d requests for upgrades came", len(connections))
	}
}

func TestAggregatorUpgradesConnections(t *testing.T) {
	t.Parallel()
	k := &fakeKubelet{closed: make(chan struct{}, 10)} // upgrades, and echoes
	s := newWingServer(t, map[string]http.HandlerFunc{wings + "/w/exec": k.serve, wings + "/w/console": k.serve})
	base, _, _ := aggregating(t, s, nil)
	for _, path := range []string{wings + "/w/exec", wings + "/w/console"} {
		config, err := websocket.NewConfig("ws"+strings.TrimPrefix(base, "http")+path+"?command=ls", "http://localhost")
		if err != nil {
			t.Fatal(err)
		}
		config.Protocol = []string{"base64url.bearer.authorization.k8s.io.amFuZQ"} // jane
		config.Header = http.Header{"Authorization": {"Bearer jane"}, "X-Remote-User": {"admin"}}
		ws, err := config.DialContext(t.Context())
		if err != nil && !errors.Is(err, websocket.ErrBadWebSocketProtocol) {
			t.Fatal(err)
		}
		if err == nil {
			_, _ = ws.Write([]byte("hello"))
			got := make([]byte, 5)
			if _, err := io.ReadFull(ws, got); err != nil || string(got) != "hello" {
				t.Errorf("%s: over the WebSocket: %q %v", path, got, err)
			}
			_ = ws.Close()
		}
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(base, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(conn, "POST "+path+" HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer jane\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\nContent-Length: 0\r\n\r\n")
		reader := bufio.NewReader(conn)
		response, err := http.ReadResponse(reader, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(conn, "late")
		got := make([]byte, 4)
		if _, err := io.ReadFull(reader, got); err != nil || string(got) != "late" || response.StatusCode != http.StatusSwitchingProtocols {
			t.Errorf("%s: over SPDY: %d %q %v", path, response.StatusCode, got, err)
		}
		_ = conn.Close()
		<-k.closed // the server learns that the client has gone
	}
	for _, r := range s.requests() {
		if r.Header.Get("X-Remote-User") != "jane" || r.Header.Get("Authorization") != "" || strings.Contains(r.Header.Get("Sec-Websocket-Protocol"), "bearer") {
			t.Errorf("the server was sent %v", r.Header)
		}
	}
}

// TestAggregatorSendsEventsAsTheyCome: the first one arrives before the server writes the
// second, and the server learns that the client has gone.
func TestAggregatorSendsEventsAsTheyCome(t *testing.T) {
	t.Parallel()
	read, gone := make(chan struct{}), make(chan struct{})
	s := newWingServer(t, map[string]http.HandlerFunc{wings: func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "{\"type\":\"ADDED\"}\n")
		_ = http.NewResponseController(w).Flush()
		<-read
		_, _ = io.WriteString(w, "{\"type\":\"DELETED\"}\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		close(gone)
	}})
	base, _, _ := aggregating(t, s, nil)
	ctx, leave := context.WithCancel(t.Context())
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, base+wings+"?watch=1", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer jane")
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	events := bufio.NewReader(response.Body)
	if line, err := events.ReadString('\n'); err != nil || !strings.Contains(line, "ADDED") {
		t.Fatal(line, err)
	}
	close(read)
	if line, err := events.ReadString('\n'); err != nil || !strings.Contains(line, "DELETED") {
		t.Fatal(line, err)
	}
	leave()
	<-gone
}

func TestAggregatorSaysWhyAServerIsNotAvailable(t *testing.T) {
	t.Parallel()
	plane, a := newPlane(t)
	s := newWingServer(t, map[string]http.HandlerFunc{wings: func(http.ResponseWriter, *http.Request) {}})
	_, port, _ := net.SplitHostPort(s.Listener.Addr().String())
	bundle := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
	const services, slices = "/api/v1/namespaces/default/services", "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
	patch := func(spec string) func() {
		return func() { a.must("PATCH", apiServices+"/v1.wings.example.com", "spec: {"+spec+"}") }
	}
	for _, c := range []struct {
		change func()
		want   string
		code   int
	}{
		{func() { a.must("POST", apiServices, wingService+"insecureSkipTLSVerify: true}\n") }, `False ServiceNotFound: service/wings in "default" is not present`, 503},
		{func() {
			a.must("POST", services, "apiVersion: v1\nkind: Service\nmetadata: {name: wings}\nspec: {ports: [{name: web, port: 8443}]}\n")
		}, `False ServicePortError: service/wings in "default" is not listening on port 443`, 503},
		{patch("service: {port: 8443}"), `False EndpointsNotFound: cannot find endpointslices for service/wings in "default"`, 503},
		{func() {
			a.must("POST", slices, "apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\naddressType: IPv4\nmetadata: {name: wings, labels: {kubernetes.io/service-name: wings}}\n"+
				"ports: [{name: other, port: 1}]\nendpoints: [{addresses: [192.0.2.1]}]\n")
		}, `False MissingEndpoints: endpointslices for service/wings in "default" have no addresses with port name "web"`, 503},
		{func() {
			a.must("DELETE", services+"/wings", "")
			a.must("POST", services, "apiVersion: v1\nkind: Service\nmetadata: {name: wings}\nspec: {type: ExternalName, externalName: localhost, ports: [{port: "+port+"}]}\n")
			patch("service: {port: " + port + "}")()
		}, "True Passed: all checks passed", 200},
		{patch("insecureSkipTLSVerify: false, caBundle: " + bundle), "False FailedDiscoveryCheck: failing or missing response from https://localhost:" + port +
			`/apis/wings.example.com/v1: Get "https://localhost:` + port + `/apis/wings.example.com/v1": tls: failed to verify certificate: x509: certificate is valid for example.com, *.example.com, not wings.default.svc`, 503},
		{patch("insecureSkipTLSVerify: true, caBundle: null"), "True Passed: all checks passed", 200},
		{func() { s.Close() }, "True Passed: all checks passed", 503},
	} {
		c.change()
		settle(t, plane)
		if got := availability(a); got != c.want {
			t.Errorf("the condition is %q, want %q", got, c.want)
		}
		if code, body := a.do("GET", wings, ""); code != c.code {
			t.Errorf("%s: answered with %d %s, want %d", c.want, code, body, c.code)
		}
	}
	a.must("GET", "/api/v1/namespaces/default", "") // nothing else is affected
}

// TestAggregatorReachesTheEndpointsOfAService with a ClusterIP: those of its EndpointSlices, or of
// its Endpoints where nothing mirrors them.
func TestAggregatorReachesTheEndpointsOfAService(t *testing.T) {
	t.Parallel()
	for bucket, endpoints := range map[string]string{
		"discovery.k8s.io/endpointslices": `{"apiVersion":"discovery.k8s.io/v1","kind":"EndpointSlice","metadata":{"name":"wings","namespace":"default","labels":{"kubernetes.io/service-name":"wings"}},
"addressType":"IPv4","ports":[{"name":"web","port":PORT}],"endpoints":[{"addresses":["127.0.0.1"]}]}`,
		"endpoints": `{"apiVersion":"v1","kind":"Endpoints","metadata":{"name":"wings","namespace":"default"},"subsets":[{"addresses":[{"ip":"127.0.0.1"}],"ports":[{"name":"web","port":PORT}]}]}`,
	} {
		s := newWingServer(t, map[string]http.HandlerFunc{wings: func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"from": "the endpoint"}`) }})
		_, port, _ := net.SplitHostPort(s.Listener.Addr().String())
		store := storage.NewMemory(storage.MemoryOptions{})
		plane, a := planeOf(t, controlplane.Options{ManualControllers: true, Store: store})
		a.must("POST", "/api/v1/namespaces/default/services", "apiVersion: v1\nkind: Service\nmetadata: {name: wings}\nspec: {ports: [{name: web, port: 443}]}\n")
		// Clients may not name a loopback address.
		if _, err := store.Commit(t.Context(), storage.Write{Key: storage.Key{Bucket: bucket, Name: "default/wings"}, Value: []byte(strings.ReplaceAll(endpoints, "PORT", port))}); err != nil {
			t.Fatal(err)
		}
		a.must("POST", apiServices, wingService+"insecureSkipTLSVerify: true}\n")
		settle(t, plane)
		if got := availability(a); got != "True Passed: all checks passed" {
			t.Errorf("%s: the condition is %q", bucket, got)
		}
		if code, body := a.do("GET", wings, ""); code != http.StatusOK || string(body) != `{"from": "the endpoint"}` {
			t.Errorf("%s: answered with %d %s", bucket, code, body)
		}
	}
}

// TestAggregatorServesACustomServer that knows nothing but its cluster.
func TestAggregatorServesACustomServer(t *testing.T) {
	t.Parallel()
	address := ""
	plane, a := listening(t, controlplane.Options{
		ManualControllers: true, Webhooks: webhookclient.Options{Resolve: func(context.Context, webhookclient.Service) (webhookclient.Backend, bool) {
			return webhookclient.Backend{Address: address}, true
		}},
	})
	server := httptest.NewUnstartedServer(noteServer(t, plane, noteDefinition))
	server.TLS = &tls.Config{ClientAuth: tls.RequestClientCert, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	t.Cleanup(func() {
		_ = plane.Stop(context.Background()) // ends its watches of the server; it is stopped again, with the same result
		server.Close()
	})
	address = server.Listener.Addr().String()
	a.must("POST", apiServices, "apiVersion: apiregistration.k8s.io/v1\nkind: APIService\nmetadata: {name: v1.example.com}\n"+
		"spec: {group: example.com, version: v1, groupPriorityMinimum: 100, versionPriority: 10, service: {namespace: default, name: notes}, insecureSkipTLSVerify: true}\n")
	settle(t, plane)
	const notes = "/apis/example.com/v1/namespaces/default/notes"
	a.must("POST", notes, "apiVersion: example.com/v1\nkind: Note\nmetadata: {name: one}\n")
	watch := a.open(t.Context(), "GET", notes+"?watch=1", "")
	defer watch.Body.Close()
	if got := a.names(notes); len(got) != 1 || got[0] != "one" {
		t.Errorf("there are %q", got)
	}
	if events := bufio.NewScanner(watch.Body); !events.Scan() || !strings.Contains(events.Text(), `"one"`) {
		t.Errorf("the watch has %q", events.Text())
	}
	if code, body := a.do("DELETE", notes+"/one", ""); code != http.StatusOK {
		t.Errorf("%d %s", code, body)
	}
}

func TestAggregatorUnderstandsServersWithoutAggregatedDiscovery(t *testing.T) {
	t.Parallel()
	_, _, a := aggregating(t, newWingServer(t, nil), nil)
	const accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	_, body := a.send("GET", "/apis", "", map[string]string{"Accept": accept})
	want := `{"version":"v1","resources":[{"resource":"wings","responseKind":{"group":"","version":"","kind":"Wing"},"scope":"Namespaced","singularResource":"wing","verbs":["get"],` +
		`"subresources":[{"subresource":"exec","responseKind":{"group":"","version":"","kind":"Wing"},"verbs":["create"]}]}],"freshness":"Current"}`
	if !strings.Contains(string(body), want) {
		t.Errorf("discovery lacks %s", want)
	}
}

// TestAggregatorMergesDiscovery and the index of OpenAPI. What a server says about the
// versions of others does not count, and what it said last stays, as stale, when it does not
// answer.
func TestAggregatorMergesDiscovery(t *testing.T) {
	t.Parallel()
	const aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	asked := ""
	s := newWingServer(t, map[string]http.HandlerFunc{
		"/apis": func(w http.ResponseWriter, r *http.Request) {
			asked = r.Header.Get("X-Remote-User") + " " + r.Header.Get("If-None-Match")
			if r.Header.Get("If-None-Match") != "" {
				w.WriteHeader(http.StatusNotModified)
				return
			}
			w.Header().Set("Content-Type", aggregated)
			w.Header().Set("ETag", `"one"`)
			const wing = `{"version":"v1","resources":[{"resource":"wings","responseKind":{"group":"","version":"","kind":"Wing"},"scope":"Namespaced","singularResource":"wing","verbs":["get"]}]}`
			_, _ = io.WriteString(w, `{"kind":"APIGroupDiscoveryList","items":[{"metadata":{"name":"wings.example.com"},"versions":[`+wing+`]},{"metadata":{"name":"apps"},"versions":[`+wing+`]}]}`)
		},
		"/openapi/v3": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"paths":{"apis/apps/v1":{"serverRelativeURL":"/openapi/v3/apis/apps/v1?hash=0"},"apis/wings.example.com/v1":{"serverRelativeURL":"/openapi/v3/apis/wings.example.com/v1?hash=1"}}}`)
		},
		"/openapi/v3/apis/wings.example.com/v1": func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, `{"described for":"`+r.Header.Get("X-Remote-User")+`"}`)
		},
	})
	_, plane, a := aggregating(t, s, nil)
	entry := func() string {
		code, body := a.send("GET", "/apis", "", map[string]string{"Accept": aggregated})
		var list apidiscoveryv2.APIGroupDiscoveryList
		if err := json.Unmarshal(body, &list); err != nil || code != http.StatusOK {
			t.Fatal(code, err)
		}
		out := ""
		for _, g := range list.Items {
			for _, v := range g.Versions {
				for _, r := range v.Resources {
					if r.Resource == "wings" {
						out += g.Name + "/" + v.Version + " " + string(v.Freshness) + " " + r.ResponseKind.Kind
					}
				}
			}
		}
		return out
	}
	equal(t, "the entry", "wings.example.com/v1 Current Wing", entry())
	_, index := a.do("GET", "/openapi/v3", "")
	if text := string(index); !strings.Contains(text, "/openapi/v3/apis/wings.example.com/v1?hash=1") || strings.Contains(text, "/openapi/v3/apis/apps/v1?hash=0") {
		t.Errorf("the index is %s", text)
	}
	_, described := a.do("GET", "/openapi/v3/apis/wings.example.com/v1?hash=1", "")
	equal(t, "the description", `{"described for":"kubernetes-admin"}`, string(described))

	a.must("PATCH", apiServices+"/v1.wings.example.com", "spec: {versionPriority: 11}")
	settle(t, plane)
	equal(t, "the next question", `system:kube-aggregator "one"`, asked)
	s.Close()
	a.must("PATCH", apiServices+"/v1.wings.example.com", "spec: {versionPriority: 12}")
	settle(t, plane)
	equal(t, "the entry of a server that is gone", "wings.example.com/v1 Stale Wing", entry())
	a.must("DELETE", apiServices+"/v1.wings.example.com", "")
	settle(t, plane)
	equal(t, "the entry of no server", "", entry())
}
