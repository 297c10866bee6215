// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package project compares how a new operator begins with Steer, kubebuilder and
// operator-sdk: the commands from an empty folder to a kind of one's own that is
// reconciled, what they take, and the files that the author has to keep from then on; and
// what a suite of envtest takes before and after steer adopt.
package project

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Options of [Run].
type Options struct {
	// Root is the folder of the main module, from which steer is built. Required.
	Root string
	// Kubebuilder and OperatorSDK are the versions of their modules to build; empty leaves
	// a tool out.
	Kubebuilder, OperatorSDK string
	// Upstream is the folder with kube-apiserver and etcd for the suite before it is
	// adopted; empty leaves the suite out.
	Upstream string
	// Cold gives every project module and build caches of its own, which are empty at its
	// first command.
	Cold bool
	// Log gets the output of the commands.
	Log io.Writer
}

// Result is what one tool took.
type Result struct {
	Tool  string
	Steps []Step
	// Saves are the times from a save of the reconciler until it had reconciled the sample.
	Saves []time.Duration
	// Alone are the files of an API and its controller that the author owns, WithWebhooks
	// those after a defaulting and a validating webhook were added.
	Alone, WithWebhooks Size
}

// Step is a command and the time it took; an edit of a file has no time.
type Step struct {
	Command string
	Took    time.Duration
	Edit    bool
}

// Commands counts the steps that are no edits.
func (r Result) Commands() (n int) {
	for _, s := range r.Steps {
		if !s.Edit {
			n++
		}
	}
	return n
}

// Took is the time of all commands.
func (r Result) Took() (sum time.Duration) {
	for _, s := range r.Steps {
		sum += s.Took
	}
	return sum
}

// Run measures all tools and prints what they took. A tool that cannot be built, or fails,
// is named and left out.
func Run(ctx context.Context, o Options, out io.Writer) (err error) {
	work, err := os.MkdirTemp("", "steer-project-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, removeAll(work)) }()
	b := &bench{Options: o, work: work, bin: filepath.Join(work, "bin")}
	if err := b.build(ctx, o.Root, "steer", "./cmd/steer", ""); err != nil {
		return err
	}
	results := []Result{}
	begun, err := b.steer(ctx)
	if err != nil {
		return err
	}
	results = append(results, begun)
	sample := ""
	for _, tool := range tools(o) {
		if tool.version == "" {
			continue
		}
		if err := b.fetch(ctx, tool); err != nil {
			fmt.Fprintf(out, "%s %s cannot be built and is left out: %v\n\n", tool.name, tool.version, err)
			continue
		}
		begun, err := b.kubebuilder(ctx, tool.name)
		if err != nil { // what the others took is worth printing
			fmt.Fprintf(out, "%s %s failed and is left out: %v\n\n", tool.name, tool.version, err)
			continue
		}
		begun.Tool += " " + tool.version
		results = append(results, begun)
		if sample == "" {
			sample = b.dir(tool.name)
		}
	}
	printResults(out, results, o.Cold)
	if sample == "" || o.Upstream == "" {
		return nil
	}
	suite, err := b.adopt(ctx, sample)
	if err != nil {
		return err
	}
	suite.print(out)
	return nil
}

// tool is a program to build from its module.
type tool struct {
	name, module, pkg, version string
	tags                       string // build tags
}

func tools(o Options) []tool {
	const sdk = "github.com/operator-framework/operator-sdk"
	return []tool{
		{"kubebuilder", "sigs.k8s.io/kubebuilder/v4", "sigs.k8s.io/kubebuilder/v4", o.Kubebuilder, ""},
		{"operator-sdk", sdk, sdk + "/cmd/operator-sdk", o.OperatorSDK, "containers_image_openpgp,exclude_graphdriver_btrfs"}, // no C libraries
	}
}

func printResults(out io.Writer, results []Result, cold bool) {
	caches := "warm caches"
	if cold {
		caches = "module and build caches that are empty at the first command"
	}
	fmt.Fprintf(out, "From an empty folder to a kind of one's own that is reconciled, with %s:\n\n", caches)
	for _, r := range results {
		fmt.Fprintf(out, "%s: %d commands, %.1f s\n", r.Tool, r.Commands(), r.Took().Seconds())
		for _, s := range r.Steps {
			if s.Edit {
				fmt.Fprintf(out, "          # %s\n", s.Command)
				continue
			}
			fmt.Fprintf(out, "%7.1f s $ %s\n", s.Took.Seconds(), s.Command)
		}
		if len(r.Saves) > 0 {
			times := slices.Sorted(slices.Values(r.Saves))
			fmt.Fprintf(out, "%7.1f s from a save to the next reconcile: the median of %d, from %.1f to %.1f s\n",
				times[len(times)/2].Seconds(), len(times), times[0].Seconds(), times[len(times)-1].Seconds())
		}
		fmt.Fprintln(out)
	}
	fmt.Fprintln(out, "Files and lines that the author owns, without go.sum, zz_* and config/{crd,rbac,webhook}:")
	fmt.Fprintln(out)
	for _, r := range results {
		fmt.Fprintf(out, "%-22s one API %s; with two webhooks %s\n", r.Tool, r.Alone, r.WithWebhooks)
	}
	fmt.Fprintln(out)
}

// bench is a run in progress.
type bench struct {
	Options
	work, bin string
}

// dir is the project of a tool.
func (b *bench) dir(tool string) string { return filepath.Join(b.work, tool, "guestbook") }

// build compiles a command.
func (b *bench) build(ctx context.Context, dir, name, pkg, tags string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-tags="+tags, "-o", filepath.Join(b.bin, name), pkg)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOFLAGS=", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w: %s", pkg, err, lastLines(out))
	}
	return nil
}

// fetch builds a tool from its module.
func (b *bench) fetch(ctx context.Context, t tool) error {
	dir := filepath.Join(b.work, "fetch-"+t.name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for file, text := range map[string]string{
		"go.mod":   fmt.Sprintf("module fetch\n\ngo 1.26.0\n\ntool %s\n\nrequire %s %s\n", t.pkg, t.module, t.version),
		"fetch.go": "package fetch\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
			return err
		}
	}
	tidy := exec.CommandContext(ctx, "go", "mod", "tidy")
	tidy.Dir, tidy.Env = dir, append(os.Environ(), "GOFLAGS=", "GOWORK=off")
	if out, err := tidy.CombinedOutput(); err != nil {
		return fmt.Errorf("go mod tidy: %w: %s", err, lastLines(out))
	}
	return b.build(ctx, dir, t.name, t.pkg, t.tags)
}

// lastLines is the end of what a command printed, in one line.
func lastLines(out []byte) string {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return strings.Join(lines[max(0, len(lines)-3):], "; ")
}

// removeAll removes a folder, read-only folders of module caches included.
func removeAll(dir string) error {
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			err = os.Chmod(path, 0o755)
		}
		return err
	})
	return errors.Join(err, os.RemoveAll(dir))
}
