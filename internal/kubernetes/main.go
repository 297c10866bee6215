// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Command kubernetes reports what another version of Kubernetes changes:
//
//	go run ./internal/kubernetes -to 1.38
//
// It compares the sources of the published modules, without building them: kinds, fields with
// their rules, defaults and gates, enums, feature gates, and, where the server is published as
// a module, the columns of tables and the functions that default, validate, prepare, admit and
// authorize. What is new stands beside the files of this repository that name it.
package main

import (
	"context"
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
	all := flag.Bool("all", false, "compare fields and enums of alpha and beta versions as well")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout, *from, *to, *all); err != nil {
		fmt.Fprintln(os.Stderr, "kubernetes:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, from, to string, all bool) error {
	if to == "" {
		return fmt.Errorf("give the version to report, such as -to 1.38")
	}
	older, newer, err := findBoth(ctx, from, to)
	if err != nil {
		return err
	}
	both := newer.server != "" && older.server != ""
	if !both {
		older.server, newer.server = "", "" // else all gates of the server were new, or gone
	}
	was, err := read(ctx, older)
	if err != nil {
		return err
	}
	is, err := read(ctx, newer)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "# Kubernetes %s, compared with %s\n", newer, older)
	if len(newer.passedOver) > 0 {
		fmt.Fprintf(out, "\n%s need a newer Go than this.\n", strings.Join(newer.passedOver, ", "))
	}
	if !both {
		fmt.Fprintln(out, "\nThe server of one of them is not published as a module: there are no columns, functions and gates of the server below, and nothing can be recorded.")
	}
	mentioned, err := readMentions("controlplane", "apiserver")
	if err != nil {
		return err
	}
	for _, s := range sections() {
		if was[s] == nil || is[s] == nil {
			continue
		}
		c := compare(was[s], is[s])
		if !all && s != sectionKinds {
			c = compare(served(was[s]), served(is[s]))
		}
		report(out, s, c, mentioned)
	}
	if !both {
		return nil
	}
	return reportFunctions(ctx, out, older, newer)
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
func read(ctx context.Context, r release) (surface, error) {
	s := surface{}
	for _, m := range typeModules() {
		dir, err := download(ctx, m.module, r.staging)
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
		dir, err := download(ctx, module, r.staging)
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
	dir, err := download(ctx, serverModule, r.server)
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
