// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package examples_test runs the programs of the examples with bad input: each says in
// one line what is wrong and what to do.
package examples_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/steer-dev/steer/steertest"
)

// program is an example that is run.
type program struct {
	folder string
	args   []string
	// crd has no match on a server without the definitions of the example; empty: the
	// example has no kind of its own.
	crd string
	// works is what the program says once it is at work.
	works string
	// right is what it says to an account without rights, unreachable what it says without
	// a server.
	right, unreachable string
}

// operator is a program whose main is steer.Main.
func operator(folder, crd string) program {
	if crd != "" {
		crd = "install its CustomResourceDefinition"
	}
	return program{
		folder: folder, args: []string{"--health-probe-bind-address=0", "--webhook-port=0"}, crd: crd,
		works: "Starting workers", right: "grant it: a ClusterRole with", unreachable: "the API server cannot be reached: start it, or correct the address in the kubeconfig",
	}
}

func programs() []program {
	podwatch := operator("podwatch/cmd", "")
	podwatch.args, podwatch.right = nil, "grant it: a Role in default with"
	handmade := operator("handmade/cmd", "Greeting")
	handmade.args, handmade.crd, handmade.works = nil, "kubectl apply -f examples/handmade/config/crd/bases", "the cache has what the server has"
	handmade.right = "this program needs get, list and watch of greetings"
	out := []program{operator("crontab/cmd", "CronTab"), podwatch, handmade}
	if os.Getenv("STEER_PROJECTS") != "" { // others with the same main, in `.ci/run projects`
		out = append(out, operator("hello", ""), operator("replicas/cmd", "Fleet"), operator("references/cmd", ""), operator("loadbalancer/cmd", ""))
	}
	return out
}

// build builds a program.
func (p program) build(t *testing.T, dir string) string {
	t.Helper()
	binary := filepath.Join(dir, strings.ReplaceAll(p.folder, "/", "-"))
	if out, err := exec.Command("go", "build", "-ldflags=-s -w", "-o", binary, "./"+p.folder).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return binary
}

// command is the program with a kubeconfig, and nothing else that names a cluster.
func (p program) command(t *testing.T, binary, kubeconfig string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary, p.args...)
	if kubeconfig != "" {
		cmd.Args = append(cmd.Args, "--kubeconfig", kubeconfig)
	}
	cmd.Env = []string{"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH")}
	return cmd
}

// says runs the program until it has printed the texts in the given order, each in one
// line, calling next after each; then it is told to stop, and ends with status 0.
func (p program) says(t *testing.T, binary, kubeconfig string, next func(), texts ...string) {
	t.Helper()
	cmd := p.command(t, binary, kubeconfig)
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	cmd.Stdout, cmd.Stderr = writer, writer
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = writer.Close()
	guard := time.AfterFunc(2*time.Minute, func() { _ = cmd.Process.Kill() })
	defer guard.Stop()
	var seen strings.Builder
	for lines := bufio.NewScanner(reader); lines.Scan(); {
		seen.WriteString(lines.Text() + "\n")
		if len(texts) == 0 || !strings.Contains(lines.Text(), texts[0]) {
			continue
		}
		if texts = texts[1:]; len(texts) > 0 {
			next()
		} else if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Error(err)
		}
	}
	if err := cmd.Wait(); err != nil || len(texts) > 0 {
		t.Errorf("it ended with %v, and did not say %q:\n%s", err, texts, seen.String())
	}
}

// server serves a control plane to programs, without authentication; close ends its
// connections as well.
func server(t *testing.T, cfg *rest.Config) (kubeconfig string, end func()) {
	t.Helper()
	transport, err := rest.TransportFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	host, err := url.Parse(cfg.Host)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(&httputil.ReverseProxy{
		Transport: transport, FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0),
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(host) },
	})
	end = func() {
		s.Listener.Close() // no new ones
		s.CloseClientConnections()
		s.Close()
	}
	t.Cleanup(end)
	return config(t, s.URL), end
}

// config writes a kubeconfig.
func config(t *testing.T, url string) string {
	t.Helper()
	text, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": "a",
		"contexts": []any{map[string]any{"name": "a", "context": map[string]any{"cluster": "a"}}},
		"clusters": []any{map[string]any{"name": "a", "cluster": map[string]any{"server": url}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return file(t, string(text))
}

func file(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestProgramsSayWhatIsWrong(t *testing.T) {
	t.Parallel()
	bare := steertest.New(t, steertest.Options{})
	bare.NeedPlane()
	full := steertest.New(t, steertest.Options{CRDs: []string{"crontab/config/crd/bases", "handmade/config/crd/bases", "replicas/config/crd/bases"}})
	powerless := rest.CopyConfig(full.Config)
	powerless.Impersonate.UserName = "nobody"
	nobody, _ := server(t, powerless)
	empty, _ := server(t, bare.Config)
	dir := t.TempDir()
	for _, p := range programs() {
		t.Run(p.folder, func(t *testing.T) {
			t.Parallel()
			binary := p.build(t, dir)
			for kubeconfig, want := range map[string]string{
				"":                                    "no kubeconfig is found",
				filepath.Join(t.TempDir(), "missing"): "missing: no such file or directory",
				file(t, "a: ["):                       "error loading config file",
				file(t, "{}"):                         "names no cluster",
			} {
				p.refuses(t, binary, kubeconfig, want)
			}
			p.says(t, binary, config(t, "http://127.0.0.1:1"), nil, p.unreachable)
			p.says(t, binary, nobody, nil, p.right)
			if p.crd != "" {
				p.says(t, binary, empty, nil, p.crd)
			}
			kubeconfig, end := server(t, full.Config)
			p.says(t, binary, kubeconfig, end, p.works, p.unreachable)
		})
	}
}

// refuses runs the program with a kubeconfig that names no cluster: it ends with status 1
// and one line.
func (p program) refuses(t *testing.T, binary, kubeconfig, want string) {
	t.Helper()
	cmd := p.command(t, binary, kubeconfig)
	var out strings.Builder
	cmd.Stderr = &out
	err := cmd.Run()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("%q: it ended with %v, want exit status 1", want, err)
	}
	if got := out.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "no cluster: ") || !strings.Contains(got, want) || !strings.Contains(got, "pass --kubeconfig, set KUBECONFIG") {
		t.Errorf("%q: it printed:\n%s", want, got)
	}
}
