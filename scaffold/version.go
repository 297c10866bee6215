// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/version"

	"github.com/steer-dev/steer/scaffold/internal/gofile"
	"github.com/steer-dev/steer/scaffold/project"
)

// versionsOf are the other versions of a kind that the project has types of, the one with
// the highest priority first: v2, v1, v1beta1.
func versionsOf(p *project.Project, r project.Resource) (others []project.Resource) {
	for _, other := range p.Resources {
		if other.API != nil && other.Group == r.Group && other.Kind == r.Kind && other.Version != r.Version {
			others = append(others, other)
		}
	}
	slices.SortFunc(others, func(a, b project.Resource) int {
		return version.CompareKubeAwareVersionStrings(b.Version, a.Version)
	})
	return others
}

// likeOtherVersions gives a further version of a kind what all versions of a
// CustomResourceDefinition have in common.
func (o *APIOptions) likeOtherVersions(p *project.Project, r *project.Resource) error {
	others := versionsOf(p, *r)
	if len(others) == 0 {
		return nil
	}
	first := others[0]
	if o.Plural != "" && o.Plural != first.PluralName() {
		return project.Usagef("--plural is %q, but %s is served as %q, and all versions of a kind are served under one name: leave --plural out", o.Plural, first.GVK(), first.PluralName())
	}
	if o.ClusterScoped && first.API.Namespaced {
		return project.Usagef("--namespaced is false, but objects of %s have namespaces, and a kind has one scope: leave --namespaced out", first.GVK())
	}
	r.Plural, r.API.Namespaced = first.Plural, first.API.Namespaced
	return nil
}

// copyVersion begins the types and the sample of a further version of a kind with those of
// the version that has the highest priority so far, and reports whether there are such types.
func (c *command) copyVersion(p *project.Project, r project.Resource) (bool, error) {
	others := versionsOf(p, r)
	if len(others) == 0 {
		return false, nil
	}
	from, to := c.placesOf(p, others[0]), c.placesOf(p, r)
	sources, err := c.goFiles(from.apiDir())
	if err != nil {
		return false, err
	}
	there, err := c.goFiles(to.apiDir(), to.types())
	if err != nil {
		return false, err
	}
	text, err := sources.CopyTypes(r.Version, there.Declares, r.Kind, r.Kind+"List")
	if err != nil || text == nil {
		return false, err
	}
	if err := c.createText(to.types(), text); err != nil {
		return false, err
	}
	sample, err := c.read(from.sample)
	if err != nil || sample == nil {
		return true, err
	}
	was := regexp.MustCompile(`(?m)^(apiVersion:\s*)["']?` + regexp.QuoteMeta(others[0].APIGroup()+"/"+others[0].Version) + `["']?[ \t]*$`)
	return true, c.createText(to.sample, was.ReplaceAll(sample, []byte("${1}"+r.APIGroup()+"/"+r.Version)))
}

// goFiles are the files of a package as they will be, without tests, generated files and
// those that are left out.
func (c *command) goFiles(dir string, without ...string) (gofile.Package, error) {
	entries, err := os.ReadDir(c.path(dir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var names []string
	for _, entry := range entries {
		names = append(names, path.Join(dir, entry.Name()))
	}
	for name, text := range c.pending {
		if text != nil && path.Dir(name) == dir && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var files gofile.Package
	for _, name := range names {
		base := path.Base(name)
		if path.Ext(base) != ".go" || strings.HasSuffix(base, "_test.go") || strings.HasPrefix(base, "zz_generated") || slices.Contains(without, name) {
			continue
		}
		text, err := c.read(name)
		if err != nil {
			return nil, err
		}
		if text == nil { // about to be removed
			continue
		}
		f, err := gofile.Parse(name, text)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}
