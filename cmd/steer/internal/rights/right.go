// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rights compares three things: the rights that the markers of a project give
// to its operator, those that its code declares to need, and those that its tests saw
// it use.
package rights

import (
	"bufio"
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Right is one verb on one resource.
type Right struct {
	Group    string
	Resource string // with its subresource after a slash
	Verb     string
}

// String returns for instance "create deployments (apps)".
func (r Right) String() string {
	if r.Group == "" {
		return r.Verb + " " + r.Resource
	}
	return fmt.Sprintf("%s %s (%s)", r.Verb, r.Resource, r.Group)
}

// Marker is the marker that gives the right.
func (r Right) Marker() string {
	return fmt.Sprintf("+kubebuilder:rbac:groups=%s,resources=%s,verbs=%s", cmp.Or(r.Group, `""`), r.Resource, r.Verb)
}

func compare(a, b Right) int {
	return cmp.Or(strings.Compare(a.Group, b.Group), strings.Compare(a.Resource, b.Resource), strings.Compare(a.Verb, b.Verb))
}

// refusal is what an authorizer says.
var refusal = regexp.MustCompile(` cannot (\S+) resource \\?"([^"\\]+)\\?" in API group \\?"([^"\\]*)\\?"`)

// Refused returns the right whose lack a message of an API server names.
func Refused(message string) (Right, bool) {
	said := refusal.FindStringSubmatch(message)
	if said == nil {
		return Right{}, false
	}
	return Right{said[3], said[2], said[1]}, true
}

// Used are the rights that tests saw used, with the names of the tests.
type Used map[Right][]string

// ReadUsed reads the files that steertest has written to a folder; see
// steertest.RightsVariable. A folder that does not exist is one without files.
func ReadUsed(folder string) (Used, error) {
	used := Used{}
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".rights" {
			if os.IsNotExist(err) {
				return nil
			}
			return err
		}
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		defer file.Close()
		lines := bufio.NewScanner(file)
		lines.Scan()
		test := lines.Text()
		for lines.Scan() {
			if lines.Text() == "" {
				continue
			}
			right, err := parse(lines.Text())
			if err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			if !slices.Contains(used[right], test) {
				used[right] = append(used[right], test)
			}
		}
		return lines.Err()
	})
	return used, err
}

// parse reads a line such as groups=apps,resources=deployments,verbs=create.
func parse(line string) (Right, error) {
	parts := strings.Split(line, ",")
	if len(parts) == 3 {
		group, ok1 := strings.CutPrefix(parts[0], "groups=")
		resource, ok2 := strings.CutPrefix(parts[1], "resources=")
		verb, ok3 := strings.CutPrefix(parts[2], "verbs=")
		if ok1 && ok2 && ok3 {
			return Right{strings.Trim(group, `"`), resource, verb}, nil
		}
	}
	return Right{}, fmt.Errorf("%q is not the right of a marker", line)
}
