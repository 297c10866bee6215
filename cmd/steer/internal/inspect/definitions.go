// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/steer-dev/steer/cmd/steer/internal/command"
	"github.com/steer-dev/steer/cmd/steer/internal/webhookpaths"
	"github.com/steer-dev/steer/generate"
	"github.com/steer-dev/steer/scaffold/project"
)

// webhooks compares the paths that the code serves with markers and configurations, and
// what it converts with the CRDs.
func (l *linter) webhooks(ctx context.Context, p *project.Project, crds []generate.File) error {
	request, err := generate.Parse(nil, generate.Steer)
	if err != nil {
		return err
	}
	request.Dir = l.dir
	markers, err := request.Webhooks(ctx)
	if err != nil {
		return err
	}
	paths, err := webhookpaths.Read(l.dir, p, markers)
	if err != nil {
		return err
	}
	found, err := paths.Findings()
	if err != nil {
		return err
	}
	for _, line := range found {
		l.problem(line)
	}
	places, err := request.Places(ctx)
	if err != nil {
		return err
	}
	for _, file := range crds {
		objects, err := definitions(nil, file.Path, file.Data)
		if err != nil {
			return err
		}
		for _, crd := range objects {
			l.definition(p, crd, paths, places)
		}
	}
	return nil
}

// definition looks at what the API server takes of a CRD and an operator does not get on
// with.
func (l *linter) definition(p *project.Project, crd map[string]any, paths *webhookpaths.Paths, places *generate.Places) {
	group, _, _ := unstructured.NestedString(crd, "spec", "group")
	kind, _, _ := unstructured.NestedString(crd, "spec", "names", "kind")
	at := func(version string) string {
		for _, r := range p.Resources {
			if r.APIGroup() != group || r.Kind != kind || r.Version != version {
				continue
			}
			if found, ok := places.Find(r.Path, r.Kind, ""); ok {
				return fmt.Sprintf("%s:%d: ", command.Relative(found.Filename), found.Line)
			}
		}
		return ""
	}
	versions, _, _ := unstructured.NestedSlice(crd, "spec", "versions")
	fields, known, storage := map[string]string{}, "", ""
	for _, item := range versions {
		version, _ := item.(map[string]any)
		name, _ := version["name"].(string)
		properties, _, _ := unstructured.NestedMap(version, "schema", "openAPIV3Schema", "properties")
		_, split, _ := unstructured.NestedFieldNoCopy(version, "subresources", "status")
		if properties["status"] != nil && !split {
			l.problem(at(name) + kind + " has a status without the subresource, so its controller cannot write it; add // +kubebuilder:subresource:status above the type")
		}
		if place := at(name); place != "" {
			known = place
		}
		if stored, _ := version["storage"].(bool); stored {
			storage = name
		}
		fields[name] = strings.Join(names(properties, "", nil), ", ")
	}
	_, converted, _ := unstructured.NestedFieldNoCopy(crd, "spec", "conversion", "webhook")
	place, converts := paths.Converts(group, kind)
	switch {
	case converted && !converts:
		l.problem(known + kind + " is converted by a webhook that nothing serves, so its other versions cannot be read; add webhook.AddConversion to Setup, as go tool steer create webhook --conversion does")
	case converts && !converted:
		l.problem(place + ": " + kind + " is converted here, but its CustomResourceDefinition does not say so; add // +kubebuilder:conversion:webhook above the type of its storage version")
	case !converted && len(slices.Compact(slices.Sorted(maps.Values(fields)))) > 1:
		l.problem(known + kind + " has versions with other fields and no conversion, so what one does not have is lost; run go tool steer create webhook --group " +
			strings.TrimSuffix(group, "."+p.Domain) + " --version " + storage + " --kind " + kind + " --conversion")
	}
}

// names are the paths of the fields of a schema, in order.
func names(properties map[string]any, prefix string, to []string) []string {
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		to = append(to, prefix+name)
		schema, _ := properties[name].(map[string]any)
		for {
			items, ok := schema["items"].(map[string]any)
			if !ok {
				break
			}
			schema = items
		}
		below, _ := schema["properties"].(map[string]any)
		to = names(below, prefix+name+".", to)
	}
	return to
}
