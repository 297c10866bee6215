// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package project

import (
	"path/filepath"
	"regexp"
	"strings"
	"unicode"

	"golang.org/x/mod/module"
	"k8s.io/apimachinery/pkg/util/validation"
)

var (
	version    = regexp.MustCompile(`^v[1-9][0-9]*((alpha|beta)[1-9][0-9]*)?$`)
	urlPath    = regexp.MustCompile(`^(/[-A-Za-z0-9._~]+)+$`)
	identifier = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`)
)

// maxLabel and maxSubdomain are the longest names of Kubernetes, in bytes.
const (
	maxLabel     = 63
	maxSubdomain = 253
)

func subdomain(name string) bool {
	if len(name) > maxSubdomain {
		return false
	}
	for part := range strings.SplitSeq(name, ".") {
		if !isLabel(part) {
			return false
		}
	}
	return true
}

func isLabel(name string) bool { return len(validation.IsDNS1123Label(name)) == 0 }

// CheckDomain validates the domain of API groups.
func CheckDomain(domain string) error {
	if !subdomain(domain) {
		return Usagef("--domain %q is no domain: give lower-case labels with dots between them, such as example.com", domain)
	}
	return nil
}

// CheckName validates the name of a project.
func CheckName(name string) error {
	if !isLabel(name) {
		return Usagef("the project name %q is no DNS label: give lower-case letters, digits and hyphens, such as --project-name guestbook", name)
	}
	return nil
}

// CheckRepo validates the path of a module.
func CheckRepo(repo string) error {
	if err := module.CheckImportPath(repo); err != nil {
		return Usagef("--repo %q is no module path: give one such as example.com/guestbook", repo)
	}
	return nil
}

// NameOf makes a project name of a folder's, as far as there is one in it.
func NameOf(dir string) string {
	name := strings.Map(func(r rune) rune {
		switch r = unicode.ToLower(r); {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		}
		return '-'
	}, filepath.Base(dir))
	return strings.Trim(name[:min(len(name), maxLabel)], "-")
}

// CheckGVK validates the names of a kind.
func CheckGVK(g GVK) error {
	switch {
	case g.Group != "" && !subdomain(g.Group):
		return Usagef("--group %q is no group: give lower-case letters, digits and hyphens, such as webapp", g.Group)
	case g.Version == "":
		return Usagef("--version is missing: give one such as v1 or v1alpha1")
	case !version.MatchString(g.Version):
		return Usagef("--version %q is no version: give one such as v1, v1beta1 or v1alpha1", g.Version)
	case g.Kind == "":
		return Usagef("--kind is missing: give one such as Guestbook")
	case len(g.Kind) > maxLabel || !identifier.MatchString(g.Kind):
		return Usagef("--kind %q is no kind: give letters and digits in CamelCase that begin with an upper-case letter, such as Guestbook", g.Kind)
	}
	return nil
}

// CheckPlural validates the name of a resource; empty is the default one.
func CheckPlural(name string) error {
	if name != "" && len(validation.IsDNS1035Label(name)) > 0 {
		return Usagef("--plural %q is no resource name: give lower-case letters, digits and hyphens, such as guestbooks", name)
	}
	return nil
}

// CheckPath validates where a webhook is served; empty is the default path.
func CheckPath(flag, path string) error {
	if path != "" && !urlPath.MatchString(path) {
		return Usagef("%s %q is no path: give one such as /mutate-guestbooks", flag, path)
	}
	return nil
}
