// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Output is a file that a generator made of a program.
type Output struct {
	// Package is the package that the file belongs to; nil for configuration.
	Package *Package
	// Dir is the folder of the file, relative to that of the run, where it is not the one
	// of all outputs of the generator: a program of the module embeds the file.
	Dir string
	// Name is the file's path below the place where the output goes.
	Name string
	Data []byte
}

// Header reads the file that goes before an output, "" if none is named, and puts
// the year in.
func (p *Program) Header(file, year string) (string, error) {
	if file == "" {
		return "", nil
	}
	text, err := os.ReadFile(p.Rooted(file))
	if err != nil {
		return "", fmt.Errorf("read header: %w", err)
	}
	return strings.ReplaceAll(string(text), " YEAR", " "+year), nil
}

// Rooted makes the name of a file that is not relative to [Program.Dir].
func (p *Program) Rooted(file string) string {
	if filepath.IsAbs(file) {
		return file
	}
	return filepath.Join(p.Dir, file)
}
