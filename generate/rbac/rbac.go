// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rbac makes ClusterRoles and Roles of the rules that markers beside the
// code ask for:
//
//	// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch
//
// Rules are merged as far as they mean the same, in four passes: the verbs of rules
// for the same things, then the resources, the groups and the URLs of rules that
// differ in nothing else. The result is sorted, so that the order of the sources
// does not show.
package rbac

import (
	"cmp"
	"slices"
	"strings"

	"github.com/steer-dev/steer/generate/load"
	"github.com/steer-dev/steer/generate/markers"
	"github.com/steer-dev/steer/generate/yaml"
)

// Options are the arguments of the generator on the command line.
type Options struct {
	RoleName string `help:"The name of the ClusterRole."`
	FileName string `marker:",optional" help:"The name of the output. Default: role.yaml."`
	// LeaderElection is not of controller-gen.
	LeaderElection bool   `marker:",optional" help:"Add a Role, NAME-leader-election, with the rights on leases and events that leader election needs (not of controller-gen). It has no namespace: apply it to that of the operator."`
	HeaderFile     string `marker:",optional" help:"A file to put before the output, for example a licence."`
	Year           string `marker:",optional" help:"What replaces \" YEAR\" in the header."`
}

// Generator makes one file with a role for each namespace and role name that
// markers give; rules without a namespace make a ClusterRole.
type Generator struct{ Options Options }

const ruleMarker = "kubebuilder:rbac"

type rule struct {
	Groups        []string `marker:",optional" help:"API groups; core or \"\" is the core group."`
	Resources     []string `marker:",optional" help:"Resources, with a subresource after a slash."`
	ResourceNames []string `marker:",optional" help:"Only objects with these names."`
	Verbs         []string `help:"get, list, watch, create, update, patch, delete, deletecollection or *."`
	URLs          []string `marker:"urls,optional" help:"Paths that are no resources, for example /metrics."`
	Namespace     string   `marker:",optional" help:"Makes the rule part of a Role in this namespace."`
	RoleName      string   `marker:",optional" help:"The name of the role, if not the default."`
}

// Markers are the definitions of the markers that the generator reads.
func Markers() []*markers.Definition {
	return []*markers.Definition{
		markers.Define[rule](ruleMarker, markers.Package, markers.Help{Category: "RBAC", Summary: "What the program may do. Repeatable."}),
	}
}

// Wanted reports whether any root has rules.
func Wanted(p *load.Program) bool {
	return slices.ContainsFunc(p.Roots, func(pkg *load.Package) bool { return p.PackageMarkers(pkg).Has(ruleMarker) })
}

// Need asks for nothing: rules stand in comments.
func (g *Generator) Need(*load.Program) {}

type role struct{ namespace, name string }

// Generate makes the roles.
func (g *Generator) Generate(p *load.Program) ([]load.Output, error) {
	rules := map[role][]*rule{}
	var roles []role
	for _, pkg := range p.Roots {
		for _, r := range markers.All[rule](p.PackageMarkers(pkg), ruleMarker) {
			to := role{r.Namespace, cmp.Or(r.RoleName, g.Options.RoleName)}
			if rules[to] == nil {
				roles = append(roles, to)
			}
			rules[to] = append(rules[to], split(r)...)
		}
	}
	if len(roles) == 0 {
		return nil, nil
	}
	slices.SortFunc(roles, func(a, b role) int {
		return cmp.Or(strings.Compare(a.namespace, b.namespace), strings.Compare(a.name, b.name))
	})
	header, err := p.Header(g.Options.HeaderFile, g.Options.Year)
	if err != nil {
		return nil, err
	}
	out := []byte(header)
	for _, to := range roles {
		out = append(out, "---\n"...)
		out = yaml.Mapping(out, 0, to.object(merge(rules[to])))
	}
	if g.Options.LeaderElection {
		out = append(out, "---\n"...)
		out = yaml.Mapping(out, 0, leaderElection(g.Options.RoleName))
	}
	return []load.Output{{Name: cmp.Or(g.Options.FileName, "role.yaml"), Data: out}}, nil
}

// leaderElection is the Role of leader election for the operator's own namespace.
func leaderElection(roleName string) map[string]any {
	object := role{name: roleName + "-leader-election"}.object([]*rule{
		{Groups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"create", "get", "list", "update", "watch"}},
		{Groups: []string{"events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}},
	})
	object["kind"] = "Role"
	return object
}

// split makes a rule for each resource of a marker.
func split(r rule) []*rule {
	one := func(resources []string) *rule {
		groups := slices.Clone(r.Groups)
		for i, group := range groups {
			if group == "core" {
				groups[i] = ""
			}
		}
		n := &rule{Groups: groups, Resources: resources, ResourceNames: slices.Clone(r.ResourceNames), Verbs: slices.Clone(r.Verbs), URLs: slices.Clone(r.URLs)}
		n.normalise()
		return n
	}
	if len(r.Resources) == 0 {
		return []*rule{one(nil)}
	}
	rules := make([]*rule, len(r.Resources))
	for i, resource := range r.Resources {
		rules[i] = one([]string{resource})
	}
	return rules
}

func (r *rule) normalise() {
	for _, list := range []*[]string{&r.Groups, &r.Resources, &r.ResourceNames, &r.Verbs, &r.URLs} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
}

func (r *rule) key(lists ...[]string) string {
	var key strings.Builder
	for i, list := range lists {
		if i > 0 {
			key.WriteString(" + ")
		}
		key.WriteString(strings.Join(list, "&"))
	}
	return key.String()
}

func (r *rule) subject() string { return r.key(r.Groups, r.Resources, r.ResourceNames, r.URLs) }

// merge joins rules that differ in one respect only.
func merge(rules []*rule) []*rule {
	rules = join(rules, (*rule).subject, func(a, b *rule) { a.Verbs = append(a.Verbs, b.Verbs...) })
	rules = join(rules, func(r *rule) string { return r.key(r.Groups, r.ResourceNames, r.URLs, r.Verbs) },
		func(a, b *rule) { a.Resources = append(a.Resources, b.Resources...) })
	rules = join(rules, func(r *rule) string { return r.key(r.Resources, r.ResourceNames, r.URLs, r.Verbs) },
		func(a, b *rule) { a.Groups = append(a.Groups, b.Groups...) })
	rules = join(rules, func(r *rule) string { return r.key(r.Groups, r.Resources, r.ResourceNames, r.Verbs) },
		func(a, b *rule) { a.URLs = append(a.URLs, b.URLs...) })
	rules = join(rules, (*rule).subject, func(a, b *rule) { a.Verbs = append(a.Verbs, b.Verbs...) })
	slices.SortStableFunc(rules, func(a, b *rule) int { return strings.Compare(a.subject(), b.subject()) })
	for _, r := range rules {
		if slices.Contains(r.Verbs, "*") {
			r.Verbs = []string{"*"}
		}
	}
	return rules
}

// join folds the rules with equal keys into the first of them.
func join(rules []*rule, key func(*rule) string, into func(a, b *rule)) []*rule {
	first := map[string]*rule{}
	var kept []*rule
	for _, r := range rules {
		k := key(r)
		if a := first[k]; a != nil {
			into(a, r)
			continue
		}
		first[k] = r
		kept = append(kept, r)
	}
	for _, r := range kept {
		r.normalise()
	}
	return kept
}

func (to role) object(rules []*rule) map[string]any {
	metadata := map[string]any{"name": to.name}
	kind := "ClusterRole"
	if to.namespace != "" {
		kind, metadata["namespace"] = "Role", to.namespace
	}
	list := make([]any, len(rules))
	for i, r := range rules {
		entry := map[string]any{"verbs": texts(r.Verbs)}
		for key, values := range map[string][]string{
			"apiGroups": r.Groups, "resources": r.Resources, "resourceNames": r.ResourceNames, "nonResourceURLs": r.URLs,
		} {
			if len(values) > 0 {
				entry[key] = texts(values)
			}
		}
		list[i] = entry
	}
	return map[string]any{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": metadata, "rules": list}
}

func texts(list []string) []any {
	values := make([]any, len(list))
	for i, text := range list {
		values[i] = text
	}
	return values
}
