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
