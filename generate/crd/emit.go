// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package crd

import "github.com/steer-dev/steer/generate/schema"

// write writes the definition as a document.
func (d *definition) write(w *schema.Writer) []byte {
	w.String(0, "apiVersion", "apiextensions.k8s.io/v1")
	w.String(0, "kind", "CustomResourceDefinition")
	w.Open(0, "metadata")
	w.Map(2, "annotations", d.annotations)
	w.Map(2, "labels", d.labels)
	w.String(2, "name", d.plural+"."+d.group)
	w.Open(0, "spec")
	if d.conversion != nil {
		w.Value(2, "conversion", d.conversion.stanza())
	}
	w.String(2, "group", d.group)
	w.Open(2, "names")
	w.Strings(4, "categories", d.categories)
	w.String(4, "kind", d.kind)
	w.String(4, "listKind", d.kind+"List")
	w.String(4, "plural", d.plural)
	w.Strings(4, "shortNames", d.shortNames)
	if d.singular != "" {
		w.String(4, "singular", d.singular)
	}
	if d.preserveUnknownField != nil {
		w.Value(2, "preserveUnknownFields", *d.preserveUnknownField)
	}
	w.String(2, "scope", d.scope)
	w.Open(2, "versions")
	for i := range d.versions {
		start := len(w.Out)
		d.versions[i].write(w, 4)
		copy(w.Out[start+2:], "- ")
	}
	return w.Finish()
}

func (c *conversionWebhook) stanza() map[string]any {
	or := func(text, otherwise string) string {
		if text == "" {
			return otherwise
		}
		return text
	}
	service := map[string]any{
		"name":      or(c.ServiceName, "webhook-service"),
		"namespace": or(c.ServiceNamespace, "system"),
		"path":      or(c.Path, "/convert"),
	}
	if c.ServicePort != 0 {
		service["port"] = int64(c.ServicePort)
	}
	versions := []any{}
	for _, v := range c.ReviewVersions {
		versions = append(versions, v)
	}
	if len(versions) == 0 {
		versions = append(versions, "v1")
	}
	return map[string]any{
		"strategy": "Webhook",
		"webhook": map[string]any{
			"clientConfig":             map[string]any{"service": service},
			"conversionReviewVersions": versions,
		},
	}
}

func (v *version) write(w *schema.Writer, column int) {
	if len(v.columns) > 0 {
		w.Open(column, "additionalPrinterColumns")
		for _, c := range v.columns {
			entry := map[string]any{"name": c.Name, "type": c.Type, "jsonPath": c.JSONPath}
			if c.Description != "" {
				entry["description"] = c.Description
			}
			if c.Format != "" {
				entry["format"] = c.Format
			}
			if c.Priority != 0 {
				entry["priority"] = int64(c.Priority)
			}
			w.Item(column, entry)
		}
	}
	if v.deprecated {
		w.Value(column, "deprecated", true)
	}
	if v.warning != nil {
		w.String(column, "deprecationWarning", *v.warning)
	}
	w.String(column, "name", v.name)
	w.Open(column, "schema")
	w.Child(column+2, "openAPIV3Schema", v.schema)
	if len(v.selectable) > 0 {
		w.Open(column, "selectableFields")
		for _, path := range v.selectable {
			w.Item(column, map[string]any{"jsonPath": path})
		}
	}
	w.Value(column, "served", v.served)
	w.Value(column, "storage", v.storage)
	if v.hasSubresources {
		subresources := map[string]any{}
		if v.scale != nil {
			scale := map[string]any{"specReplicasPath": v.scale.SpecPath, "statusReplicasPath": v.scale.StatusPath}
			if v.scale.SelectorPath != nil {
				scale["labelSelectorPath"] = *v.scale.SelectorPath
			}
			subresources["scale"] = scale
		}
		if v.status {
			subresources["status"] = map[string]any{}
		}
		w.Value(column, "subresources", subresources)
	}
}
