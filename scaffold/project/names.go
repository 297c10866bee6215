// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package project

import (
	"cmp"
	"strings"

	"github.com/steer-dev/steer/generate/plural"
)

// GVK names a kind the way that kubebuilder's flags do.
type GVK struct {
	Group   string // without the domain of the project; may be empty
	Version string
	Kind    string
}

func (g GVK) String() string {
	if g.Group == "" {
		return g.Version + " " + g.Kind
	}
	return g.Group + "/" + g.Version + " " + g.Kind
}

// PluralOf is the name of a kind's resource.
func PluralOf(kind string) string { return strings.ToLower(plural.Of(kind)) }

// Qualified is the API group of a group in a domain.
func Qualified(group, domain string) string {
	if group == "" || domain == "" {
		return cmp.Or(group, domain)
	}
	return group + "." + domain
}

// GoName makes an identifier of a group or domain: what Go does not allow is left out.
func GoName(name string) string {
	return strings.NewReplacer("-", "", ".", "").Replace(name)
}

// BuiltinDomain is the domain of a group of k8s.io/api; ok is false for a group that
// is not there.
func BuiltinDomain(group string) (domain string, ok bool) {
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
