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

// served leaves out what a server does not do unless it is told to: versions before the first
// stable one, and rules that are alpha.
func served(all map[string]properties) map[string]properties {
	out := make(map[string]properties, len(all))
	for name, says := range all {
		if !beforeStable(name) {
			out[name] = slices.DeleteFunc(slices.Clone(says), func(p string) bool { return strings.HasPrefix(p, "+k8s:alpha(") })
		}
	}
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

// here is what this repository says of Kubernetes.
type here struct {
	mentioned   mentions
	definitions map[string]string // the files that define kinds
}

func readHere() (h here, err error) {
	if h.mentioned, err = readMentions("controlplane", "apiserver"); err != nil {
		return h, err
	}
	h.definitions, err = readDefinitions("controlplane")
	return h, err
}

// Where the report lists what is not of one kind.
const (
	ofMany     = "of many kinds"
	ofNone     = "of no kind"
	notDefault = "versions that are off by default"
)

// reportKinds prints what two surfaces differ in, kind by kind, with the file that defines the
// kind here. What is new stands with the files of this repository that name it. A type that
// several kinds have is listed once.
func reportKinds(out io.Writer, was, is surface, h here, all bool) {
	kinds, types := union(was[sectionKinds], is[sectionKinds]), union(was[sectionTypes], is[sectionTypes])
	owned, lines := owners(kinds, types), map[string][]string{}
	for _, s := range []section{sectionKinds, sectionFields, sectionValues, sectionColumns} {
		if was[s] == nil || is[s] == nil {
			continue
		}
		before, after := was[s], is[s]
		if !all && s != sectionKinds {
			before, after = served(before), served(after)
		}
		for _, part := range compare(before, after).parts() {
			for _, change := range part.changes {
				line := part.title + " " + h.line(s, change)
				of := owned[typeOf(s, change.name, kinds)]
				if stable := slices.DeleteFunc(slices.Clone(of), beforeStable); len(stable) > 0 && !all {
					of = stable
				}
				title := ofNone
				switch {
				case len(of) == 0:
				case len(of) > many:
					title = ofMany
				case beforeStable(of[0]) && !all:
					title = notDefault
					line = of[0] + ": " + line
				default:
					title = of[0]
				}
				if len(of) > 1 && title != ofMany {
					line += ", also of " + strings.Join(of[1:], ", ")
				}
				lines[title] = append(lines[title], line)
			}
		}
	}
	files := map[string]bool{}
	list := func(title, where string) {
		if len(lines[title]) == 0 {
			return
		}
		fmt.Fprintf(out, "\n## %s%s\n\n", title, where)
		for _, line := range lines[title] {
			fmt.Fprintln(out, "- "+line)
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		where := ", no definition here"
		if file := h.definitions[kind]; file != "" {
			where = ", here " + file
			files[file] = files[file] || len(lines[kind]) > 0
		}
		list(kind, where)
	}
	for _, title := range []string{ofMany, ofNone, notDefault} {
		list(title, "")
	}
	fmt.Fprintf(out, "\n## files that define those kinds\n\n")
	for _, file := range slices.Sorted(maps.Keys(files)) {
		if files[file] {
			fmt.Fprintln(out, "- "+file)
		}
	}
}

// union are the items of both.
func union(a, b map[string]properties) map[string]properties {
	out := maps.Clone(a)
	if out == nil {
		return maps.Clone(b)
	}
	maps.Copy(out, b)
	return out
}

// line is an item that differs, with what it lost and got.
func (h here) line(s section, c change) string {
	name := c.name
	if s == sectionFields || s == sectionValues {
		_, name, _ = strings.Cut(name, " ")
	}
	line := strings.TrimSuffix(map[section]string{
		sectionKinds: "kind", sectionFields: "field", sectionValues: "value", sectionColumns: "column", sectionGates: "gate",
	}[s]+" "+name, " ")
	for _, p := range c.lost {
		line += "; no longer " + p
	}
	for _, p := range c.got {
		line += "; " + p
	}
	if s == sectionKinds {
		return line
	}
	return line + " (" + h.mentioned.of(c.name) + ")"
}

// parts are the differences by their sort.
func (c changes) parts() []struct {
	title   string
	changes []change
} {
	return []struct {
		title   string
		changes []change
	}{{"new", c.added}, {"gone", c.gone}, {"changed", c.changed}}
}

// reportGates prints the feature gates that differ.
func reportGates(out io.Writer, was, is surface, h here) {
	c := compare(was[sectionGates], is[sectionGates])
	fmt.Fprintf(out, "\n## feature gates: %d new, %d gone, %d changed\n\n", len(c.added), len(c.gone), len(c.changed))
	for _, part := range c.parts() {
		for _, change := range part.changes {
			fmt.Fprintln(out, "- "+part.title+" "+h.line(sectionGates, change))
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
	const most = 3 // a word of more files says nothing of this item
	switch files := m[strings.ToLower(words[len(words)-1])]; {
	case len(files) == 0:
		return "not named"
	case len(files) > most:
		return fmt.Sprintf("a word in %d files", len(files))
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
func reportFunctions(ctx context.Context, out io.Writer, from sources, older, newer release) error {
	var roots [2]string
	for i, r := range []release{older, newer} {
		dir, err := from.dir(ctx, serverModule, r.server)
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
