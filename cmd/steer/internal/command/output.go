// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/steer-dev/steer/generate"
)

// Count returns a number of things, such as 1 file or 2 files.
func Count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprint(n, " ", what)
}

// PrintProblems lists the problems of sources, one a line.
func PrintProblems(errs io.Writer, wrong *generate.SourceError) {
	for _, problem := range wrong.Problems {
		fmt.Fprintln(errs, Relative(problem.String()))
	}
}

// Relative shortens paths below the working directory.
func Relative(text string) string {
	dir, err := os.Getwd()
	if err != nil {
		return text
	}
	return strings.TrimPrefix(text, dir+string(filepath.Separator))
}

// CacheDir is the folder in which steer generate keeps what it read and wrote.
func CacheDir() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		dir = os.TempDir()
	}
	return filepath.Join(dir, "steer", "generate")
}

// StateDir is the folder $XDG_STATE_HOME or ~/.local/state, for what lasts on this machine; an
// error says that there is none.
func StateDir() (string, error) {
	if state := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(state) {
		return state, nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(home, ".local", "state"), nil
}

// DevKeys is the folder for the keys of the control planes that steer dev runs; empty if there
// is no place for them.
func DevKeys() string {
	state, err := StateDir()
	if err != nil {
		return ""
	}
	return filepath.Join(state, "steer-dev")
}
