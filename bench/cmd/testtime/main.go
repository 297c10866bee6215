// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Command testtime measures what a newcomer waits for on this machine: the two commands of the
// README with an empty build cache, and the second one again, with nothing changed and after a
// change in package controller.
//
//	go run ./cmd/testtime [-root ..] [-v]
//
// It runs in a clone of the repository, changes that are not committed included and files that
// git does not know left out, with a build cache of its own: some minutes and 3 GB. Modules are
// downloaded before. On a machine that does nothing else the times are what a newcomer waits;
// with others beside, only the processor seconds mean something.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"
)

func main() {
	root := flag.String("root", "..", "directory of the main module")
	verbose := flag.Bool("v", false, "print the output of the commands on standard error")
	flag.Parse()
	log := io.Discard
	if *verbose {
		log = os.Stderr
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := measure(ctx, *root, log, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "testtime:", err)
		os.Exit(1)
	}
}

// figures are what one command took.
type figures struct {
	name string
	wall time.Duration
	// All is the processor time of the command and what it started; compile, link and vet are
	// the parts of it that the go command says. The rest runs: tests, programs, the go command.
	all, compile, link, vet time.Duration
}

// measure prints the figures of all commands as a table.
func measure(ctx context.Context, root string, log, out io.Writer) error {
	work, err := os.MkdirTemp("", "steer-testtime-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	tree := filepath.Join(work, "steer")
	if err := clone(ctx, root, tree, log); err != nil {
		return err
	}
	m := machine{work: work, tree: tree, log: log}
	if _, err := m.run(ctx, "", "mod", "download"); err != nil {
		return err
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "\ttime\tprocessor\tcompiling\tlinking\tvet\trunning\t")
	for _, phase := range []struct {
		name   string
		before func() error
		args   []string
	}{
		{name: "go run ./cmd/steer demo --exit", args: []string{"run", "./cmd/steer", "demo", "--exit"}},
		{name: "go test ./...", args: []string{"test", "./..."}},
		{name: "again", args: []string{"test", "./..."}},
		{name: "after a change in controller", before: m.changeController, args: []string{"test", "./..."}},
	} {
		if phase.before != nil {
			if err := phase.before(); err != nil {
				return err
			}
		}
		f, err := m.run(ctx, phase.name, phase.args...)
		if err != nil {
			return err
		}
		fmt.Fprintf(table, "%s\t%.0f s\t%.0f s\t%.0f s\t%.0f s\t%.0f s\t%.0f s\t\n", f.name, f.wall.Seconds(), f.all.Seconds(),
			f.compile.Seconds(), f.link.Seconds(), f.vet.Seconds(), (f.all - f.compile - f.link - f.vet).Seconds())
	}
	return table.Flush()
}

// clone makes a copy of the repository, as it is in the work tree.
func clone(ctx context.Context, root, tree string, log io.Writer) error {
	git := func(args ...string) (string, error) {
		c := exec.CommandContext(ctx, "git", args...)
		c.Stderr = log
		text, err := c.Output()
		if err != nil {
			return "", fmt.Errorf("git %s: %w: -v shows why", strings.Join(args, " "), err)
		}
		return strings.TrimSpace(string(text)), nil
	}
	top, err := git("-C", root, "rev-parse", "--show-toplevel")
	if err != nil {
		return err
	}
	commit, err := git("-C", top, "stash", "create") // empty if nothing differs from HEAD
	if err == nil && commit == "" {
		commit, err = git("-C", top, "rev-parse", "HEAD")
	}
	if err != nil {
		return err
	}
	if _, err := git("clone", "--quiet", "--shared", "--no-checkout", top, tree); err != nil {
		return err
	}
	_, err = git("-C", tree, "checkout", "--quiet", "--detach", commit)
	return err
}

// machine runs commands in a tree.
type machine struct {
	work, tree string
	log        io.Writer
}

// changeController changes what package controller is compiled to, and nothing that it exports.
func (m machine) changeController() error {
	file := filepath.Join(m.tree, "controller", "controller.go")
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, "\nfunc changed() int { return 1 }\n\nvar _ = changed\n"...), 0o644)
}

// run runs a go command.
func (m machine) run(ctx context.Context, name string, args ...string) (figures, error) {
	graph := filepath.Join(m.work, "graph.json")
	if args[0] == "run" || args[0] == "test" {
		args = append([]string{args[0], "-debug-actiongraph=" + graph}, args[1:]...)
	}
	c := exec.CommandContext(ctx, "go", args...)
	c.Dir = m.tree
	c.Env = append(os.Environ(), "GOCACHE="+filepath.Join(m.work, "cache"))
	var text bytes.Buffer
	c.Stdout = io.MultiWriter(&text, m.log)
	c.Stderr = c.Stdout
	begin := time.Now()
	if err := c.Run(); err != nil {
		return figures{}, fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, failures(text.String()))
	}
	f := figures{name: name, wall: time.Since(begin), all: c.ProcessState.UserTime() + c.ProcessState.SystemTime()}
	if name == "" {
		return f, nil
	}
	return f, f.read(graph)
}

// read adds up what the go command says of its actions.
func (f *figures) read(graph string) error {
	text, err := os.ReadFile(graph)
	if err != nil {
		return err
	}
	var actions []struct {
		Mode            string
		CmdUser, CmdSys time.Duration
	}
	if err := json.Unmarshal(text, &actions); err != nil {
		return fmt.Errorf("%s: %w", graph, err)
	}
	for _, a := range actions {
		took := a.CmdUser + a.CmdSys
		switch a.Mode {
		case "link":
			f.link += took
		case "vet":
			f.vet += took
		default:
			f.compile += took
		}
	}
	return nil
}

// failures are the lines of the output of go test that are no verdict of a package that passed.
func failures(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "ok ") && !strings.HasPrefix(line, "?") {
			out.WriteString(line)
		}
	}
	return out.String()
}
