// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/mod/module"
)

// part is a module that is linked into a binary.
type part struct {
	module.Version
	sum     string // as go.sum has it
	license string // SPDX identifier, or several with AND
	texts   []string
}

// modules are the modules that the binaries link, Go's library first, with their
// licenses.
func (b *builder) modules(ctx context.Context, binaries []binary) ([]part, error) {
	linked := map[module.Version]string{}
	for _, one := range binaries {
		for _, p := range one.programs {
			for _, dep := range p.info.Deps {
				if dep.Replace != nil {
					return nil, fmt.Errorf("%s for %s/%s links a replacement of %s", p.name, one.system, one.architecture, dep.Path)
				}
				if !b.has(dep.Path) {
					linked[module.Version{Path: dep.Path, Version: dep.Version}] = dep.Sum
				}
			}
		}
	}
	goLicense, err := os.ReadFile(filepath.Join(b.goRoot, "LICENSE"))
	if err != nil {
		return nil, fmt.Errorf("the license of Go: %w", err)
	}
	parts := []part{{Version: module.Version{Path: "std", Version: strings.TrimPrefix(binaries[0].programs[0].info.GoVersion, "go")}, license: "BSD-3-Clause", texts: []string{string(goLicense)}}}
	folders, err := b.folders(ctx, linked)
	if err != nil {
		return nil, err
	}
	var problems []error
	for v, sum := range linked {
		p := part{Version: v, sum: sum}
		if err := p.readLicenses(folders[v]); err != nil {
			problems = append(problems, err)
		}
		parts = append(parts, p)
	}
	slices.SortFunc(parts[1:], func(a, b part) int { return cmp.Compare(a.Path, b.Path) })
	return parts, errors.Join(problems...)
}

// folders of modules in the module cache.
func (b *builder) folders(ctx context.Context, linked map[module.Version]string) (map[module.Version]string, error) {
	args := []string{"mod", "download", "-json"}
	for v := range linked {
		args = append(args, v.String())
	}
	if len(linked) == 0 {
		return nil, nil
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Env = b.work, b.environment()
	out, err := cmd.Output()
	if err != nil {
		return nil, commandError(cmd, err, out)
	}
	folders := map[module.Version]string{}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var m struct{ Path, Version, Dir string }
		if err := d.Decode(&m); errors.Is(err, io.EOF) {
			return folders, nil
		} else if err != nil {
			return nil, err
		}
		folders[module.Version{Path: m.Path, Version: m.Version}] = m.Dir
	}
}

var licenseFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)([.-].*)?$`)

// readLicenses reads the license files in the folder of a module.
func (p *part) readLicenses(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var ids []string
	for _, entry := range entries {
		if entry.IsDir() || !licenseFile.MatchString(entry.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			return err
		}
		p.texts = append(p.texts, string(text))
		for _, id := range licensesIn(string(text)) {
			if !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	if len(ids) == 0 {
		return fmt.Errorf("the license of %s is not known: read the files in %s, and teach licensesIn its words", p.Version, dir)
	}
	slices.Sort(ids)
	p.license = strings.Join(ids, " AND ")
	return nil
}

// licensesIn are the SPDX identifiers of the licenses whose words a text has. A file
// may have several, one after the other.
func licensesIn(text string) []string {
	text = strings.Join(strings.Fields(strings.ToLower(text)), " ")
	has := func(words string) bool { return strings.Contains(text, words) }
	var ids []string
	for _, l := range []struct {
		id    string
		found bool
	}{
		{"Apache-2.0", has("apache license version 2.0, january 2004") || has("licensed under the apache license, version 2.0")},
		{"BSD-2-Clause", has("redistribution and use in source and binary forms") && !has("neither the name") && !has("may not be used to endorse")},
		{"BSD-3-Clause", has("redistribution and use in source and binary forms") && (has("neither the name") || has("may not be used to endorse"))},
		{"ISC", has("permission to use, copy, modify, and/or distribute this software") || has("permission to use, copy, modify, and distribute this software")},
		{"MIT", has("permission is hereby granted, free of charge")},
		{"MPL-2.0", has("mozilla public license") && has("2.0")},
	} {
		if l.found {
			ids = append(ids, l.id)
		}
	}
	return ids
}

// licenseTexts is the file with the licenses of all that is linked.
func licenseTexts(parts []part) string {
	var out strings.Builder
	out.WriteString("Steer links these modules. Its own license is in the file LICENSE.\n")
	for _, p := range parts {
		fmt.Fprintf(&out, "\n%s\n%s %s: %s\n%[1]s\n", strings.Repeat("=", 80), p.Path, p.Version.Version, p.license)
		for _, text := range p.texts {
			out.WriteString("\n" + strings.TrimSpace(text) + "\n")
		}
	}
	return out.String()
}
