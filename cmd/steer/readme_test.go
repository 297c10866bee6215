// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestCommandsOfTheReadmeExist checks every command line that README.md shows, in a block or
// in a sentence:
// subcommands and flags of steer are parsed, packages and folders must exist.
// CI runs the first two of them to their end.
func TestCommandsOfTheReadmeExist(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, match := range regexp.MustCompile("(?m)^\\$ (.+)$|`(go run [^`]+)`").FindAllStringSubmatch(string(readme), -1) {
		command, _, _ := strings.Cut(match[1]+match[2], " #")
		for part := range strings.SplitSeq(command, " & ") {
			checkCommand(t, strings.Fields(part))
			checked++
		}
	}
	if checked < 5 {
		t.Errorf("only %d commands were found in README.md", checked)
	}
}

func checkCommand(t *testing.T, words []string) {
	t.Helper()
	line := strings.Join(words, " ")
	switch {
	case words[0] == "export" || words[0] == "kubectl" || line == "go test ./...":
	case words[0] == "go" && words[1] == "run" && words[2] == "./cmd/steer":
		args := words[3:]
		var child []string
		for i, arg := range args {
			if arg == "--" {
				args, child = args[:i], args[i+1:]
				break
			}
		}
		root := newRootCommand()
		found, rest, err := root.Find(args)
		if err == nil && found == root {
			t.Errorf("README.md: %s: no such command", line)
			return
		}
		if err == nil {
			err = found.ParseFlags(rest)
		}
		if err != nil {
			t.Errorf("README.md: %s: %v", line, err)
		}
		if child != nil {
			checkCommand(t, child)
		}
	case words[0] == "go" && words[1] == "run":
		if _, err := os.Stat(filepath.Join("../..", words[2])); err != nil {
			t.Errorf("README.md: %s: %v", line, err)
		}
	default:
		t.Errorf("README.md: %s: a command that this test does not know how to check", line)
	}
}
