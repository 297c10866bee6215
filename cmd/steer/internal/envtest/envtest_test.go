// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/steer-dev/steer/apiserver/auth"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){etcdName: func() {
		if err := New(etcdName).Execute(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}})
}

func TestStandInNamesAnOccupiedPort(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	address := l.Addr().String()
	_, port, _ := net.SplitHostPort(address)
	for program, args := range map[string][]string{
		etcdName:      {"--listen-client-urls=http://" + address},
		apiserverName: {"--secure-port=" + port, "--authorization-mode=RBAC"},
	} {
		cmd := New(program)
		cmd.SetArgs(args)
		err := cmd.ExecuteContext(t.Context())
		if want := address + " is in use by another program"; err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v, want one line with %q", program, err, want)
		}
	}
}

func TestStandInEndsWithItsParent(t *testing.T) {
	t.Parallel()
	// The shell waits for input that never comes; etcd is its child.
	shell := exec.CommandContext(t.Context(), "sh", "-c", "etcd --listen-client-urls=http://127.0.0.1:0 --name=note 2>&1 & read never")
	if _, err := shell.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := shell.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := shell.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	if line, err := lines.ReadString('\n'); err != nil || !strings.Contains(line, "--name has no effect") {
		t.Fatalf("etcd has not started: %q, %v", line, err)
	}
	if err := shell.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	// The output ends when the last process that could write to it has ended.
	if rest, err := io.ReadAll(lines); err != nil || len(rest) > 0 {
		t.Errorf("after the end of the parent: %q, %v", rest, err)
	}
	_ = shell.Wait() // it was killed
}

func TestAPIServerEndsWithItsEtcd(t *testing.T) {
	t.Parallel()
	l := &inMemory{conns: make(chan net.Conn), closed: make(chan struct{})}
	servers := []string{"http://etcd.invalid:2379"}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- serveHealthOn(ctx, l) }()
	gone, err := awaitEtcd(t.Context(), servers, l.dial)
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-gone:
		t.Fatal("etcd is taken to have ended while it serves")
	default:
	}
	cancel()
	if err := <-served; err != nil {
		t.Fatal(err)
	}
	<-gone
	if _, err := awaitEtcd(t.Context(), servers, l.dial); err == nil || !strings.Contains(err.Error(), "no etcd answers") {
		t.Errorf("no etcd: got %v", err)
	}
}

// inMemory is a listener without a port: once it is closed, no other server can take its
// place.
type inMemory struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

// Accept implements [net.Listener].
func (l *inMemory) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements [net.Listener].
func (l *inMemory) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr implements [net.Listener].
func (*inMemory) Addr() net.Addr { return &net.TCPAddr{} }

func (l *inMemory) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case l.conns <- theirs:
		return ours, nil
	case <-l.closed:
		return nil, syscall.ECONNREFUSED
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func TestOpenModeAllowsOnlyKnownUsers(t *testing.T) {
	t.Parallel()
	open, err := (&authorizationFlags{modes: []string{"AlwaysAllow"}}).authorizer()
	if err != nil {
		t.Fatal(err)
	}
	known := &auth.User{Name: "jane", Groups: []string{auth.Authenticated}}
	stranger := &auth.User{Name: auth.Anonymous, Groups: []string{auth.Unauthenticated}}
	for _, c := range []struct {
		name string
		a    auth.Attributes
		want auth.Decision
	}{
		{"known, resource", auth.Attributes{User: known, Verb: "delete", ResourceRequest: true, Resource: "secrets"}, auth.Allow},
		{"reviewed without groups", auth.Attributes{User: &auth.User{Name: "jane"}, Verb: "list", ResourceRequest: true, Resource: "secrets"}, auth.Allow},
		{"stranger, resource", auth.Attributes{User: stranger, Verb: "list", ResourceRequest: true, Resource: "secrets"}, auth.NoOpinion},
		{"stranger, health", auth.Attributes{User: stranger, Verb: "get", Path: "/healthz"}, auth.Allow},
	} {
		if got, _, err := open.Authorize(t.Context(), &c.a); got != c.want || err != nil {
			t.Errorf("%s: got %v, %v, want %v", c.name, got, err, c.want)
		}
	}
}

// TestOpenModeKnowsNoAnonymousUsers: kube-apiserver answers requests without credentials with 401 in
// the mode AlwaysAllow, but suites ask for the health of the server so.
func TestOpenModeKnowsNoAnonymousUsers(t *testing.T) {
	t.Parallel()
	for mode, want := range map[string][]string{"AlwaysAllow": openPaths(), "RBAC": nil} {
		flags := apiserverFlags{port: 1, may: authorizationFlags{modes: []string{mode}}, who: authenticationFlags{anonymous: true}}
		o, err := flags.options(io.Discard)
		if err != nil || o.Authentication.NoAnonymous || !slices.Equal(o.Authentication.AnonymousPaths, want) {
			t.Errorf("%s: anonymous requests may ask for %q, %v, want %q", mode, o.Authentication.AnonymousPaths, err, want)
		}
	}
}

func TestCertificatesAreMadeOnce(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "new")
	flags := apiserverFlags{address: net.IPv4(127, 0, 0, 1), certDir: dir}
	first, err := flags.certificate()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tls.LoadX509KeyPair(filepath.Join(dir, "apiserver.crt"), filepath.Join(dir, "apiserver.key")); err != nil {
		t.Error(err)
	}
	second, err := flags.certificate()
	if err != nil {
		t.Fatal(err)
	}
	if !first.Leaf.Equal(second.Leaf) {
		t.Error("the certificate was made anew")
	}
}

func TestEtcdSaysItIsHealthyAndNothingElse(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- serveHealthOn(ctx, l) }()
	for path, want := range map[string]int{"/health": http.StatusOK, "/v3/kv/range": http.StatusNotImplemented} {
		response, err := http.Get("http://" + l.Addr().String() + path)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("%s: got %d, want %d", path, response.StatusCode, want)
		}
	}
	cancel()
	if err := <-served; err != nil {
		t.Errorf("end: %v", err)
	}
}
