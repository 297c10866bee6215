// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"cmp"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"unicode"

	"golang.org/x/mod/module"

	"github.com/steer-dev/steer/generate/plural"
)

var (
	label      = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)
	plainLabel = regexp.MustCompile(`^[a-z]([-a-z0-9]*[a-z0-9])?$`)
	version    = regexp.MustCompile(`^v[1-9][0-9]*((alpha|beta)[1-9][0-9]*)?$`)
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
		if len(part) > maxLabel || !label.MatchString(part) {
			return false
		}
	}
	return true
}

func checkDomain(domain string) error {
	if !subdomain(domain) {
		return usagef("--domain %q is no domain: give lower-case labels with dots between them, such as example.com", domain)
	}
	return nil
}

func checkProjectName(name string) error {
	if len(name) > maxLabel || !label.MatchString(name) {
		return usagef("the project name %q is no DNS label: give lower-case letters, digits and hyphens, such as --project-name guestbook", name)
	}
	return nil
}

func checkRepo(repo string) error {
	if err := module.CheckImportPath(repo); err != nil {
		return usagef("--repo %q is no module path: give one such as example.com/guestbook", repo)
	}
	return nil
}

// projectNameOf makes a project name of a folder's, as far as there is one in it.
func projectNameOf(dir string) string {
	name := strings.Map(func(r rune) rune {
		switch r = unicode.ToLower(r); {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		}
		return '-'
	}, filepath.Base(dir))
	return strings.Trim(name[:min(len(name), maxLabel)], "-")
}

// GVK names a kind the way that kubebuilder's flags do.
type GVK struct {
	Group   string // without the domain of the project; may be empty
	Version string
	Kind    string
}

func (g GVK) check() error {
	switch {
	case g.Group != "" && !subdomain(g.Group):
		return usagef("--group %q is no group: give lower-case letters, digits and hyphens, such as webapp", g.Group)
	case g.Version == "":
		return usagef("--version is missing: give one such as v1 or v1alpha1")
	case !version.MatchString(g.Version):
		return usagef("--version %q is no version: give one such as v1, v1beta1 or v1alpha1", g.Version)
	case g.Kind == "":
		return usagef("--kind is missing: give one such as Guestbook")
	case len(g.Kind) > maxLabel || !identifier.MatchString(g.Kind):
		return usagef("--kind %q is no kind: give letters and digits in CamelCase that begin with an upper-case letter, such as Guestbook", g.Kind)
	}
	return nil
}

func (g GVK) String() string {
	if g.Group == "" {
		return g.Version + " " + g.Kind
	}
	return g.Group + "/" + g.Version + " " + g.Kind
}

func checkPlural(name string) error {
	if name != "" && (len(name) > maxLabel || !plainLabel.MatchString(name)) {
		return usagef("--plural %q is no resource name: give lower-case letters, digits and hyphens, such as guestbooks", name)
	}
	return nil
}

// pluralOf is the name of a kind's resource.
func pluralOf(kind string) string { return strings.ToLower(plural.Of(kind)) }

// qualified is the API group of a group in a domain.
func qualified(group, domain string) string {
	if group == "" || domain == "" {
		return cmp.Or(group, domain)
	}
	return group + "." + domain
}

// goName makes an identifier of a group or domain: what Go does not allow is left out.
func goName(name string) string {
	return strings.NewReplacer("-", "", ".", "").Replace(name)
}

// builtinDomain is the domain of a group of k8s.io/api; ok is false for a group that
// is not there.
func builtinDomain(group string) (domain string, ok bool) {
	switch group {
	case "core", "apps", "autoscaling", "batch", "policy":
		return "", true
	case "admissionregistration", "authentication", "authorization", "certificates", "coordination", "discovery",
		"events", "flowcontrol", "networking", "node", "resource", "scheduling", "storage":
		return "k8s.io", true
	case "rbac":
		return "authorization.k8s.io", true
	}
	return "", false
}

// builtinPath is the Go package of a version of a group of k8s.io/api.
func builtinPath(group, version string) string { return path.Join("k8s.io/api", group, version) }
