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
	"strings"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/client/manifest"
	"github.com/steer-dev/steer/cmd/steer/internal/rights"
	"github.com/steer-dev/steer/controlplane"
	"github.com/steer-dev/steer/controlplane/webhookclient"
	"github.com/steer-dev/steer/controlplane/workloads"
	"github.com/steer-dev/steer/generate"
	"github.com/steer-dev/steer/scaffold"
	"github.com/steer-dev/steer/storage/local"
	"github.com/steer-dev/steer/trace"
)

// watchSources is the shortest time between two looks at the sources.
const watchSources = 100 * time.Millisecond

// Options are those of [Project].
type Options struct {
	// Dir is the folder of the project.
	Dir string
	// Out and Errs get what the operator prints; Errs gets the lines of the command, too.
	Out, Errs io.Writer
	// In is what the operator reads; nil: nothing. It gets nothing while there is a screen.
	In *os.File
	// Cache is the folder with the records of the generator's runs.
	Cache string
	// Version of Steer.
	Version string
	// Debug is the address at which the operator waits for debuggers of Go; empty runs it
	// without.
	Debug string
	// Terminal shows a screen, and takes keys, in place of Out and Errs. nil: none.
	Terminal *Terminal
}

// loop runs the operator of a project, again and again.
type loop struct {
	Options
	project    *scaffold.Project
	kubeconfig string // of an administrator
	operators  string // kubeconfig that the operator gets
	client     client.Client
	fresh      bool              // the control plane has no data of an earlier run
	applied    map[string]string // by folder, the manifests as they were applied last
	webhooks   *localWebhooks
	child      *exec.Cmd
	ended      chan string // gets how child ended
	advice     *advice
	live       *live     // nil without a terminal
	keys       chan byte // r and d
	unfollow   func()    // ends the feed of child; nil while there is none
}

// Project runs the operator of a project until ctx ends. An error that wraps
// [scaffold.ErrUsage] says that the folder has no project.
func Project(ctx context.Context, o Options) (err error) {
	project, err := scaffold.ReadProject(o.Dir)
	if err != nil {
		return err
	}
	if o.Debug != "" {
		if _, err := findDebugger(ctx, o.Dir); err != nil {
			return err
		}
	}
	state := filepath.Join(o.Dir, StateFolder)
	data := filepath.Join(state, "data")
	_, err = os.Stat(data)
	l := &loop{
		Options: o, project: project, fresh: err != nil, applied: map[string]string{},
		kubeconfig: filepath.Join(state, "kubeconfig"), operators: filepath.Join(state, "operator.kubeconfig"),
	}
	l.advice = &advice{place: func(kind string) string { return l.place(ctx, kind) }, say: l.lacks}
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
	if o.Terminal != nil {
		return l.onScreen(ctx)
	}
	fmt.Fprintf(o.Errs, "export KUBECONFIG=%s # %s, Kubernetes 1.36\n", l.kubeconfig, project.Name)
	return l.run(ctx)
}

// onScreen is run with a screen.
func (l *loop) onScreen(ctx context.Context) (err error) {
	if l.live, err = newLive(screen{Project: l.project.Name, Server: "Kubernetes 1.36", Kubeconfig: StateFolder + "/kubeconfig"}); err != nil {
		return err
	}
	ctx, quit := context.WithCancel(ctx)
	defer quit()
	authors := &authors{client: l.client}
	l.live.author = func(c trace.Cause) string { return authors.of(ctx, c) }
	l.Out, l.Errs, l.keys = l.live.log(), l.live.log(), make(chan byte, 1)
	restore, err := l.live.show(ctx, l.Terminal, l.keys, quit)
	if err != nil {
		return err
	}
	defer restore()
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
			case key := <-l.keys:
				if key == 'd' {
					l.toggleDebug()
					changed = true
				} else if err := l.restart(ctx); err != nil {
					l.explain(err)
				}
			case how := <-l.ended:
				l.child, l.ended = nil, nil
				l.status("the operator ended (" + how + ")")
				fmt.Fprintf(l.Errs, "steer: the operator ended (%s); it is started again when a file is saved\n", how)
			case <-time.After(max(watchSources, 20*seen.took)):
				now := l.sources()
				changed = now.sum != seen.sum
			}
		}
	}
}

// status shows what is done now.
func (l *loop) status(text string) {
	if l.live != nil {
		l.live.update(func(s *screen) { s.Status, s.Debugging = text, l.Debug != "" })
	}
}

// lacks says which right the operator lacks, and what to do.
func (l *loop) lacks(right rights.Right, text string) {
	if l.live != nil {
		l.live.lack(right, text)
	}
	fmt.Fprintln(l.Errs, "steer: the operator "+text)
}

// place is where a marker for the reconciler of a kind belongs: FILE:LINE.
func (l *loop) place(ctx context.Context, kind string) string {
	sources, err := rights.Read(ctx, l.Dir, l.project)
	if err != nil {
		return "" // the sources are being changed
	}
	return sources.Place(kind)
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
	l.status("generating")
	if err := l.generate(ctx); err != nil {
		return err
	}
	generated := time.Now()
	l.status("building")
	if err := l.build(ctx); err != nil {
		return err
	}
	built := time.Now()
	if err := l.define(ctx); err != nil {
		return err
	}
	if err := l.authorize(ctx); err != nil {
		return err
	}
	l.status("restarting")
	l.stop()
	if err := os.Rename(l.binary()+".next", l.binary()); err != nil {
		return err
	}
	if err := l.start(ctx); err != nil {
		return err
	}
	if err := l.apply(ctx); err != nil {
		return err
	}
	l.status("build " + brief(built.Sub(generated)))
	fmt.Fprintf(l.Errs, "steer: generated in %s, built in %s, the operator runs\n",
		generated.Sub(began).Round(time.Millisecond), built.Sub(generated).Round(time.Millisecond))
	return nil
}

// explain prints why the operator was not started anew.
func (l *loop) explain(err error) {
	var wrong *generate.SourceError
	var told []string
	if errors.As(err, &wrong) {
		for _, problem := range wrong.Problems {
			told = append(told, strings.TrimPrefix(problem.String(), l.Dir+string(filepath.Separator)))
			fmt.Fprintln(l.Errs, told[len(told)-1])
		}
	}
	if l.live != nil {
		var build *buildError
		if errors.As(err, &build) {
			told = build.lines
		}
		l.live.fail(append(told, err.Error()))
	}
	what := "nothing runs"
	if l.child != nil {
		what = "what runs goes on"
	}
	l.status(what + " until a file is saved")
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

// manifests reads a file or folder of manifests, unless it is as it was applied last; one
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
		waiting, cancel := context.WithTimeout(ctx, l.patience())
		err = l.webhooks.await(waiting)
		cancel()
	}
	if err == nil && changed {
		if l.Debug != "" {
			bePatient(objects)
		}
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

// contents are those of a file, or of all files of a folder.
func contents(folder string) ([]byte, error) {
	if info, err := os.Stat(folder); err == nil && !info.IsDir() {
		return os.ReadFile(folder)
	}
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
