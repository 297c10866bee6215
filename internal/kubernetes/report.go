// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// changes are the differences between two versions of one section, in the order of names.
type changes struct {
	added, gone, changed []change
}

// change is an item that differs: with the properties that it lost and got.
type change struct {
	name      string
	lost, got properties
}

func compare(was, is map[string]properties) (c changes) {
	for _, name := range slices.Sorted(maps.Keys(is)) {
		before, known := was[name]
		switch lost, got := without(before, is[name]), without(is[name], before); {
		case !known:
			c.added = append(c.added, change{name: name, got: is[name]})
		case len(lost)+len(got) > 0:
			c.changed = append(c.changed, change{name, lost, got})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(was)) {
		if _, still := is[name]; !still {
			c.gone = append(c.gone, change{name: name})
		}
	}
	return c
}

// served leaves the versions out that a server does not serve unless it is told to.
func served(all map[string]properties) map[string]properties {
	out := maps.Clone(all)
	maps.DeleteFunc(out, func(name string, _ properties) bool {
		version, _, _ := strings.Cut(name, " ")
		return strings.Contains(version, "/v") && (strings.Contains(version, "alpha") || strings.Contains(version, "beta"))
	})
	return out
}

// without returns the properties of a that b does not have.
func without(a, b properties) (out properties) {
	for _, p := range a {
		if !slices.Contains(b, p) {
			out = append(out, p)
		}
	}
	return out
}

// report prints the differences of a section. What is new stands with the files of this
// repository that name it.
func report(out io.Writer, s section, c changes, mentioned mentions) {
	fmt.Fprintf(out, "\n## %s: %d new, %d gone, %d changed\n", s, len(c.added), len(c.gone), len(c.changed))
	for _, part := range []struct {
		title   string
		changes []change
	}{{"new", c.added}, {"gone", c.gone}, {"changed", c.changed}} {
		if len(part.changes) == 0 {
			continue
		}
		fmt.Fprintf(out, "\n### %s\n\n", part.title)
		for _, change := range part.changes {
			fmt.Fprintf(out, "- %s", change.name)
			for _, p := range change.lost {
				fmt.Fprintf(out, "; no longer %s", p)
			}
			for _, p := range change.got {
				fmt.Fprintf(out, "; %s", p)
			}
			if s != sectionColumns {
				fmt.Fprintf(out, " (%s)", mentioned.of(change.name))
			}
			fmt.Fprintln(out)
		}
	}
}

// mentions are the words that the sources below some folders use, with the files.
type mentions map[string][]string

var wordPattern = regexp.MustCompile(`[A-Za-z][A-Za-z0-9]+`)

func readMentions(folders ...string) (mentions, error) {
	m := mentions{}
	for _, folder := range folders {
		err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			for _, word := range wordPattern.FindAllString(string(text), -1) {
				word = strings.ToLower(word)
				if files := m[word]; len(files) == 0 || files[len(files)-1] != path {
					m[word] = append(files, path)
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return m, nil
}

// of says which files name the last part of a name.
func (m mentions) of(name string) string {
	words := wordPattern.FindAllString(name, -1)
	if len(words) == 0 {
		return "not named"
	}
	const most = 3
	switch files := m[strings.ToLower(words[len(words)-1])]; {
	case len(files) == 0:
		return "not named"
	case len(files) > most:
		return fmt.Sprintf("named in %s and %d more", strings.Join(files[:most], ", "), len(files)-most)
	default:
		return "named in " + strings.Join(files, ", ")
	}
}

// place is where a part of the server is here.
type place struct {
	title, below, files, ours string
}

// places are the parts of the server that are written again here, by the folders of
// k8s.io/kubernetes.
func places() []place {
	return []place{
		{"defaults", "pkg/apis", "defaults", "controlplane/core: the package of the kind"},
		{"validation", "pkg/apis", "validation", "controlplane/core: the package of the kind, and crdvalidation"},
		{"conversion and selectable fields", "pkg/apis", "conversion", "controlplane/core: the package of the kind"},
		{"warnings", "pkg/api", "warnings", "controlplane/core/podwarning"},
		{"strategies and subresources", "pkg/registry", "", "controlplane/core: the package of the kind"},
		{"cells of tables", "pkg/printers/internalversion", "printers", "controlplane/core: the package of the kind"},
		{"admission", "plugin/pkg/admission", "", "controlplane/admission, controlplane/quota, controlplane/serviceaccount"},
		{"authorization and bootstrap roles", "plugin/pkg/auth", "", "controlplane/rbac, and oracle/cmd/bootstrap for the roles"},
		{"controllers", "pkg/controller", "", "controlplane: the package of the controller"},
		{"scheduling", "pkg/scheduler/framework/plugins", "", "controlplane/workloads"},
	}
}

// reportFunctions prints the functions of the server that differ, by place and package.
func reportFunctions(ctx context.Context, out io.Writer, older, newer release) error {
	var roots [2]string
	for i, r := range []release{older, newer} {
		dir, err := download(ctx, serverModule, r.server)
		if err != nil {
			return err
		}
		roots[i] = dir
	}
	for _, p := range places() {
		var all [2]map[string]properties
		for i, root := range roots {
			functions, err := readFunctions(root, p.below, func(path string) bool {
				base := filepath.Base(path)
				return !strings.HasPrefix(base, "zz_generated") && strings.Contains(filepath.Base(filepath.Dir(path))+"/"+base, p.files)
			})
			if err != nil {
				return err
			}
			all[i] = map[string]properties{}
			for name, text := range functions {
				all[i][name] = properties{text}
			}
		}
		c := compare(all[0], all[1])
		fmt.Fprintf(out, "\n## functions, %s: %d new, %d gone, %d changed\n\nHere: %s.\n", p.title, len(c.added), len(c.gone), len(c.changed), p.ours)
		for _, line := range byPackage(c) {
			fmt.Fprintln(out, line)
		}
	}
	return nil
}

// byPackage is a line for each package, with its functions behind +, - or ~.
func byPackage(c changes) (lines []string) {
	packages := map[string][]string{}
	for sign, list := range map[string][]change{"+": c.added, "-": c.gone, "~": c.changed} {
		for _, change := range list {
			dir, name, _ := strings.Cut(change.name, " ")
			packages[dir] = append(packages[dir], sign+name)
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(packages)) {
		slices.Sort(packages[dir])
		lines = append(lines, "- "+dir+": "+strings.Join(packages[dir], " "))
	}
	if len(lines) > 0 {
		lines = slices.Insert(lines, 0, "")
	}
	return lines
}
