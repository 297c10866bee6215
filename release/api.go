// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const (
	// apiFile lists the exported identifiers of the stable tier, one a line. A test of
	// the main module keeps it equal to the code.
	apiFile = "internal/house/testdata/api.txt"
	// releasedFile is that list at the last release, below a line with its version.
	releasedFile = "internal/house/testdata/released.txt"
)

// keepAPI makes the list of today that of the last release.
func keepAPI(repo, version string) error {
	list, err := os.ReadFile(filepath.Join(repo, apiFile))
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(repo, releasedFile), append([]byte("# "+version+"\n"), list...), 0o644)
}

// api prints how the stable API differs from that of the last release, and fails where
// the changelog does not name an identifier that callers have to change.
func api(_ context.Context, o options, out io.Writer) error {
	var texts []string
	for _, name := range []string{releasedFile, apiFile, changelogFile} {
		text, err := os.ReadFile(filepath.Join(o.repo, name))
		if err != nil {
			return err
		}
		texts = append(texts, string(text))
	}
	version, before, _ := strings.Cut(texts[0], "\n")
	d := compareAPI(before, texts[1])
	fmt.Fprintf(out, "since %s:\n%s", strings.TrimPrefix(version, "# "), d)
	changes, _ := entries(texts[2], "Unreleased")
	if missing := d.unnamed(changes); len(missing) > 0 {
		return fmt.Errorf("callers of these have to change: say how under Unreleased in %s, with the names in backquotes: %s", changelogFile, strings.Join(missing, ", "))
	}
	return nil
}

// difference is what changed in the stable API.
type difference struct {
	added, removed []string
	changed        [][2]string // before, after
	widened        []string    // methods that an interface requires of those who implement it
}

// compareAPI compares two lists of identifiers.
func compareAPI(before, after string) difference {
	was, is := byIdentifier(before), byIdentifier(after)
	var d difference
	for id, line := range was {
		switch now, ok := is[id]; {
		case !ok:
			d.removed = append(d.removed, line)
		case now != line:
			d.changed = append(d.changed, [2]string{line, now})
		}
	}
	for id, line := range is {
		if _, ok := was[id]; ok {
			continue
		}
		owner, _, member := strings.Cut(id, ", ")
		if _, known := was[owner]; member && known && strings.HasSuffix(is[owner], " interface") {
			d.widened = append(d.widened, line)
			continue
		}
		d.added = append(d.added, line)
	}
	slices.Sort(d.added)
	slices.Sort(d.removed)
	slices.Sort(d.widened)
	slices.SortFunc(d.changed, func(a, b [2]string) int { return strings.Compare(a[0], b[0]) })
	return d
}

func (d difference) String() string {
	var out bytes.Buffer
	for _, line := range d.removed {
		fmt.Fprintf(&out, "removed  %s\n", line)
	}
	for _, pair := range d.changed {
		fmt.Fprintf(&out, "changed  %s\n      to %s\n", pair[0], pair[1])
	}
	for _, line := range d.widened {
		fmt.Fprintf(&out, "required %s\n", line)
	}
	fmt.Fprintf(&out, "%d removed, %d changed, %d required of implementations, %d added\n", len(d.removed), len(d.changed), len(d.widened), len(d.added))
	return out.String()
}

// unnamed are the identifiers, such as cache.Lister or controller.Result.After, that
// callers have to change and a text does not name.
func (d difference) unnamed(text string) []string {
	lines := slices.Concat(d.removed, d.widened)
	for _, pair := range d.changed {
		lines = append(lines, pair[0])
	}
	var missing []string
	for _, line := range lines {
		if name := shortName(line); !strings.Contains(text, "`"+name+"`") && !slices.Contains(missing, name) {
			missing = append(missing, name)
		}
	}
	slices.Sort(missing)
	return missing
}

// byIdentifier indexes the lines of a list by what they are about: the line without
// types.
func byIdentifier(list string) map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(list) {
		if line = strings.TrimSuffix(line, "\n"); line != "" {
			out[identifier(line)] = line
		}
	}
	return out
}

// identifier is the part of a line that names: "cache: type Event, Object" of a field,
// "cache: func (Lister) Get" of a method, "cache: type Event".
func identifier(line string) string {
	folder, rest, _ := strings.Cut(line, ": ")
	kind, rest, _ := strings.Cut(rest, " ")
	if receiver, method, ok := strings.Cut(rest, ") "); kind == "func" && strings.HasPrefix(rest, "(") && ok {
		return folder + ": func (" + typeName(receiver) + ") " + leading(method)
	}
	if owner, member, ok := strings.Cut(rest, ", "); kind == "type" && ok && leading(owner) == owner {
		return folder + ": type " + owner + ", " + leading(member)
	}
	return folder + ": " + kind + " " + leading(rest)
}

// typeName is the type of a receiver such as "(r *Lister[T]".
func typeName(receiver string) string {
	words := strings.Fields(strings.TrimPrefix(receiver, "("))
	return leading(strings.TrimPrefix(words[len(words)-1], "*"))
}

// leading is the identifier that a text begins with; an embedded type is named by all
// of it.
func leading(text string) string {
	if i := strings.IndexAny(text, " [("); i >= 0 {
		return text[:i]
	}
	return text
}

// shortName is how a changelog names what a line is about: cache.Lister,
// cache.Lister.Get, cache.Event.Object.
func shortName(line string) string {
	folder, rest, _ := strings.Cut(identifier(line), ": ")
	_, name, _ := strings.Cut(rest, " ")
	name = strings.NewReplacer("(", "", ") ", ".", ", ", ".").Replace(name)
	pkg := folder[strings.LastIndex(folder, "/")+1:]
	if pkg == "." {
		pkg = "steer"
	}
	return pkg + "." + name
}
