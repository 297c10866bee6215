// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// typeMeta of legacy documents, which are all in the core version.
func typeMeta(kind string) metav1.TypeMeta { return metav1.TypeMeta{APIVersion: "v1", Kind: kind} }

// Paths returns the paths of the documents, in the order of discovery.
func (d *Documents) Paths() []string {
	paths := []string{"/api", "/apis", "/apis/"}
	for _, g := range d.groups() {
		prefix := "/api"
		if g.name != "" {
			prefix = "/apis/" + g.name
			paths = append(paths, prefix)
		}
		for _, v := range g.versions {
			paths = append(paths, prefix+"/"+v.Version)
		}
	}
	return paths
}

// versionsDocument is /api. It has no apiVersion, for clients older than API versions.
func (d *Documents) versionsDocument() *metav1.APIVersions {
	out := &metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}}
	for _, g := range d.groups() {
		if g.name == "" {
			for _, v := range g.versions {
				out.Versions = append(out.Versions, v.Version)
			}
		}
	}
	out.ServerAddressByClientCIDRs = []metav1.ServerAddressByClientCIDR{
		{ClientCIDR: "0.0.0.0/0", ServerAddress: d.options.ServerAddress},
	}
	return out
}

// groupsDocument is /apis. Groups of one priority are sorted by the names of their APIServices, which
// begin with the version, unlike in the aggregated form.
func (d *Documents) groupsDocument() *metav1.APIGroupList {
	out := &metav1.APIGroupList{TypeMeta: typeMeta("APIGroupList"), Groups: []metav1.APIGroup{}}
	groups := slices.Clone(d.groups())
	slices.SortFunc(groups, func(a, b group) int {
		return cmp.Or(cmp.Compare(b.priority, a.priority), cmp.Compare(a.first, b.first))
	})
	for _, g := range groups {
		if g.name != "" {
			out.Groups = append(out.Groups, g.document())
		}
	}
	return out
}

// groupDocument is /apis/GROUP.
func (d *Documents) groupDocument(name string) (*metav1.APIGroup, bool) {
	for _, g := range d.groups() {
		if g.name == name {
			out := g.document()
			out.TypeMeta = typeMeta("APIGroup")
			return &out, true
		}
	}
	return nil, false
}

func (g *group) document() metav1.APIGroup {
	out := metav1.APIGroup{Name: g.name}
	for _, v := range g.versions {
		out.Versions = append(out.Versions, metav1.GroupVersionForDiscovery{GroupVersion: v.String(), Version: v.Version})
	}
	out.PreferredVersion = out.Versions[0]
	return out
}

// resourcesDocument is /apis/GROUP/VERSION, or /api/VERSION for the core group,
// whose document has no apiVersion.
func (d *Documents) resourcesDocument(name, version string) (*metav1.APIResourceList, bool) {
	for _, g := range d.groups() {
		for _, v := range g.versions {
			if g.name != name || v.Version != version {
				continue
			}
			out := &metav1.APIResourceList{
				TypeMeta: typeMeta("APIResourceList"), GroupVersion: v.String(), APIResources: []metav1.APIResource{},
			}
			if name == "" {
				out.APIVersion = ""
			}
			for _, r := range v.resources {
				out.APIResources = append(out.APIResources, r.documents()...)
			}
			return out, true
		}
	}
	return nil, false
}

// documents returns the entries of a resource and its subresources.
func (r *Resource) documents() []metav1.APIResource {
	var out []metav1.APIResource
	if len(r.Verbs) > 0 {
		out = append(out, metav1.APIResource{
			Name: r.Plural, SingularName: r.Singular, Namespaced: r.Namespaced, Kind: r.Kind, Verbs: r.Verbs,
			ShortNames: r.ShortNames, Categories: r.Categories,
			StorageVersionHash: storageVersionHash(r.Stored),
		})
	}
	for _, s := range r.Subresources {
		entry := metav1.APIResource{
			Name: r.Plural + "/" + s.Name, Namespaced: r.Namespaced, Kind: s.Kind.Kind, Verbs: s.Verbs,
		}
		if entry.Kind == "" {
			entry.Kind = r.Kind
		}
		if s.Kind.Version != "" && (s.Kind.Group != r.Group || s.Kind.Version != r.Version) {
			entry.Group, entry.Version = s.Kind.Group, s.Kind.Version
		}
		out = append(out, entry)
	}
	return out
}
