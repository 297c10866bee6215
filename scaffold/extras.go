// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"slices"
	"strings"

	"github.com/steer-dev/steer/scaffold/project"
)

// extra is a set of files that not every project wants.
type extra struct {
	name  string
	files map[string]string // templates by the paths of the files
}

func extras() []extra {
	return []extra{
		{"ci", map[string]string{".github/workflows/ci.yml": "ci.yml"}},
		{"vscode", map[string]string{".vscode/launch.json": "launch.json"}},
		{"dockerfile", map[string]string{"Dockerfile": "Dockerfile", ".dockerignore": "dockerignore"}},
	}
}

// Extras are the names that InitOptions.With may have: ci, a workflow of GitHub; vscode,
// how Visual Studio Code debugs the operator; dockerfile, an image of it.
func Extras() []string {
	var names []string
	for _, e := range extras() {
		names = append(names, e.name)
	}
	return names
}

// extrasOf are the extras of the names.
func extrasOf(names []string) ([]extra, error) {
	var out []extra
	for _, name := range names {
		i := slices.IndexFunc(extras(), func(e extra) bool { return e.name == name })
		if i < 0 {
			return nil, project.Usagef("--with %q is not known: give some of %s, with commas between them", name, strings.Join(Extras(), ", "))
		}
		out = append(out, extras()[i])
	}
	return out, nil
}
