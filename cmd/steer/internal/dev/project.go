// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package dev runs operators while they are written: the command steer dev.
package dev

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/client/manifest"
	"github.com/steer-dev/steer/controlplane"
	"github.com/steer-dev/steer/controlplane/webhookclient"
	"github.com/steer-dev/steer/controlplane/workloads"
	"github.com/steer-dev/steer/generate"
	"github.com/steer-dev/steer/scaffold"
	"github.com/steer-dev/steer/storage/local"
)

const (
	// watchSources is the shortest time between two looks at the sources.
	watchSources = 100 * time.Millisecond
	// stopOperator is how long the operator may take to end before it is killed.
	stopOperator = 5 * time.Second
)

// Options are those of [Project].
type Options struct {
	// Dir is the folder of the project.
	Dir string
	// Out and Errs get what the operator prints; Errs gets the lines of the command, too.
	Out, Errs io.Writer
	// Cache is the folder with the records of the generator's runs.
	Cache string
	// Version of Steer.
	Version string
}

// loop runs the operator of a project, again and again.
type loop struct {
	Options
	kubeconfig string
	client     client.Client
	fresh      bool              // the control plane has no data of an earlier run
	applied    map[string]string // by folder, the manifests as they were applied last
	webhooks   *localWebhooks
	child      *exec.Cmd
	ended      chan string // gets how child ended
}

// Project runs the operator of a project until ctx ends. An error that wraps
// [scaffold.ErrUsage] says that the folder has no project.
func Project(ctx context.Context, o Options) (err error) {
	project, err := scaffold.ReadProject(o.Dir)
	if err != nil {
		return err
	}
	state := filepath.Join(o.Dir, StateFolder)
	data := filepath.Join(state, "data")
	_, err = os.Stat(data)
	l := &loop{Options: o, kubeconfig: filepath.Join(state, "kubeconfig"), fresh: err != nil, applied: map[string]string{}}
	if err := MakeState(o.Dir); err != nil {
		return err
	}
	address, err := freeAddress()
	if err != nil {
		return err
	}
	l.webhooks = newLocalWebhooks(address)
	plane, stop, err := StartPlane(ctx, controlplane.Options{
		Listen: l.address(), DataDir: data, Version: o.Version, Workloads: &workloads.Options{},
		Webhooks: webhookclient.Options{Resolve: l.webhooks.resolve},
	})
	var inUse *local.InUseError
	if errors.As(err, &inUse) {
		return fmt.Errorf("dev: another steer dev runs in this project: stop that one")
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	if err := plane.WriteKubeconfig(l.kubeconfig); err != nil {
		return err
	}
	if l.client, err = client.New(plane.RESTConfig(), client.Options{FieldOwner: "steer-dev"}); err != nil {
		return err
	}
	fmt.Fprintf(o.Errs, "export KUBECONFIG=%s # %s, Kubernetes 1.36\n", l.kubeconfig, project.Name)
	return l.run(ctx)
}

// StateFolder has what commands keep in a project, below its folder.
const StateFolder = ".steer"

// MakeState makes the [StateFolder] of a project. Its kubeconfig and keys do not belong
// into a repository.
func MakeState(dir string) error {
	state := filepath.Join(dir, StateFolder)
	if err := os.MkdirAll(state, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(state, ".gitignore"), []byte("*\n"), 0o644)
}

// address is that of the kubeconfig of an earlier run, if it is free.
func (l *loop) address() string {
	config, err := clientcmd.LoadFromFile(l.kubeconfig)
	if err != nil {
		return "127.0.0.1:0"
	}
	if about, ok := config.Contexts[config.CurrentContext]; ok && config.Clusters[about.Cluster] != nil {
		server, err := url.Parse(config.Clusters[about.Cluster].Server)
		if err == nil && isFree(server.Host) {
			return server.Host
		}
	}
	return "127.0.0.1:0"
}

// isFree reports whether the address can be listened on.
func isFree(address string) bool {
	listener, err := net.Listen("tcp", address)
	return err == nil && listener.Close() == nil
}

// run generates, builds and starts until ctx ends.
func (l *loop) run(ctx context.Context) error {
	defer l.stop()
	for {
		seen := l.sources()
		if err := l.cycle(ctx); err != nil && ctx.Err() == nil {
			l.explain(err)
		}
		for changed := false; !changed; {
			select {
			case <-ctx.Done():
				return nil
			case how := <-l.ended:
				l.child, l.ended = nil, nil
				fmt.Fprintf(l.Errs, "steer: the operator ended (%s); it is started again when a file is saved\n", how)
			case <-time.After(max(watchSources, 20*seen.took)):
				now := l.sources()
				changed = now.sum != seen.sum
			}
		}
	}
}

func endOf(err error) string {
	if err == nil {
		return "exit status 0"
	}
	return err.Error()
}

// cycle brings what runs to what the sources say. On an error what ran before still
// runs.
func (l *loop) cycle(ctx context.Context) error {
	began := time.Now()
	if err := l.generate(ctx); err != nil {
		return err
	}
	generated := time.Now()
	if err := l.build(ctx); err != nil {
		return err
	}
	built := time.Now()
	if err := l.define(ctx); err != nil {
		return err
	}
	l.stop()
	if err := l.start(); err != nil {
		return err
	}
	if err := l.apply(ctx); err != nil {
		return err
	}
	fmt.Fprintf(l.Errs, "steer: generated in %s, built in %s, the operator runs\n",
		generated.Sub(began).Round(time.Millisecond), built.Sub(generated).Round(time.Millisecond))
	return nil
}

// explain prints why the operator was not started anew.
func (l *loop) explain(err error) {
	var wrong *generate.SourceError
	if errors.As(err, &wrong) {
		for _, problem := range wrong.Problems {
			fmt.Fprintln(l.Errs, strings.TrimPrefix(problem.String(), l.Dir+string(filepath.Separator)))
		}
	}
	what := "nothing runs"
	if l.child != nil {
		what = "what runs goes on"
	}
	fmt.Fprintf(l.Errs, "steer: %v; %s until a file is saved\n", err, what)
}

func (l *loop) generate(ctx context.Context) error {
	request, err := generate.Parse(nil, generate.Steer)
	if err != nil {
		return err
	}
	request.Dir, request.Cache = l.Dir, l.Cache
	if request.Unchanged() {
		return nil
	}
	result, err := generate.Run(ctx, request)
	if err != nil {
		return err
	}
	changes, err := result.Changes()
	if err != nil {
		return err
	}
	if err := generate.Apply(changes); err != nil {
		return err
	}
	request.Remember(result)
	return nil
}

// binary is the program of the operator.
func (l *loop) binary() string {
	name := "operator"
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	return filepath.Join(l.Dir, StateFolder, "bin", name)
}

// build builds beside the binary that runs, which cannot be overwritten everywhere.
// Without the tables of debuggers a build takes two thirds of the time.
func (l *loop) build(ctx context.Context) error {
	next := l.binary() + ".next"
	build := exec.CommandContext(ctx, "go", "build", "-ldflags=-w", "-o", next, "./cmd")
	build.Dir, build.Stdout, build.Stderr = l.Dir, l.Errs, l.Errs
	if err := build.Run(); err != nil {
		return fmt.Errorf("go build ./cmd: %w", err)
	}
	return nil
}

// manifests reads a folder of manifests, unless it is as it was applied last; a folder
// that is not there is empty.
func (l *loop) manifests(folder string) (objects []manifest.Object, changed bool, err error) {
	dir := filepath.Join(l.Dir, filepath.FromSlash(folder))
	var text []byte
	if _, err := os.Stat(dir); err == nil {
		if text, err = contents(dir); err != nil {
			return nil, false, err
		}
		if objects, err = manifest.Read(dir); err != nil {
			return nil, false, err
		}
	}
	last, seen := l.applied[folder]
	l.applied[folder] = string(text)
	return objects, !seen || last != string(text), nil
}

// define brings the CRDs to the control plane.
func (l *loop) define(ctx context.Context) error {
	const folder = "config/crd/bases"
	objects, changed, err := l.manifests(folder)
	if err == nil && changed {
		err = manifest.Apply(ctx, l.client, "", objects)
	}
	if err != nil {
		delete(l.applied, folder)
	}
	return err
}

// apply brings what needs the operator to the control plane: the webhooks, and the
// samples if it is new.
func (l *loop) apply(ctx context.Context) error {
	const folder = "config/webhook"
	objects, changed, err := l.manifests(folder)
	if err == nil && len(objects) > 0 {
		waiting, cancel := context.WithTimeout(ctx, awaitWebhooks)
		err = l.webhooks.await(waiting)
		cancel()
	}
	if err == nil && changed {
		err = configureWebhooks(ctx, l.client, objects)
	}
	if err != nil {
		delete(l.applied, folder)
		return err
	}
	if !l.fresh {
		return nil
	}
	samples, _, err := l.manifests("config/samples")
	if err == nil {
		err = manifest.Apply(ctx, l.client, "", samples)
	}
	l.fresh = err != nil
	return err
}

// contents are those of all files of a folder.
func contents(folder string) ([]byte, error) {
	names, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	var all []byte
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(folder, name.Name()))
		if err != nil {
			return nil, err
		}
		all = append(append(all, name.Name()...), text...)
	}
	return all, nil
}

// start starts the operator that was built last.
func (l *loop) start() error {
	if err := os.Rename(l.binary()+".next", l.binary()); err != nil {
		return err
	}
	child := exec.Command(l.binary(), "--zap-devel", "--health-probe-bind-address=0", "--webhook-port="+l.webhooks.port())
	child.Dir, child.Stdout, child.Stderr, child.SysProcAttr = l.Dir, l.Out, l.Errs, ownGroup()
	child.Env = append(os.Environ(), "KUBECONFIG="+l.kubeconfig)
	if err := child.Start(); err != nil {
		return err
	}
	ended := make(chan string, 1)
	go func() { ended <- endOf(child.Wait()) }()
	l.child, l.ended = child, ended
	return nil
}

// stop ends the operator, if it runs, and waits for it.
func (l *loop) stop() {
	if l.child == nil {
		return
	}
	signalGroup(l.child.Process, syscall.SIGTERM)
	select {
	case <-l.ended:
	case <-time.After(stopOperator):
		_ = l.child.Process.Kill() // it has ended otherwise
		<-l.ended
	}
	killGroup(l.child.Process) // what it started
	l.child, l.ended = nil, nil
}
