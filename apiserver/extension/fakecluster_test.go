// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package extension_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/steer-dev/steer/apiserver/extension"
	"github.com/steer-dev/steer/certificate"
	"github.com/steer-dev/steer/internal/kubeapiserver"
)

const (
	secrets = "/api/v1/namespaces/team/secrets"
	secret  = secrets + "/notes-ca"
	apis    = "/apis/apiregistration.k8s.io/v1/apiservices/"
)

// fakeCluster is the cluster of a server, in process: a [http.RoundTripper]. The token
// "admin" is that of a member of system:masters, "user" that of a user without rights.
type fakeCluster struct {
	mu sync.Mutex
	// objects by their paths.
	objects map[string]json.RawMessage
	// codes are the answers to requests that are refused, by method and path.
	codes map[string]int
	// writes are the methods and paths of writes that were not refused, dry runs excepted.
	writes []string
	// managers of the objects that were applied, by path.
	managers map[string]string
	// ahead is by how much the clock of the cluster is ahead.
	ahead time.Duration
}

func newFakeCluster() *fakeCluster {
	return &fakeCluster{codes: map[string]int{}, managers: map[string]string{}, objects: map[string]json.RawMessage{
		"/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication": []byte(`{}`),
		"/api/v1/namespaces/default": []byte(`{"metadata": {"name": "default"}}`),
	}}
}

// RoundTrip implements [http.RoundTripper].
func (c *fakeCluster) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	w := httptest.NewRecorder()
	code, answer := c.answer(r, body)
	w.WriteHeader(code)
	if code >= http.StatusMultipleChoices {
		answer = metav1.Status{Message: "refused by the test"}
	}
	err = json.NewEncoder(w).Encode(answer)
	return w.Result(), err
}

func (c *fakeCluster) answer(r *http.Request, body []byte) (code int, answer any) {
	path := r.URL.Path
	if code := c.codes[r.Method+" "+path]; code != 0 {
		return code, nil
	}
	switch {
	case path == "/apis/authentication.k8s.io/v1/tokenreviews":
		var review authenticationv1.TokenReview
		if err := json.Unmarshal(body, &review); err != nil {
			return http.StatusBadRequest, nil
		}
		review.Status.Authenticated = review.Spec.Token == "admin" || review.Spec.Token == "user"
		review.Status.User.Username = review.Spec.Token
		if review.Spec.Token == "admin" {
			review.Status.User.Groups = []string{"system:masters"}
		}
		return http.StatusCreated, review
	case path == "/apis/authorization.k8s.io/v1/subjectaccessreviews":
		return http.StatusCreated, authorizationv1.SubjectAccessReview{}
	case r.URL.Query().Has("dryRun"):
		return http.StatusCreated, corev1.Secret{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(time.Now().Add(c.ahead))}}
	case r.Method == http.MethodGet:
		if c.objects[path] == nil {
			return http.StatusNotFound, nil
		}
		return http.StatusOK, c.objects[path]
	}
	c.writes = append(c.writes, r.Method+" "+path)
	if r.Method == http.MethodPatch {
		c.managers[path] = r.URL.Query().Get("fieldManager")
		c.objects[path] = body
		return http.StatusOK, json.RawMessage(body)
	}
	var written corev1.Secret
	if err := json.Unmarshal(body, &written); err != nil {
		return http.StatusBadRequest, nil
	}
	written.ResourceVersion += "1"
	stored, err := json.Marshal(written)
	if err != nil {
		return http.StatusInternalServerError, nil
	}
	c.objects[secret] = stored
	return http.StatusOK, json.RawMessage(stored)
}

// answerWith has the cluster refuse requests; the code 0 ends that.
func (c *fakeCluster) answerWith(code int, request string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.codes[request] = code
}

func (c *fakeCluster) put(path, object string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.objects[path] = []byte(object)
}

// written returns the writes since it was called last.
func (c *fakeCluster) written() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := c.writes
	c.writes = nil
	return out
}

// object returns what is stored at a path, and who has applied it.
func (c *fakeCluster) object(t *testing.T, path string) (object map[string]any, manager string) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := json.Unmarshal(c.objects[path], &object); err != nil {
		t.Fatalf("%s: %v; there are %q", path, err, slices.Sorted(maps.Keys(c.objects)))
	}
	return object, c.managers[path]
}

// bundle returns the certificates of the Secret.
func (c *fakeCluster) bundle(t *testing.T) []byte {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	var stored corev1.Secret
	if err := json.Unmarshal(c.objects[secret], &stored); err != nil {
		t.Fatal(err)
	}
	authority, err := certificate.ParseAuthority(stored.Data)
	if err != nil {
		t.Fatal(err)
	}
	return authority.Bundle()
}

// pipes is a listener in process.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "in process", Net: "unix"} }

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case p.conns <- theirs:
		return ours, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// logText is what a server has logged. It is safe for concurrent use.
type logText struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// running is a server that runs behind a fake cluster, in the time of a synctest bubble.
type running struct {
	t        *testing.T
	listener *pipes
	log      *logText
	cancel   context.CancelFunc
	ended    chan struct{}
	err      error // that Run has returned, once it has ended
}

// startBehind runs a server behind a cluster, in the namespace team, and waits until
// nothing moves.
func startBehind(t *testing.T, c *fakeCluster, s extension.Server, args ...string) *running {
	t.Helper()
	r := &running{t: t, listener: &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}, log: &logText{}, ended: make(chan struct{})}
	config := &rest.Config{Host: "https://cluster.invalid"}
	args = append([]string{"--kubeconfig", kubeapiserver.Kubeconfig(t, config), "--service-namespace", "team"}, args...)
	config.Transport = c
	configure := s.Configure
	s.Configure = func(o *extension.Options) {
		o.Cluster, o.Listener, o.Log = config, r.listener, slog.New(slog.NewTextHandler(r.log, nil))
		if configure != nil {
			configure(o)
		}
	}
	var ctx context.Context
	ctx, r.cancel = context.WithCancel(t.Context())
	go func() {
		defer close(r.ended)
		r.err = extension.Run(ctx, args, s)
	}()
	t.Cleanup(func() { _ = r.stop() }) // of a test that has failed
	synctest.Wait()
	return r
}

// stop stops the server and returns what Run has returned.
func (r *running) stop() error {
	r.cancel()
	return r.wait()
}

// wait returns what Run has returned when the server has ended.
func (r *running) wait() error {
	<-r.ended
	return r.err
}

// client returns a client that verifies the certificate of the server as an API server
// does.
func (r *running) client(token string, bundle []byte) client {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	transport := &http.Transport{DialContext: r.listener.dial, TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
	r.t.Cleanup(transport.CloseIdleConnections)
	return client{r.t, "https://notes.team.svc", &http.Client{Transport: bearerToken{token, transport}}}
}

type bearerToken struct {
	token string
	next  http.RoundTripper
}

// RoundTrip implements [http.RoundTripper].
func (b bearerToken) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return b.next.RoundTrip(r)
}
