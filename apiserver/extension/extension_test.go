// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package extension_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/steer-dev/steer/apiserver"
	"github.com/steer-dev/steer/apiserver/custom"
	"github.com/steer-dev/steer/apiserver/extension"
	"github.com/steer-dev/steer/internal/kubeapiserver"
)

const (
	definition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: notes.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Note, plural: notes, shortNames: [nt]}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {text: {type: string}}}}}
`
	notes = "/apis/example.com/v1/namespaces/default/notes"
	note  = `{"apiVersion": "example.com/v1", "kind": "Note", "metadata": {"name": "milk"}, "text": "buy milk"}`
)

// noteServer serves notes.
func noteServer(configure func(*extension.Options)) extension.Server {
	return extension.Server{
		Name: "notes",
		Kinds: func(context.Context) ([]extension.Kind, error) {
			return []extension.Kind{custom.Kind[*unstructured.Unstructured]{Definition: []byte(definition)}}, nil
		},
		Configure: configure,
	}
}

// start runs a server on a free port of this machine until the returned function is
// called, which returns what Run has returned.
func start(t *testing.T, s extension.Server, args ...string) (stop func() error) {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	configure := s.Configure
	s.Configure = func(o *extension.Options) {
		o.Listener = listener
		o.Log = slog.New(slog.NewTextHandler(t.Output(), nil))
		if configure != nil {
			configure(o)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- extension.Run(ctx, args, s) }()
	stopped := false
	stop = func() error {
		if stopped {
			return nil
		}
		stopped = true
		cancel()
		return <-ended
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	return stop
}

// client sends requests with the credentials of a configuration.
type client struct {
	t    *testing.T
	host string
	http *http.Client
}

func newClient(t *testing.T, config *rest.Config) client {
	t.Helper()
	h, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	// A server that is shut down leaves the clients of HTTP/2 a second to do this.
	t.Cleanup(func() { utilnet.CloseIdleConnectionsFor(h.Transport) })
	return client{t, config.Host, h}
}

func (c client) send(method, path, body string) (int, string) {
	c.t.Helper()
	r, err := http.NewRequestWithContext(c.t.Context(), method, c.host+path, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	answer, err := c.http.Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

func (c client) must(want int, method, path, body string) string {
	c.t.Helper()
	code, text := c.send(method, path, body)
	if code != want {
		c.t.Fatalf("%s %s: %d %s, want %d", method, path, code, text, want)
	}
	return text
}

// await reads a path until it is served, and returns the answer.
func (c client) await(path string) string {
	c.t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(time.Minute); ; {
		code, text := c.send(http.MethodGet, path, "")
		if code == http.StatusOK {
			return text
		}
		select {
		case <-end:
			c.t.Fatalf("get %s: %d %s", path, code, text)
		case <-tick.C:
		}
	}
}

// kubeconfig waits for a file that a server writes.
func kubeconfig(t *testing.T, path string) *rest.Config {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(time.Minute); ; {
		config, err := clientcmd.BuildConfigFromFlags("", path)
		if err == nil {
			return config
		}
		select {
		case <-end:
			t.Fatal(err)
		case <-tick.C:
		}
	}
}

func TestServerAloneServesTheUsersOfItsKubeconfig(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "config")
	start(t, noteServer(nil), "--standalone", "--write-kubeconfig", file)
	config := kubeconfig(t, file)
	c := newClient(t, config)
	c.must(http.StatusCreated, "POST", notes, note)
	if got := c.must(http.StatusOK, "GET", notes+"/milk", ""); !strings.Contains(got, "buy milk") {
		t.Errorf("the note is %s", got)
	}
	c.must(http.StatusOK, "GET", "/metrics", "")
	stranger := newClient(t, rest.AnonymousClientConfig(config))
	stranger.must(http.StatusOK, "GET", "/readyz", "")
	stranger.must(http.StatusForbidden, "GET", notes, "")
	stranger.must(http.StatusForbidden, "GET", "/metrics", "")
}

func TestServerHasTheLimitsChecksAndMetricsOfItsOptions(t *testing.T) {
	t.Parallel()
	metrics := prometheus.NewRegistry()
	metrics.MustRegister(prometheus.NewCounter(prometheus.CounterOpts{Name: "notes_read_aloud_total", Help: "Notes that were read aloud."}))
	file := filepath.Join(t.TempDir(), "config")
	start(t, noteServer(func(o *extension.Options) {
		o.Limits.BodyBytes, o.Limits.ObjectBytes = 4<<20, 4<<20
		o.Checks = []apiserver.Check{{Name: "ink", ReadyOnly: true, Run: func() error { return errors.New("there is none") }}}
		o.Metrics = metrics
	}), "--standalone", "--write-kubeconfig", file)
	c := newClient(t, kubeconfig(t, file))
	body := func(bytes int) string { return strings.Replace(note, "buy milk", strings.Repeat("x", bytes), 1) }
	c.must(http.StatusRequestEntityTooLarge, "POST", notes, body(4<<20))
	c.must(http.StatusCreated, "POST", notes, body(7<<19)) // more than the default limits
	if got := c.must(http.StatusInternalServerError, "GET", "/readyz", ""); !strings.Contains(got, "[-]ink failed") {
		t.Errorf("the check is not run: %s", got)
	}
	c.must(http.StatusOK, "GET", "/livez", "")
	if got := c.must(http.StatusOK, "GET", "/metrics", ""); !strings.Contains(got, "notes_read_aloud_total 0") || !strings.Contains(got, "apiserver_request_total") {
		t.Error("a metric is not served")
	}
}

func TestServerAloneKeepsObjectsAndCredentialsInItsDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var before []byte
	for _, run := range []string{"first", "second"} {
		file := filepath.Join(t.TempDir(), "config")
		stop := start(t, noteServer(nil), "--standalone", "--data-dir", dir, "--write-kubeconfig", file)
		config := kubeconfig(t, file)
		c := newClient(t, config)
		if run == "first" {
			c.must(http.StatusCreated, "POST", notes, note)
		} else {
			c.must(http.StatusOK, "GET", notes+"/milk", "")
		}
		credentials := fmt.Appendf(nil, "%s %s", config.BearerToken, config.CAData)
		if before != nil && !bytes.Equal(before, credentials) {
			t.Error("a restart changes the credentials")
		}
		before = credentials
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRunReportsInvalidArguments(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"an unknown flag":               {[]string{"--x"}, "see --help"},
		"an argument":                   {[]string{"--standalone", "x"}, `unexpected argument "x"`},
		"alone with a cluster":          {[]string{"--standalone", "--kubeconfig", "x"}, "leave out --kubeconfig"},
		"alone with certificate files":  {[]string{"--standalone", "--cert-path", "x"}, "leave out --cert-path"},
		"a kubeconfig that is not used": {[]string{"--write-kubeconfig", "x"}, "is for --standalone"},
	} {
		err := extension.Run(t.Context(), c.args, noteServer(func(o *extension.Options) { o.Address = "127.0.0.1:0" }))
		if !errors.Is(err, extension.ErrUsage) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	if err := extension.Run(t.Context(), nil, extension.Server{}); err == nil || !strings.Contains(err.Error(), "Server.Name") {
		t.Errorf("no server: %v", err)
	}
}

func TestRunSaysWhatIsWrongWithTheCluster(t *testing.T) {
	t.Setenv("KUBECONFIG", "")
	write := func(text string) string {
		name := filepath.Join(t.TempDir(), "kubeconfig")
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	for want, args := range map[string][]string{
		"no kubeconfig is given":                nil,
		"no such file":                          {"--kubeconfig", filepath.Join(t.TempDir(), "none")},
		"error loading config file":             {"--kubeconfig", write("a: [")},
		"kubeconfig names no cluster;":          {"--kubeconfig", write("{}")},
		"correct the address in the kubeconfig": {"--bind-address", "127.0.0.1:0", "--kubeconfig", kubeapiserver.Kubeconfig(t, &rest.Config{Host: "http://127.0.0.1:1"})},
	} {
		err := extension.Run(t.Context(), args, noteServer(nil))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "KUBERNETES_") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v: %v, want one line with %q", args, err, want)
		}
		if !strings.Contains(want, "address") && !strings.Contains(err.Error(), "pass --kubeconfig, set KUBECONFIG, or run it alone with --standalone") {
			t.Errorf("%v: %v", args, err)
		}
	}
}

func TestServerBehindKubeAPIServer(t *testing.T) {
	t.Parallel()
	cluster := kubeapiserver.Server(t, kubeapiserver.FrontProxyFlags(t)...)
	start(t, noteServer(func(o *extension.Options) {
		o.Cluster = cluster
		o.Service.ExternalName = "localhost"
	}), "--kubeconfig", kubeapiserver.Kubeconfig(t, cluster))
	admin := newClient(t, cluster)
	admin.await(notes)
	admin.must(http.StatusCreated, "POST", notes, note)
	if got := admin.must(http.StatusNotFound, "POST", strings.Replace(notes, "default", "absent", 1), note); !strings.Contains(got, `namespaces \"absent\" not found`) {
		t.Errorf("a creation in a namespace that does not exist: %s", got)
	}
	if got := admin.must(http.StatusOK, "GET", "/apis/apiregistration.k8s.io/v1/apiservices/v1.example.com", ""); !strings.Contains(got, `"caBundle"`) {
		t.Errorf("the APIService has no caBundle: %s", got)
	}
	user := *cluster
	user.BearerToken = "user-token"
	ordinary := newClient(t, &user)
	if got := ordinary.must(http.StatusForbidden, "GET", notes, ""); !strings.Contains(got, `User \"user\" cannot list resource \"notes\"`) {
		t.Errorf("a user without rights: %s", got)
	}
	admin.must(http.StatusCreated, "POST", "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles",
		`{"metadata": {"name": "notes"}, "rules": [{"apiGroups": ["example.com"], "resources": ["notes"], "verbs": ["get", "create"]}]}`)
	admin.must(http.StatusCreated, "POST", "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings",
		`{"metadata": {"name": "notes"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "notes"}, "subjects": [{"kind": "User", "name": "user"}]}`)
	ordinary.await(notes + "/milk")
	if got := ordinary.await("/openapi/v3/apis/example.com/v1"); !strings.Contains(got, "com.example.v1.Note") {
		t.Errorf("OpenAPI through the aggregator: %.300s", got)
	}
}
