// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/steer-dev/steer/apiserver/extension"
	"github.com/steer-dev/steer/apiserver/stream"
	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/client/codec"
	"github.com/steer-dev/steer/controlplane"
	v1 "github.com/steer-dev/steer/examples/machines/api/v1"
)

// patience bounds what a test waits for.
const patience = time.Minute

// running is a server that stands alone, and a client of it.
type running struct {
	client.Client
	t          *testing.T
	config     *rest.Config
	kubeconfig string
	stop       func()
}

// start starts the server with the database of a directory.
func start(t *testing.T, dir string) *running {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &running{t: t, kubeconfig: filepath.Join(t.TempDir(), "config")}
	s := server()
	serving := make(chan *rest.Config, 1)
	run := s.Background
	s.Background = func(ctx context.Context, loopback *rest.Config) error {
		serving <- loopback
		return run(ctx, loopback)
	}
	s.Configure = func(o *extension.Options) {
		o.Listener, o.Log, o.Drain = listener, slog.New(slog.DiscardHandler), -1
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- extension.Run(ctx, []string{"--standalone", "--write-kubeconfig", r.kubeconfig, "--data-dir", dir, "--pods"}, s)
	}()
	select {
	case <-serving:
	case err := <-ended:
		cancel()
		t.Fatal(err)
	}
	r.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(r.stop)
	r.until("the server has written no kubeconfig", func() bool { _, err := os.Stat(r.kubeconfig); return err == nil })
	config, err := clientcmd.BuildConfigFromFlags("", r.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	r.config = config
	scheme, err := client.NewScheme(v1.AddToScheme)
	if err != nil {
		t.Fatal(err)
	}
	if r.Client, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	return r
}

// until waits for a condition.
func (r *running) until(otherwise string, holds func() bool) {
	r.t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(patience); !holds(); {
		select {
		case <-end:
			r.t.Fatal(otherwise)
		case <-tick.C:
		}
	}
}

// machine creates a machine and waits until it runs.
func (r *running) machine(name, script string, ports ...int32) *v1.Machine {
	r.t.Helper()
	m := &v1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec:       v1.MachineSpec{Command: []string{"sh", "-c", script}, Ports: ports},
	}
	if err := r.Create(r.t.Context(), m); err != nil {
		r.t.Fatal(err)
	}
	r.phase(m, v1.Running)
	return m
}

// phase waits until a machine is in a phase.
func (r *running) phase(m *v1.Machine, phase string) {
	r.t.Helper()
	r.until(fmt.Sprintf("machine %s is not %s", m.Name, phase), func() bool {
		if err := r.Get(r.t.Context(), client.ObjectKeyFromObject(m), m); err != nil {
			r.t.Fatal(err)
		}
		return m.Status.Phase == phase
	})
}

// gone reports whether a machine is no more.
func (r *running) gone(m *v1.Machine) bool {
	return apierrors.IsNotFound(r.Get(r.t.Context(), client.ObjectKeyFromObject(m), &v1.Machine{}))
}

// plugin is kubectl-machine, built once.
func plugin(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "kubectl-machine")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./cmd/kubectl-machine").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}

// command runs a program for the server, and returns its output and status.
func (r *running) command(program, input string, args ...string) (string, int) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+r.kubeconfig, "KUBECACHEDIR="+r.t.TempDir())
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		r.t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

func TestMachinesAreReachedByThePlugin(t *testing.T) {
	t.Parallel()
	start(t, t.TempDir()).reached(plugin(t))
}

// reached reads logs of a machine and runs commands in it.
func (r *running) reached(program string) {
	r.t.Helper()
	r.machine("one", "echo hello; exec sleep 600")
	for _, c := range []struct {
		input, want string
		status      int
		args        []string
	}{
		{"", "hello\n", 0, []string{"logs", "one"}},
		{"", "in one\n", 0, []string{"exec", "one", "--", "sh", "-c", "echo in $MACHINE"}},
		{"", "", 4, []string{"exec", "one", "--", "sh", "-c", "exit 4"}},
		{"passed on", "passed on", 0, []string{"exec", "-i", "one", "--", "cat"}},
	} {
		if out, status := r.command(program, c.input, c.args...); out != c.want || status != c.status {
			r.t.Errorf("%s: status %d, %q; want %d, %q", c.args, status, out, c.status, c.want)
		}
	}
	if out, status := r.command(program, "", "logs", "none"); status != 1 || !strings.Contains(out, `machines.example.com \"none\" not found`) {
		r.t.Errorf("logs of none: status %d, %s", status, out)
	}
}

// TestMachinesAreReachedByKubectl as Pods, if the computer has kubectl.
func TestMachinesAreReachedByKubectl(t *testing.T) {
	t.Parallel()
	kubectl, err := exec.LookPath("kubectl")
	if err != nil {
		t.Skip("kubectl is not installed")
	}
	r := start(t, t.TempDir())
	r.machine("one", "echo hello; exec sleep 600")
	for _, c := range []struct {
		input, want string
		status      int
		args        []string
	}{
		{"", "hello\n", 0, []string{"logs", "one"}},
		// Old versions of kubectl lose what comes before they have made their streams.
		{"", "in one\n", 0, []string{"exec", "one", "--", "sh", "-c", "sleep 0.5; echo in $MACHINE"}},
		{"", "command terminated with exit code 4\n", 4, []string{"exec", "one", "--", "sh", "-c", "sleep 0.5; exit 4"}},
		{"passed on", "passed on", 0, []string{"exec", "-i", "one", "--", "sh", "-c", "sleep 0.5; cat"}},
		{"", "machine.example.com/one\n", 0, []string{"get", "machines", "-o", "name"}},
	} {
		if out, status := r.command(kubectl, c.input, c.args...); out != c.want || status != c.status {
			t.Errorf("%s: status %d, %q; want %d, %q", c.args, status, out, c.status, c.want)
		}
	}
	r.terminal(kubectl)
	r.followed(kubectl)
	r.forwarded(kubectl)
}

// terminal runs a command in machine one, with a terminal that has a size and an input.
func (r *running) terminal(program string) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	script := `until [ "$(stty size)" = "40 100" ]; do sleep 0.05; done; read -r line; echo "got $line"; exit 3`
	cmd := exec.CommandContext(ctx, program, "exec", "-it", "one", "--", "sh", "-c", script)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+r.kubeconfig)
	screen, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 40, Cols: 100})
	if err != nil {
		r.t.Fatal(err)
	}
	defer func() { _ = screen.Close() }() // it is read to its end
	if _, err := io.WriteString(screen, "this\n"); err != nil {
		r.t.Fatal(err)
	}
	out, _ := io.ReadAll(screen) // a terminal without processes is an error on Linux
	if _ = cmd.Wait(); cmd.ProcessState.ExitCode() != 3 || !strings.Contains(string(out), "got this\r\n") {
		r.t.Errorf("exec -it: status %d, %q", cmd.ProcessState.ExitCode(), out)
	}
}

// TestMachinesTravelAsProtobuf to and from clients whose types have the form: the controller of
// the server itself, and all that use package v1.
func TestMachinesTravelAsProtobuf(t *testing.T) {
	t.Parallel()
	r := start(t, t.TempDir())
	m := r.machine("one", "exec sleep 600", 8080)
	q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.config.Host+"/apis/example.com/v1/namespaces/default/machines/one", nil)
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("Accept", "application/vnd.kubernetes.protobuf")
	web, err := rest.HTTPClientFor(r.config)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := web.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }() // it was only read
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK || answer.Header.Get("Content-Type") != "application/vnd.kubernetes.protobuf" {
		t.Fatalf("%d %s: %v", answer.StatusCode, answer.Header, err)
	}
	got := &v1.Machine{}
	if err := codec.Decode(codec.Protobuf, text, got, v1.GroupVersion().WithKind("Machine")); err != nil {
		t.Fatal(err)
	}
	if got.UID != m.UID || got.Spec.Ports[0] != 8080 || len(got.Spec.Command) != 3 || *got.Spec.TerminationGracePeriodSeconds != 30 || got.Status.PID != m.Status.PID {
		t.Errorf("in protobuf %+v, want %+v", got, m)
	}
}

// TestLogFollowsUntilTheMachineEnds, whose deletion sends SIGTERM and waits for it.
func TestLogFollowsUntilTheMachineEnds(t *testing.T) {
	t.Parallel()
	start(t, t.TempDir()).followed(plugin(t))
}

// followed follows the log of a machine while it is deleted.
func (r *running) followed(program string) {
	r.t.Helper()
	m := r.machine("ending", "exec 2>/dev/null; trap 'echo bye; exit 3' TERM; echo ready; while :; do sleep 0.05; done")
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "logs", "-f", m.Name)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+r.kubeconfig)
	out, err := cmd.StdoutPipe()
	if err != nil {
		r.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	log := bufio.NewReader(out)
	if line, err := log.ReadString('\n'); err != nil || line != "ready\n" {
		r.t.Errorf("the log begins with %q: %v", line, err)
	}
	if err := r.Delete(r.t.Context(), m); err != nil {
		r.t.Fatal(err)
	}
	end, err := io.ReadAll(log)
	if err = errors.Join(err, cmd.Wait()); err != nil || string(end) != "bye\n" {
		r.t.Errorf("the log ends with %q: %v", end, err)
	}
	r.until("the machine is still there", func() bool { return r.gone(m) })
}

// TestDeletionTakesItsPhases has a process that ignores SIGTERM: it is killed when the grace
// period is over, and the object goes then.
func TestDeletionTakesItsPhases(t *testing.T) {
	t.Parallel()
	r := start(t, t.TempDir())
	m := r.machine("one", "trap '' TERM; while :; do sleep 0.05; done")
	phases := r.phases(m)
	if err := r.Delete(t.Context(), m, client.GracePeriodSeconds(1)); err != nil {
		t.Fatal(err)
	}
	if err := r.Get(t.Context(), client.ObjectKeyFromObject(m), m); err != nil || m.DeletionTimestamp == nil || *m.DeletionGracePeriodSeconds != 1 {
		t.Fatalf("while it is being deleted: %v, %v", m.DeletionTimestamp, err)
	}
	if got, want := phases(), []string{v1.Running, v1.Stopping, v1.Killed}; !slices.Equal(got, want) {
		t.Errorf("the phases are %q, want %q", got, want)
	}
	r.until("the machine is still there", func() bool { return r.gone(m) })
}

// phases watches a machine, and returns a function with its phases until it is gone.
func (r *running) phases(m *v1.Machine) func() []string {
	r.t.Helper()
	q, err := http.NewRequestWithContext(r.t.Context(), http.MethodGet, r.config.Host+"/apis/example.com/v1/namespaces/default/machines?watch=true&fieldSelector=metadata.name%3D"+m.Name, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	web, err := rest.HTTPClientFor(r.config)
	if err != nil {
		r.t.Fatal(err)
	}
	answer, err := web.Do(q)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = answer.Body.Close() }) // it was only read
	return func() (out []string) {
		events := json.NewDecoder(answer.Body)
		for {
			var event struct {
				Type   string
				Object v1.Machine
			}
			if err := events.Decode(&event); err != nil {
				r.t.Fatal(err)
			}
			if event.Type == "DELETED" {
				return slices.Compact(out)
			}
			out = append(out, event.Object.Status.Phase)
		}
	}
}

// TestMachineEndsThoughItsChildDoesNot: its output is not waited for, and it is killed.
func TestMachineEndsThoughItsChildDoesNot(t *testing.T) {
	t.Parallel()
	r := start(t, t.TempDir())
	m := r.machine("one", "sleep 600 & echo $!; exec sleep 0.2")
	r.phase(m, v1.Exited)
	child, _ := r.command(plugin(t), "", "logs", "one")
	pid, err := strconv.Atoi(strings.TrimSpace(child))
	if err != nil {
		t.Fatal(err)
	}
	r.until("the child runs on", func() bool {
		state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return err != nil || strings.Contains(string(state), ") Z ") // what became its parent may not have waited for it
	})
}

// TestLogOfOneLongLine is bounded in memory, and as it was written.
func TestLogOfOneLongLine(t *testing.T) {
	t.Parallel()
	j := newJournal()
	chunk := strings.Repeat("x", 10_000)
	for range 50 {
		if _, err := io.WriteString(j, chunk); err != nil {
			t.Fatal(err)
		}
		if len(j.partial) >= maxLine {
			t.Fatalf("%d bytes of a line are held back", len(j.partial))
		}
	}
	j.end()
	text, err := io.ReadAll(j.open(t.Context(), stream.LogOptions{Tail: -1}))
	if err != nil || string(text) != strings.Repeat(chunk, 50)+"\n" {
		t.Errorf("%d bytes: %v", len(text), err)
	}
}

// TestMachinesAreStartedAgainWithTheServer, whose objects are in the database.
func TestMachinesAreStartedAgainWithTheServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := start(t, dir)
	first := r.machine("one", "exec sleep 600")
	r.stop()
	r = start(t, dir)
	second := &v1.Machine{}
	r.until("the machine has the process of the first server", func() bool {
		if err := r.Get(t.Context(), client.ObjectKeyFromObject(first), second); err != nil {
			t.Fatal(err)
		}
		return second.Status.Phase == v1.Running && second.Status.PID != first.Status.PID
	})
	if second.UID != first.UID {
		t.Errorf("the machine is %s, was %s", second.UID, first.UID)
	}
}

// forward forwards a port of the computer to one of a machine, and returns its address.
func (r *running) forward(program, name string, port int) string {
	r.t.Helper()
	ctx, cancel := context.WithCancel(r.t.Context())
	cmd := exec.CommandContext(ctx, program, "port-forward", name, fmt.Sprintf("0:%d", port))
	cmd.Env = append(os.Environ(), "KUBECONFIG="+r.kubeconfig)
	out, err := cmd.StdoutPipe()
	if err != nil {
		r.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		cancel()
		_ = cmd.Wait() // it was killed
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	address, _, found := strings.Cut(strings.TrimPrefix(line, "Forwarding from "), " -> ")
	if err != nil || !found {
		r.t.Fatalf("port-forward: %q: %v", line, err)
	}
	return address
}

func TestPortsOfTheSpecAreForwardedAndNoOthers(t *testing.T) {
	t.Parallel()
	start(t, t.TempDir()).forwarded(plugin(t))
}

// forwarded asks a web server through forwarded ports, which one machine has in its spec.
func (r *running) forwarded(program string) {
	t := r.t
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	web := http.Server{ReadHeaderTimeout: patience, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "served") })}
	go func() { _ = web.Serve(listener) }()
	t.Cleanup(func() { _ = web.Close() })
	port := listener.Addr().(*net.TCPAddr).Port
	r.machine("open", "exec sleep 600", int32(port)) // a port
	r.machine("closed", "exec sleep 600")
	get := func(name string) (string, error) {
		q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+r.forward(program, name, port), nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(q)
		if err != nil {
			return "", err
		}
		defer func() { _ = answer.Body.Close() }() // it was only read
		text, err := io.ReadAll(answer.Body)
		return string(text), err
	}
	if got, err := get("open"); err != nil || got != "served" {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := get("closed"); err == nil {
		t.Errorf("a port that the spec has not: %q", got)
	}
}

// TestMachinesBehindSteer does with the plugin what users do with Pods: the requests, and the
// upgrades of their connections, are passed on by a control plane of Steer.
func TestMachinesBehindSteer(t *testing.T) {
	t.Parallel()
	plane, err := controlplane.New(controlplane.Options{Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	if err := plane.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := plane.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	kubeconfig, err := plane.Kubeconfig()
	if err != nil {
		t.Fatal(err)
	}
	cluster, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	r := behind(t, cluster)
	program := plugin(t)
	r.reached(program)
	r.terminal(program)
	r.followed(program)
	r.forwarded(program)
}
