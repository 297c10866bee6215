// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package up

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// running is a steer up in this process.
type running struct {
	kubeconfig string
	output     string
	stop       func() error
}

// runUp starts steer up and returns once it says that it is up.
func runUp(t *testing.T, o upOptions) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := up(ctx, o, w, io.Discard)
		_ = w.CloseWithError(io.EOF) // never fails
		done <- err
	}()
	var output bytes.Buffer
	buffer := make([]byte, 1024)
	for !strings.Contains(output.String(), "Stop it with") {
		n, err := r.Read(buffer)
		output.Write(buffer[:n])
		if err != nil {
			cancel()
			t.Fatalf("steer up ended early: %v\n%s", <-done, output.String())
		}
	}
	stop := sync.OnceValue(func() error { cancel(); return <-done })
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	kubeconfig := regexp.MustCompile(`KUBECONFIG=(\S+)`).FindStringSubmatch(output.String())[1]
	return &running{kubeconfig: kubeconfig, output: output.String(), stop: stop}
}

// TestUpServesAPageOfWhatItHas, which leads to what is not ready.
func TestUpServesAPageOfWhatItHas(t *testing.T) {
	t.Parallel()
	r := runUp(t, upOptions{inMemory: true, listen: "127.0.0.1:0", page: "127.0.0.1:0"})
	at := regexp.MustCompile(`Its page: (\S+)`).FindStringSubmatch(r.output)[1]
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Jar: jar, Transport: &http.Transport{}}
	defer browser.CloseIdleConnections()
	base, _, _ := strings.Cut(at, "/?")
	for _, view := range []struct{ at, want string }{
		{at, "No operator runs here"}, {base + "/objects?find=namespace+kube-system", "kube-system"},
		{base + "/object?kind=Namespace&name=kube-system", "created"}, {base + "/object?kind=Namespace&name=kube-system&view=tree", "kube-system"},
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, view.at, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := browser.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close() // it was read
		if err != nil || answer.StatusCode != http.StatusOK || !strings.Contains(string(text), view.want) || strings.Contains(string(text), "did not answer") {
			t.Errorf("%s: %d, %v: it does not say %q:\n%s", view.at, answer.StatusCode, err, view.want, text)
		}
	}
	if err := r.stop(); err != nil {
		t.Error(err)
	}
	if err := up(t.Context(), upOptions{inMemory: true, listen: "127.0.0.1:0", page: "203.0.113.1:1"}, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), "--page-bind-address: dashboard: 203.0.113.1:1 is not of a loopback interface") {
		t.Errorf("another address: %v", err)
	}
}

// namespaces lists the namespaces over the network, as clients do.
func (r *running) namespaces(t *testing.T) []string {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", r.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	over, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	// A server that is shut down leaves the clients of HTTP/2 a second to do this.
	defer utilnet.CloseIdleConnectionsFor(over.Transport)
	client, err := dynamic.NewForConfigAndClient(config, over)
	if err != nil {
		t.Fatal(err)
	}
	list, err := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, item := range list.Items {
		names = append(names, item.GetName())
	}
	return names
}

func TestUpServesClientsAndCleansUp(t *testing.T) {
	t.Parallel()
	r := runUp(t, upOptions{inMemory: true, listen: "127.0.0.1:0"})
	if got := r.namespaces(t); len(got) != 4 {
		t.Errorf("namespaces %v", got)
	}
	if err := r.stop(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Dir(r.kubeconfig)); !os.IsNotExist(err) {
		t.Errorf("the directory of the kubeconfig is still there: %v", err)
	}
}

func TestUpKeepsDataAndKeys(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := runUp(t, upOptions{dataDir: dir, listen: "127.0.0.1:0"})
	before, err := os.ReadFile(filepath.Join(dir, "pki", "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	snapshot := filepath.Join(t.TempDir(), "s")
	if err := saveSnapshot(t.Context(), snapshot, dir, "", &out); err != nil {
		t.Fatalf("snapshot while it runs: %v", err)
	}
	if err := up(t.Context(), upOptions{dataDir: dir, listen: "127.0.0.1:0"}, io.Discard, io.Discard); err == nil ||
		!strings.Contains(err.Error(), "in use by another process") {
		t.Errorf("second process on the directory: %v", err)
	}
	if err := first.stop(); err != nil {
		t.Fatal(err)
	}
	runUp(t, upOptions{dataDir: dir, listen: "127.0.0.1:0"})
	after, err := os.ReadFile(filepath.Join(dir, "pki", "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(before, after) {
		t.Error("there is another authority after the restart")
	}
	restored := filepath.Join(t.TempDir(), "restored")
	if err := restoreSnapshot(snapshot, restored, &out); err != nil {
		t.Fatal(err)
	}
	if got := runUp(t, upOptions{dataDir: restored, listen: "127.0.0.1:0"}).namespaces(t); len(got) != 4 {
		t.Errorf("namespaces after restoring: %v", got)
	}
	if err := restoreSnapshot(snapshot, restored, &out); err == nil {
		t.Error("restoring over data was not refused")
	}
}

func TestUpMergesIntoAKubeconfig(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "config")
	const others = `apiVersion: v1
kind: Config
current-context: other
clusters: [{name: other, cluster: {server: "https://192.0.2.1"}}]
contexts: [{name: other, context: {cluster: other, user: ""}}]
`
	if err := os.WriteFile(file, []byte(others), 0o644); err != nil {
		t.Fatal(err)
	}
	r := runUp(t, upOptions{inMemory: true, listen: "127.0.0.1:0", kubeconfig: file})
	if got := r.namespaces(t); len(got) != 4 {
		t.Errorf("namespaces %v", got)
	}
	config, err := clientcmd.LoadFromFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if config.CurrentContext != "steer" || config.Contexts["other"] == nil || config.Clusters["other"].Server != "https://192.0.2.1" {
		t.Errorf("merged kubeconfig: current context %q, contexts %v", config.CurrentContext, config.Contexts)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the kubeconfig holds a key and has mode %v (%v)", info.Mode(), err)
	}
}

func TestUpSaysInOneLineWhatIsWrong(t *testing.T) {
	t.Parallel()
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = busy.Close() }) // nothing was sent
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	fresh := filepath.Join(t.TempDir(), "fresh")
	for _, test := range []struct {
		name string
		o    upOptions
		want string
	}{
		{"busy port", upOptions{dataDir: fresh, listen: busy.Addr().String()}, "in use by another program: stop that, or choose another address with --listen"},
		{"unusable directory", upOptions{dataDir: filepath.Join(file, "x"), listen: "127.0.0.1:0"}, "choose another one with --data-dir, or keep nothing with --in-memory"},
		{"address that is not ours", upOptions{inMemory: true, listen: "203.0.113.1:1"}, "choose another address with --listen"},
		{"contradiction", upOptions{inMemory: true, dataDir: fresh, listen: "127.0.0.1:0"}, "leave one of them out"},
		{"missing tokens", upOptions{inMemory: true, listen: "127.0.0.1:0", tokenFile: fresh}, "cannot read the token file"},
		{"kubeconfig that is none", upOptions{inMemory: true, listen: "127.0.0.1:0", kubeconfig: "up_test.go"}, "is not a kubeconfig"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			err := up(t.Context(), test.o, io.Discard, io.Discard)
			if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %q, want one line with %q", err, test.want)
			}
			if _, err := os.Stat(fresh); !os.IsNotExist(err) {
				t.Errorf("it left %s behind", fresh)
			}
		})
	}
}

func TestDataGoesWhereStateBelongs(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", "/state")
	if got, err := defaultDataDir(); err != nil || got != "/state/steer" {
		t.Errorf("with XDG_STATE_HOME: %q, %v", got, err)
	}
	t.Setenv("XDG_STATE_HOME", "")
	t.Setenv("HOME", "/home/x")
	if got, err := defaultDataDir(); err != nil || got != "/home/x/.local/state/steer" {
		t.Errorf("with HOME: %q, %v", got, err)
	}
	t.Setenv("HOME", "")
	if _, err := defaultDataDir(); err == nil || !strings.Contains(err.Error(), "--in-memory") {
		t.Errorf("without HOME: %v", err)
	}
}
