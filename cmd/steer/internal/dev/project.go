// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package dev runs operators while they are written: the command steer dev.
package dev

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/client/manifest"
	"github.com/steer-dev/steer/cmd/steer/internal/explain"
	"github.com/steer-dev/steer/cmd/steer/internal/feed"
	"github.com/steer-dev/steer/cmd/steer/internal/rights"
	"github.com/steer-dev/steer/cmd/steer/internal/screen"
	"github.com/steer-dev/steer/generate"
	"github.com/steer-dev/steer/internal/children"
	"github.com/steer-dev/steer/scaffold/project"
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
	// Keys is the folder outside of all projects with the keys of their control planes. Empty:
	// they are new at each start.
	Keys string
	// Version of Steer.
	Version string
	// Debug is the address at which the operator waits for debuggers of Go; empty runs it
	// without.
	Debug string
	// Terminal shows a screen, and takes keys, in place of Out and Errs. nil: none.
	Terminal *Terminal
	// Remote is a cluster to run against in place of a control plane of its own. nil: none.
	Remote *Remote
}

// loop runs the operator of a project, again and again.
type loop struct {
	Options
	project  *project.Project
	target   target
	config   *rest.Config      // of an administrator
	client   client.Client     // by config
	applied  map[string]string // by folder, the manifests as they were applied last
	child    *children.Child
	ended    chan string // gets how child ended
	advice   *advice
	live     *live     // nil without a terminal
	keys     chan byte // r and d
	unfollow func()    // ends the feed of child; nil while there is none
}

// target is where the operator of a project runs.
type target interface {
	// prepare brings it what the operator needs before it starts.
	prepare(ctx context.Context) error
	// complete brings it what needs the operator.
	complete(ctx context.Context) error
	// late brings it what could not come with that.
	late(ctx context.Context) error
	// arguments and environment are those of the operator.
	arguments() []string
	environment() []string
	// folder is where the binary of the operator is kept.
	folder() string
}

// Project runs the operator of a project until ctx ends. An error that wraps
// [project.ErrUsage] says that the folder has no project.
func Project(ctx context.Context, o Options) error {
	p, err := project.Read(o.Dir)
	if err != nil {
		return err
	}
	if o.Debug != "" {
		if _, err := findDebugger(ctx, o.Dir); err != nil {
			return err
		}
	}
	if err := MakeState(o.Dir); err != nil {
		return err
	}
	l := &loop{Options: o, project: p, applied: map[string]string{}}
	l.advice = &advice{place: func(kind string) string { return l.place(ctx, kind) }, say: l.lacks}
	if o.Remote != nil {
		return l.onRemote(ctx)
	}
	return l.onOwn(ctx)
}

// show prints a line and runs the loop, with a screen if there is a terminal; its log has
// the line then.
func (l *loop) show(ctx context.Context, server, kubeconfig, line string) (err error) {
	if l.Terminal == nil {
		url, stop, err := l.servePage(ctx)
		if err != nil {
			return err
		}
		defer stop()
		fmt.Fprintf(l.Errs, "%s\nsteer: the page of the operator: %s\n", line, url)
		return l.run(ctx)
	}
	if l.live, err = newLive(screen.Screen{Project: l.project.Name, Server: server, Kubeconfig: kubeconfig}); err != nil {
		return err
	}
	ctx, quit := context.WithCancel(ctx)
	defer quit()
	authors := &feed.Authors{Client: l.client}
	l.live.author = func(c trace.Cause) string { return authors.Of(ctx, c) }
	asker := &explain.Asker{Config: l.config, Records: filepath.Join(l.Dir, filepath.FromSlash(project.RecordsDir)), Recent: l.live.feed.Records}
	l.live.objects.ask = asker.Ask
	l.Out, l.Errs, l.keys = l.live.log(), l.live.log(), make(chan byte, 1)
	url, stop, err := l.servePage(ctx)
	if err != nil {
		return err
	}
	defer stop()
	l.live.update(func(s *screen.Screen) { s.Page = url })
	fmt.Fprintf(l.Errs, "%s\nsteer: the page of the operator: %s\n", line, url)
	restore, err := l.live.show(ctx, l.Terminal, l.keys, quit)
	if err != nil {
		return err
	}
	defer restore()
	return l.run(ctx)
}

// MakeState makes the [project.StateDir] of a project. Its kubeconfig does not belong into a
// repository.
func MakeState(dir string) error {
	state := filepath.Join(dir, project.StateDir)
	if err := os.MkdirAll(state, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(state, ".gitignore"), []byte("*\n"), 0o644)
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
				var err error
				if key == 'd' {
					err = l.toggleDebug(ctx)
					changed = err == nil
				} else {
					err = l.restart(ctx)
				}
				if err != nil {
					l.explain(err)
				}
			case how := <-l.ended:
				l.child, l.ended = nil, nil
				l.status("the operator ended (" + how + ")")
				fmt.Fprintf(l.Errs, "steer: the operator ended (%s); it is started again when a file is saved\n", how)
			case <-time.After(max(watchSources, 20*seen.took)):
				now := l.sources()
				changed = now.sum != seen.sum
				if err := l.target.late(ctx); err != nil && ctx.Err() == nil {
					l.explain(err)
				}
			}
		}
	}
}

// status shows what is done now.
func (l *loop) status(text string) {
	if l.live != nil {
		l.live.update(func(s *screen.Screen) { s.Status, s.Debugging = text, l.Debug != "" })
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
	if err := l.target.prepare(ctx); err != nil {
		return err
	}
	l.status("restarting")
	l.stop()
	if err := os.Rename(l.binary()+next, l.binary()); err != nil {
		return err
	}
	if err := l.start(ctx); err != nil {
		return err
	}
	if err := l.target.complete(ctx); err != nil {
		return err
	}
	l.status("build " + screen.Brief(built.Sub(generated)))
	fmt.Fprintf(l.Errs, "steer: generated in %s, built in %s, the operator runs\n",
		generated.Sub(began).Round(time.Millisecond), built.Sub(generated).Round(time.Millisecond))
	return nil
}

// explain prints why the operator was not started anew.
func (l *loop) explain(err error) {
	told := l.problems(err)
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

// problems prints the problems of sources, one a line, and returns them.
func (l *loop) problems(err error) (told []string) {
	var wrong *generate.SourceError
	if errors.As(err, &wrong) {
		for _, problem := range wrong.Problems {
			told = append(told, strings.TrimPrefix(problem.String(), l.Dir+string(filepath.Separator)))
			fmt.Fprintln(l.Errs, told[len(told)-1])
		}
	}
	return told
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
		if len(text) > 0 {
			if objects, err = manifest.Read(dir); err != nil {
				return nil, false, err
			}
		}
	}
	last, seen := l.applied[folder]
	l.applied[folder] = string(text)
	return objects, !seen || last != string(text), nil
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
