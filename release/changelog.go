// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
)

const (
	changelogFile = "CHANGELOG.md"
	unreleased    = "## Unreleased\n"
)

// cutChangelog gives what is under Unreleased the heading of a version.
func cutChangelog(name, version string, at time.Time) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	cutText, err := cutEntries(string(text), version, at)
	if err != nil {
		return err
	}
	return os.WriteFile(name, []byte(cutText), 0o644)
}

func cutEntries(text, version string, at time.Time) (string, error) {
	if _, ok := entries(text, version); ok {
		return "", fmt.Errorf("%s has a section %s already", changelogFile, version)
	}
	head, rest, ok := strings.Cut(text, unreleased)
	if !ok {
		return "", fmt.Errorf("%s has no heading %q", changelogFile, strings.TrimSpace(unreleased))
	}
	if own, _ := entries(text, "Unreleased"); strings.TrimSpace(own) == "" {
		return "", fmt.Errorf("%s says nothing under Unreleased: there is nothing to release", changelogFile)
	}
	return head + unreleased + "\n" + heading(version) + " - " + at.UTC().Format(time.DateOnly) + "\n" + rest, nil
}

func heading(version string) string { return "## " + version }

// entries is what a section of the changelog says.
func entries(text, section string) (string, bool) {
	var out strings.Builder
	inside, found := false, false
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "## ") {
			title, _, _ := strings.Cut(strings.TrimSpace(line), " - ")
			inside = title == heading(section)
			found = found || inside
			continue
		}
		if inside {
			out.WriteString(line)
		}
	}
	return out.String(), found
}

// checkChangelog requires that a version was cut, with all that there is.
func checkChangelog(text, version string) error {
	if _, ok := entries(text, version); !ok {
		return fmt.Errorf("%s has no section %s: run release cut -version %s, review and commit", changelogFile, version, version)
	}
	if rest, _ := entries(text, "Unreleased"); strings.TrimSpace(rest) != "" {
		return errors.New("entries stand under Unreleased in " + changelogFile + ": move them to the section of the version, and commit")
	}
	return nil
}
