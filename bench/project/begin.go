// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package project

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const kind = "--group webapp --version v1 --kind Guestbook"

// longest is how long a command may take.
const longest = 20 * time.Minute

// steer begins a project with Steer. Its control plane is part of it.
func (b *bench) steer(ctx context.Context) (Result, error) {
	r := &runner{bench: b, result: Result{Tool: "steer"}, dir: b.dir("steer")}
	if err := r.begin(); err != nil {
		return r.result, err
	}
	defer r.end()
	err := r.commands(ctx, "steer init --domain example.com", "go tool steer create api "+kind)
	if err == nil {
		err = r.until(ctx, "go tool steer dev", func() (bool, error) {
			status, _ := condition(ctx, filepath.Join(r.dir, ".steer", "kubeconfig"))
			return status == "True", nil
		}, func() error { return r.save(ctx) })
	}
	if err == nil {
		err = r.count(ctx, "go tool steer create webhook "+kind+" --defaulting --programmatic-validation")
	}
	return r.result, err
}

// kubebuilder begins a project with kubebuilder, or operator-sdk, whose commands and files
// are the same. A control plane is there before; kubebuilder's Reconcile does nothing, so
// that a line which is logged shows that it was called.
func (b *bench) kubebuilder(ctx context.Context, tool string) (Result, error) {
	r := &runner{bench: b, result: Result{Tool: tool}, dir: b.dir(tool)}
	if err := r.begin(); err != nil {
		return r.result, err
	}
	defer r.end()
	stop, err := b.controlPlane(ctx, r)
	if err != nil {
		return r.result, err
	}
	defer stop()
	reconciled := func() (bool, error) { return strings.Contains(r.log.String(), "guestbook is reconciled"), nil }
	err = r.commands(ctx,
		tool+" init --domain example.com --repo example.com/guestbook",
		tool+" create api "+kind+" --resource --controller",
	)
	if err == nil {
		err = r.edit("internal/controller/guestbook_controller.go", "_ = logf.FromContext(ctx)", `logf.FromContext(ctx).Info("guestbook is reconciled")`)
	}
	if err == nil { // the API server refuses the sample without a field
		err = r.edit("config/samples/webapp_v1_guestbook.yaml", "# TODO(user): Add fields here", "foo: bar")
	}
	if err == nil {
		err = r.commands(ctx, "make install", "kubectl apply -k config/samples")
	}
	if err == nil {
		err = r.until(ctx, "make run", reconciled, func() error { return nil })
	}
	if err == nil {
		err = r.count(ctx, tool+" create webhook "+kind+" --defaulting --programmatic-validation")
	}
	return r.result, err
}

// controlPlane runs one for a project, whose commands find it by KUBECONFIG.
func (b *bench) controlPlane(ctx context.Context, r *runner) (stop func(), err error) {
	kubeconfig := filepath.Join(filepath.Dir(r.dir), "kubeconfig")
	cmd := exec.CommandContext(ctx, filepath.Join(b.bin, "steer"), "up", "--in-memory", "--listen", "127.0.0.1:0", "--kubeconfig", kubeconfig)
	cmd.Stdout, cmd.Stderr = b.Log, b.Log
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	stop = func() {
		_ = cmd.Process.Signal(os.Interrupt) // it has ended otherwise
		_ = cmd.Wait()
	}
	r.env = append(r.env, "KUBECONFIG="+kubeconfig)
	return stop, poll(ctx, time.Minute, func() (bool, error) {
		_, err := os.Stat(kubeconfig)
		return err == nil, nil
	})
}

// runner runs the commands of one project.
type runner struct {
	*bench
	result Result
	dir    string
	env    []string
	log    text // of the command that runs
}

// text is written and read by several goroutines.
type text struct {
	mu sync.Mutex
	b  strings.Builder
}

func (t *text) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.b.Write(p)
}

func (t *text) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.b.String()
}

// begin makes the folder of the project, and caches of its own.
func (r *runner) begin() error {
	r.env = append(os.Environ(), "PATH="+r.bin+string(os.PathListSeparator)+os.Getenv("PATH"), "GOFLAGS=-modcacherw", "GOWORK=off", "NO_COLOR=1")
	if r.Cold {
		cache := filepath.Join(filepath.Dir(r.dir), "cache")
		r.env = append(r.env, "GOCACHE="+filepath.Join(cache, "build"), "GOMODCACHE="+filepath.Join(cache, "modules"))
	}
	return os.MkdirAll(r.dir, 0o755)
}

// end removes the caches, which are large.
func (r *runner) end() { _ = removeAll(filepath.Join(filepath.Dir(r.dir), "cache")) }

// command is a shell's, in a process group of its own.
func (r *runner) command(ctx context.Context, line string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "sh", "-c", line)
	cmd.Dir, cmd.Env = r.dir, r.env
	cmd.Stdout = io.MultiWriter(r.Log, &r.log)
	cmd.Stderr = cmd.Stdout
	asGroup(cmd)
	cmd.WaitDelay = 30 * time.Second
	return cmd
}

// commands runs commands one after the other.
func (r *runner) commands(ctx context.Context, lines ...string) error {
	for _, line := range lines {
		fmt.Fprintf(r.Log, "%s $ %s\n", r.result.Tool, line)
		ctx, cancel := context.WithTimeout(ctx, longest)
		start := time.Now()
		err := r.command(ctx, line).Run()
		cancel()
		if err != nil {
			return fmt.Errorf("%s: %w: %s", line, err, lastLines([]byte(r.log.String())))
		}
		r.result.Steps = append(r.result.Steps, Step{Command: line, Took: time.Since(start)})
	}
	return nil
}

// until runs a command that does not end until something has happened, does something
// else meanwhile, which does not count, and ends it.
func (r *runner) until(ctx context.Context, line string, happened func() (bool, error), meanwhile func() error) error {
	fmt.Fprintf(r.Log, "%s $ %s\n", r.result.Tool, line)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	start := time.Now()
	cmd := r.command(ctx, line)
	input, err := cmd.StdinPipe() // open, as a terminal is
	if err != nil {
		return err
	}
	defer input.Close()
	if err := cmd.Start(); err != nil {
		return err
	}
	err = poll(ctx, longest, happened)
	took := time.Since(start)
	if err == nil {
		err = meanwhile()
	}
	cancel()
	_ = cmd.Wait() // with the signal that cancel sends
	if err != nil {
		return fmt.Errorf("%s: %w: %s", line, err, lastLines([]byte(r.log.String())))
	}
	r.result.Steps = append(r.result.Steps, Step{Command: line, Took: took})
	return nil
}

// edit replaces a text in a file.
func (r *runner) edit(file, before, after string) error {
	name := filepath.Join(r.dir, file)
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	if strings.Count(string(data), before) != 1 {
		return fmt.Errorf("%s has not %q once", file, before)
	}
	r.result.Steps = append(r.result.Steps, Step{Command: "edit " + file + ": " + after, Edit: true})
	return os.WriteFile(name, []byte(strings.Replace(string(data), before, after, 1)), 0o644)
}

// count counts the files before and after a command that adds webhooks, which is not
// measured.
func (r *runner) count(ctx context.Context, webhooks string) (err error) {
	if r.result.Alone, err = owned(r.dir); err != nil {
		return err
	}
	steps := r.result.Steps
	defer func() { r.result.Steps = steps }()
	if err := r.commands(ctx, webhooks); err != nil {
		return err
	}
	r.result.WithWebhooks, err = owned(r.dir)
	return err
}

// saves is how often the reconciler is saved.
const saves = 10

// save saves the reconciler with another message of its condition, again and again, while
// steer dev runs, and measures how long it takes until the sample has the message.
func (r *runner) save(ctx context.Context) error {
	file := filepath.Join(r.dir, "internal", "controller", "guestbook_controller.go")
	code, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	const message = "the cluster is as the spec says"
	if strings.Count(string(code), message) != 1 {
		return fmt.Errorf("%s has not %q once", file, message)
	}
	for n := range saves {
		now := fmt.Sprint("save ", n)
		start := time.Now()
		if err := os.WriteFile(file, []byte(strings.Replace(string(code), message, now, 1)), 0o644); err != nil {
			return err
		}
		if err := poll(ctx, time.Minute, func() (bool, error) {
			_, said := condition(ctx, filepath.Join(r.dir, ".steer", "kubeconfig"))
			return said == now, nil
		}); err != nil {
			return fmt.Errorf("%s: %w", now, err)
		}
		r.result.Saves = append(r.result.Saves, time.Since(start))
	}
	return os.WriteFile(file, code, 0o644)
}

// condition is the condition Ready of the sample, which the reconciler has written; empty
// where a control plane does not answer yet.
func condition(ctx context.Context, kubeconfig string) (status, message string) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return "", ""
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return "", ""
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+"/apis/webapp.example.com/v1/namespaces/default/guestbooks/guestbook-sample", http.NoBody)
	if err != nil {
		return "", ""
	}
	answer, err := client.Do(request)
	if err != nil {
		return "", ""
	}
	defer answer.Body.Close()
	var sample struct {
		Status struct {
			Conditions []struct{ Type, Status, Message string }
		}
	}
	if err := json.NewDecoder(answer.Body).Decode(&sample); err != nil {
		return "", ""
	}
	for _, c := range sample.Status.Conditions {
		if c.Type == "Ready" {
			return c.Status, c.Message
		}
	}
	return "", ""
}

// poll asks until it is so.
func poll(ctx context.Context, within time.Duration, so func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if done, err := so(); done || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}
