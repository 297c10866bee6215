// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"fmt"
	"go/token"
	"path/filepath"
	"strings"

	"github.com/steer-dev/steer/generate/load"
	"github.com/steer-dev/steer/generate/markers"
	"github.com/steer-dev/steer/generate/plural"
	"github.com/steer-dev/steer/generate/schema"
)

// definition is a CustomResourceDefinition.
type definition struct {
	group, kind          string
	plural, singular     string
	shortNames           []string
	categories           []string
	scope                string
	annotations, labels  map[string]string
	versions             []version
	conversion           *conversionWebhook
	dir                  string // of a custom API server; empty: it is for clusters
	preserveUnknownField *bool
}

type version struct {
	name             string
	served, storage  bool
	deprecated       bool
	warning          *string
	schema           *schema.Schema
	columns          []printColumn
	locations        []location // of columns and scale
	selectable       []string
	hasSubresources  bool
	status           bool
	scale            *subresourceScale
	decl             *load.TypeDecl
	storageMarkerPos token.Pos
}

// defaultPlural is the resource name of a kind when no marker gives one.
func defaultPlural(kind string) string { return strings.ToLower(plural.Of(kind)) }

// ResourceName is the resource name of a kind with the given markers.
func ResourceName(kind string, set markers.Set) string {
	name := defaultPlural(kind)
	for _, r := range markers.All[resource](set, "kubebuilder:resource") {
		if r.Path != "" {
			name = r.Path
		}
	}
	return name
}

func newDefinition(group, kind string) *definition {
	return &definition{
		group: group, kind: kind,
		plural: defaultPlural(kind), singular: strings.ToLower(kind),
		scope: "Namespaced",
	}
}

// The markers on a type that is a kind.
type (
	resource struct {
		Path       string   `marker:",optional" help:"The plural name in URLs. Default: the kind's plural in lower case."`
		ShortName  []string `marker:",optional" help:"Short names for the command line, for example ct;cts."`
		Categories []string `marker:",optional" help:"Groups of resources to list it with, for example all."`
		Singular   string   `marker:",optional" help:"The singular name. Default: the kind in lower case."`
		Scope      string   `marker:",optional" help:"Namespaced (default) or Cluster."`
	}
	printColumn struct {
		Name        string `help:"The column's header."`
		Type        string `help:"string, integer, number, boolean or date."`
		JSONPath    string `marker:"JSONPath" help:"Where the value is, for example .status.phase."`
		Description string `marker:",optional" help:"What the column says."`
		Format      string `marker:",optional" help:"An OpenAPI format for the type."`
		Priority    int32  `marker:",optional" help:"0 is always shown, anything above only in wide output."`
	}
	subresourceScale struct {
		SpecPath     string  `marker:"specpath" help:"Where the wanted replicas are, for example .spec.replicas."`
		StatusPath   string  `marker:"statuspath" help:"Where the observed replicas are, for example .status.replicas."`
		SelectorPath *string `marker:"selectorpath" help:"Where the label selector is, as text, for autoscaling."`
	}
	deprecatedVersion struct {
		Warning *string `help:"What clients that use the version are told."`
	}
	metadata struct {
		Annotations []string `marker:",optional" help:"key=value pairs for the definition's annotations."`
		Labels      []string `marker:",optional" help:"key=value pairs for the definition's labels."`
	}
	selectableField struct {
		JSONPath string `marker:"JSONPath" help:"The field that field selectors may name, for example .spec.nodeName."`
	}
	conversionWebhook struct {
		ServiceName      string   `marker:",optional" help:"The service that converts. Default: webhook-service."`
		ServiceNamespace string   `marker:",optional" help:"Its namespace. Default: system."`
		ServicePort      int32    `marker:",optional" help:"Its port. Default: the API server's, 443."`
		Path             string   `marker:",optional" help:"The path it converts under. Default: /convert."`
		ReviewVersions   []string `marker:"conversionReviewVersions,optional" help:"The review versions it understands. Default: v1."`
	}
)

// specMarkers are the definitions of markers that change the definition rather
// than a schema.
func specMarkers() []*markers.Definition {
	help := func(summary string) markers.Help { return markers.Help{Category: "CRD", Summary: summary} }
	return []*markers.Definition{
		markers.Define[string]("groupName", markers.Package, help("The API group of the package's kinds.")).Lenient(),
		markers.Define[string]("versionName", markers.Package, help("The API version of the package's kinds. Default: the package's name.")),
		markers.Define[struct{}]("kubebuilder:skip", markers.Package, help("The package is no API version.")),
		markers.Define[struct{}](validation+"Optional", markers.Package, markers.Help{Category: "CRD validation", Summary: "Fields may be left out unless they say otherwise.", Deprecated: "optional"}),
		markers.Define[struct{}](validation+"Required", markers.Package, markers.Help{Category: "CRD validation", Summary: "Fields must be set unless they say otherwise (the default).", Deprecated: "required"}),

		markers.Define[struct{}]("kubebuilder:subresource:status", markers.Type, help("Status is written through its own endpoint.")),
		markers.Define[subresourceScale]("kubebuilder:subresource:scale", markers.Type, help("kubectl scale and autoscalers work on the kind.")),
		markers.Define[printColumn]("kubebuilder:printcolumn", markers.Type, help("A column of kubectl get. Repeatable; columns come in source order.")),
		markers.Define[resource]("kubebuilder:resource", markers.Type, help("Names and scope of the kind.")),
		markers.Define[struct{}]("kubebuilder:storageversion", markers.Type, help("Objects are stored in this version.")),
		markers.Define[struct{}]("kubebuilder:skipversion", markers.Type, help("The version is left out of the definition.")),
		markers.Define[struct{}]("kubebuilder:unservedversion", markers.Type, help("The version is not served any more.")),
		markers.Define[deprecatedVersion]("kubebuilder:deprecatedversion", markers.Type, help("Clients that use the version are warned.")),
		markers.Define[metadata]("kubebuilder:metadata", markers.Type, help("Annotations and labels of the definition. Repeatable.")),
		markers.Define[selectableField]("kubebuilder:selectablefield", markers.Type, help("A field that field selectors may name. Repeatable.")),
	}
}

// definitionsMarker names the folder of the definitions of a custom API server.
const definitionsMarker = "steer:definitions"

// optInMarkers extend what controller-gen understands.
func optInMarkers() []*markers.Definition {
	help := func(summary string) markers.Help { return markers.Help{Category: "CRD", Summary: summary} }
	return []*markers.Definition{
		markers.Define[string](definitionsMarker, markers.Package, help("A folder for the definitions of the package's kinds, relative to that of the run, where a custom API server embeds them: clusters do not get them.")),
		markers.Define[conversionWebhook]("kubebuilder:conversion:webhook", markers.Type, help("Versions are converted by a webhook: adds the conversion stanza.")),
	}
}

// apply changes the definition, and the version of it that the type is, as the
// markers of the type say.
func (d *definition) apply(p *load.Program, set markers.Set, v *version) {
	for _, marker := range set {
		switch data := marker.Data.(type) {
		case resource:
			d.resource(data)
		case printColumn:
			v.columns = append(v.columns, data)
			v.locations = append(v.locations, location{marker.Pos, "printer column " + data.Name, data.JSONPath})
			v.hasSubresources = true // as the API group's first tool did it
		case subresourceScale:
			v.scale, v.hasSubresources = &data, true
			v.locations = append(v.locations, location{marker.Pos, "subresource scale, specpath", data.SpecPath}, location{marker.Pos, "subresource scale, statuspath", data.StatusPath})
			if data.SelectorPath != nil {
				v.locations = append(v.locations, location{marker.Pos, "subresource scale, selectorpath", *data.SelectorPath})
			}
		case selectableField:
			v.selectable = append(v.selectable, data.JSONPath)
		case deprecatedVersion:
			v.deprecated, v.warning = true, data.Warning
		case conversionWebhook:
			d.conversion = &data
		case metadata:
			if err := d.metadata(data); err != nil {
				p.Problemf(marker.Pos, "+%s: %v", marker.Name, err)
			}
		case struct{}:
			switch marker.Name {
			case "kubebuilder:subresource:status":
				v.status, v.hasSubresources = true, true
			case "kubebuilder:storageversion":
				v.storage, v.storageMarkerPos = true, marker.Pos
			case "kubebuilder:unservedversion":
				v.served = false
			}
		}
	}
}

func (d *definition) resource(r resource) {
	if r.Path != "" {
		d.plural = r.Path
	}
	if r.Singular != "" {
		d.singular = r.Singular
	}
	d.shortNames, d.categories = r.ShortName, r.Categories
	d.scope = "Namespaced"
	if r.Scope != "" {
		d.scope = r.Scope
	}
}

func (d *definition) metadata(m metadata) error {
	for _, pair := range m.Annotations {
		key, value, ok := strings.Cut(pair, "=")
		if !ok {
			return fmt.Errorf("annotation %s is not of the form key=value", pair)
		}
		set(&d.annotations, key, value)
	}
	for _, pair := range m.Labels {
		key, value, ok := strings.Cut(pair, "=")
		if !ok {
			return fmt.Errorf("label %s is not of the form key=value", pair)
		}
		set(&d.labels, key, value)
	}
	return nil
}

// ClusterScoped reports whether the markers of a kind put it outside namespaces.
func ClusterScoped(set markers.Set) bool {
	for _, r := range markers.All[resource](set, "kubebuilder:resource") {
		if r.Scope == "Cluster" {
			return true
		}
	}
	return false
}

func set(m *map[string]string, key, value string) {
	if *m == nil {
		*m = map[string]string{}
	}
	(*m)[key] = value
}

// check reports what makes the definition impossible. Two storage versions used to
// slip through and are only a mistake when strict.
func (d *definition) check(p *load.Program, strict bool) {
	var storage []*version
	served := false
	for i := range d.versions {
		served = served || d.versions[i].served
		if d.versions[i].storage {
			storage = append(storage, &d.versions[i])
		}
	}
	at := d.versions[0].decl.Spec.Pos()
	if strict && d.group == "" {
		p.Problemf(at, "kind %s has no API group: write // +groupName=GROUP above the package clause, or // +kubebuilder:skip if the package is no API version", d.kind)
	}
	switch {
	case len(storage) == 0:
		p.Problemf(at, "no version of kind %s is its storage version: mark one with +kubebuilder:storageversion", d.kind)
	case len(storage) > 1 && strict:
		for _, v := range storage[1:] {
			other := p.Fset.Position(storage[0].storageMarkerPos)
			p.Problemf(v.storageMarkerPos, "kind %s has two storage versions: %s (line %d of %s) and %s",
				d.kind, storage[0].name, other.Line, filepath.Base(other.Filename), v.name)
		}
	}
	if !served {
		p.Problemf(at, "no version of kind %s is served", d.kind)
	}
	if strict && d.scope != "Namespaced" && d.scope != "Cluster" {
		p.Problemf(at, "kind %s: scope must be Namespaced or Cluster, not %s", d.kind, d.scope)
	}
}
