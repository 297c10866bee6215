// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Command kubernetes reports what another version of Kubernetes changes:
//
//	go run ./internal/kubernetes -to 1.38
//
// It compares the sources of the published modules, without building them: kinds, fields with
// their rules, defaults and gates, enums, feature gates, and, where the server is published as
// a module, the columns of tables and the functions that default, validate, prepare, admit and
// authorize. What is new stands beside the files of this repository that name it. With -move it
// brings the repository to that version before, if it is released.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
)

func main() {
	from := flag.String("from", "", "the minor or the version to begin with, such as 1.36.3 (default: that of k8s.io/api in go.mod)")
	to := flag.String("to", "", "the minor or the version to report, such as 1.38: its newest release, or the newest version before there is one")
	moves := flag.Bool("move", false, "if it is released, move to it before: modules, kube-apiserver, and its answers")
	binaries := flag.String("binaries", "", "a folder with the programs of the oracle in that version, instead of building them (with -move)")
	all := flag.Bool("all", false, "compare fields and enums of alpha and beta versions as well")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout, options{from: *from, to: *to, all: *all, move: *moves, binaries: *binaries}); err != nil {
		fmt.Fprintln(os.Stderr, "kubernetes:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	from, to  string
	all, move bool
	binaries  string
}

func run(ctx context.Context, out io.Writer, o options) (err error) {
	if o.to == "" {
		return fmt.Errorf("give the version to report, such as -to 1.38")
	}
	older, newer, err := findBoth(ctx, o.from, o.to)
	if err != nil {
		return err
	}
	unpacked, err := os.MkdirTemp("", "kubernetes")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(unpacked)) }()
	modules := sources{unpacked: unpacked}
	if err := announce(ctx, out, modules, older, newer); err != nil {
		return err
	}
	if o.move {
		if err := moveTo(ctx, out, modules, newer, o.binaries); err != nil {
			return err
		}
	}
	both := newer.server != "" && older.server != ""
	if !both {
		older.server, newer.server = "", "" // else all gates of the server were new, or gone
	}
	was, err := read(ctx, modules, older)
	if err != nil {
		return err
	}
	is, err := read(ctx, modules, newer)
	if err != nil {
		return err
	}
	h, err := readHere()
	if err != nil {
		return err
	}
	reportKinds(out, was, is, h, o.all)
	reportGates(out, was, is, h)
	if !both {
		return nil
	}
	return reportFunctions(ctx, out, modules, older, newer)
}

// moveTo moves the repository to a release, if it is one.
func moveTo(ctx context.Context, out io.Writer, modules sources, r release, binaries string) error {
	if !r.released() {
		fmt.Fprintln(out, "\nNothing is moved.")
		return nil
	}
	dir, err := modules.dir(ctx, serverModule, r.server)
	if err != nil {
		return err
	}
	server, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return err
	}
	was, err := goList(ctx, "-f", "{{.Version}}", apiModule)
	if err != nil {
		return err
	}
	return move{out: out, root: ".", release: r, was: strings.TrimSpace(was), server: server, binaries: binaries}.run(ctx)
}

// announce prints which versions are compared, what is published of the newer one, and what
// cannot be done with that.
func announce(ctx context.Context, out io.Writer, modules sources, older, newer release) error {
	fmt.Fprintf(out, "# Kubernetes %s, compared with %s\n\nPublished: %s.\n", newer, older, strings.Join(newer.published, ", "))
	switch {
	case newer.server == "" || older.server == "":
		fmt.Fprintln(out, "\nThe server of one of them is not published as a module: there are no columns, functions and gates of the server below, and nothing can be recorded.")
	case !newer.released():
		fmt.Fprintln(out, "\nIt is not released: what is below may change, and nothing of it is merged.")
	}
	needs, err := modules.newerGo(ctx, apiModule, newer.staging)
	if needs != "" {
		fmt.Fprintf(out, "\nIts modules need Go %s: they are read here, and cannot be built.\n", needs)
	}
	return err
}

// findBoth returns the two releases. The first is that of go.mod if it is not named.
func findBoth(ctx context.Context, from, to string) (older, newer release, err error) {
	if from == "" {
		required, err := goList(ctx, "-f", "{{.Version}}", apiModule)
		if err != nil {
			return older, newer, err
		}
		from = strings.TrimSpace(required)
	}
	if older, err = find(ctx, from); err != nil {
		return older, newer, err
	}
	newer, err = find(ctx, to)
	return older, newer, err
}

// read returns the surface of a release.
func read(ctx context.Context, modules sources, r release) (surface, error) {
	s := surface{}
	for _, m := range typeModules() {
		dir, err := modules.dir(ctx, m.module, r.staging)
		if err != nil {
			return nil, err
		}
		if err := s.readTypes(filepath.Join(dir, m.below)); err != nil {
			return nil, err
		}
	}
	gates := map[string]string{
		"k8s.io/apiserver": "pkg/features", "k8s.io/apiextensions-apiserver": "pkg/features", "k8s.io/client-go": "features",
	}
	for module, below := range gates {
		dir, err := modules.dir(ctx, module, r.staging)
		if err != nil {
			return nil, err
		}
		if err := s.readGates(filepath.Join(dir, below), r.minor); err != nil {
			return nil, err
		}
	}
	if r.server == "" {
		return s, nil
	}
	dir, err := modules.dir(ctx, serverModule, r.server)
	if err != nil {
		return nil, err
	}
	if err := s.readGates(filepath.Join(dir, "pkg/features"), r.minor); err != nil {
		return nil, err
	}
	return s, s.readColumns(filepath.Join(dir, "pkg/printers/internalversion"))
}

// typeModules are where the types of the API are.
func typeModules() []struct{ module, below string } {
	return []struct{ module, below string }{
		{apiModule, ""},
		{"k8s.io/apiextensions-apiserver", "pkg/apis/apiextensions"},
		{"k8s.io/kube-aggregator", "pkg/apis/apiregistration"},
		{"k8s.io/apimachinery", "pkg/apis/meta"},
	}
}
