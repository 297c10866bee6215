// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/url"
	"strings"
)

// ask returns a request about the seed's object, or the kind's, which is not simply a
// write of the whole: a patch, an apply, strictness about fields, a scale, an eviction, a
// deletion, a table or a selection.
func (m *mutator) ask(from seed) *request {
	path := from.target + "/" + from.name()
	forms := []func(seed, string) *request{m.strict, m.selection, m.tables}
	if from.exists {
		forms = append(forms, m.patch, m.patch, m.jsonPatch, m.apply, m.scale, m.deletion, m.evict)
	}
	return forms[m.random.IntN(len(forms))](from, path)
}

// word picks one of a few texts.
func (m *mutator) word(from ...string) string { return from[m.random.IntN(len(from))] }

// fragment returns one place of a changed object with what leads to it, and how it was
// changed.
func (m *mutator) fragment(from seed) (map[string]any, []string) {
	body := clone(from.body).(map[string]any)
	places := m.places(from, body)
	at := places[m.random.IntN(len(places))]
	how := m.once(at)
	steps := strings.Split(strings.TrimPrefix(at.path, "."), ".")
	kept, inner := map[string]any{}, any(body)
	into := kept
	for _, step := range steps {
		name, _, _ := strings.Cut(step, "[")
		object, ok := inner.(map[string]any)
		if !ok || name == "" || slicesOf(object[name]) {
			if ok && name != "" {
				into[name] = object[name]
			}
			return kept, []string{how}
		}
		value, has := object[name]
		nested, isObject := value.(map[string]any)
		switch {
		case !has:
			into[name] = nil
			return kept, []string{how}
		case !isObject:
			into[name] = value
			return kept, []string{how}
		case m.random.IntN(6) == 0 || step == steps[len(steps)-1]:
			into[name] = value
			return kept, []string{how}
		}
		next := map[string]any{}
		into[name] = next
		into, inner = next, nested
	}
	return kept, []string{how}
}

func slicesOf(value any) bool {
	_, list := value.([]any)
	return list
}

// patch is a merge patch or a strategic one, sometimes of the status.
func (m *mutator) patch(from seed, path string) *request {
	body, how := m.fragment(from)
	media := m.word("merge-patch", "strategic-merge-patch")
	if status, has := m.shapes.of(from.gvk).Properties["status"]; has && m.random.IntN(4) == 0 {
		path += "/status"
		body["status"] = m.shapes.make(m.random, status, "status", m.pool, 3)
	}
	return &request{method: "PATCH", target: path + "?" + dryRun, header: "Content-Type: application/" + media + "+json", body: body, how: append(how, media)}
}

// jsonPatch is one to three operations.
func (m *mutator) jsonPatch(from seed, path string) *request {
	body := clone(from.body).(map[string]any)
	places := m.places(from, body)
	var operations []any
	for range 1 + m.random.IntN(3) {
		at, other := places[m.random.IntN(len(places))], places[m.random.IntN(len(places))]
		operation := map[string]any{"op": m.word("add", "add", "replace", "replace", "remove", "test", "move", "copy", "other"), "path": pointer(at.path)}
		switch operation["op"] {
		case "move", "copy":
			operation["from"] = pointer(other.path)
		case "test":
			operation["value"] = at.value()
		case "add", "replace":
			operation["value"] = m.shapes.make(m.random, at.shape, at.name, m.pool, 3)
			if _, list := at.value().([]any); list && m.random.IntN(2) == 0 {
				operation["path"] = pointer(at.path) + "/" + m.word("-", "0", "1", "7", "x")
			}
		}
		operations = append(operations, operation)
	}
	return &request{method: "PATCH", target: path + "?" + dryRun, header: "Content-Type: application/json-patch+json", list: operations, how: []string{"json-patch"}}
}

// pointer writes a path as a JSON pointer.
func pointer(path string) string {
	path = strings.NewReplacer("~", "~0", "/", "~1").Replace(path)
	return strings.NewReplacer("[", "/", "]", "", ".", "/").Replace(path)
}

// apply is a server-side apply by another manager.
func (m *mutator) apply(from seed, path string) *request {
	body, how := m.fragment(from)
	body["apiVersion"], body["kind"] = from.body["apiVersion"], from.body["kind"]
	target := path + "?" + dryRun + "&fieldManager=" + m.word("other", "oracle")
	if m.random.IntN(2) == 0 {
		target += "&force=true"
	}
	return &request{method: "PATCH", target: target, header: "Content-Type: application/apply-patch+yaml", body: body, how: append(how, "apply")}
}

// strict is a creation with an unknown field.
func (m *mutator) strict(from seed, _ string) *request {
	body := clone(from.body).(map[string]any)
	r := &request{method: "POST", target: from.creation(), body: body, how: []string{"unknown fields"}}
	if level := m.word("", "Strict", "Warn", "Ignore", "Other"); level != "" {
		r.target += "&fieldValidation=" + level
	}
	for range 1 + m.random.IntN(3) {
		places := m.places(from, body)
		at := places[m.random.IntN(len(places))]
		if object, ok := at.value().(map[string]any); ok {
			object[m.word("unknown", "Spec", "metaData", "specs", "x")] = m.word("1", "text")
			r.how = append(r.how, "in "+at.path)
		}
	}
	return r
}

// selection is a list by fields.
func (m *mutator) selection(from seed, _ string) *request {
	label := m.word("metadata.name", "metadata.namespace", "metadata.uid", "metadata.labels.a", "name", "spec.nodeName", "spec.restartPolicy", "spec.schedulerName",
		"spec.serviceAccountName", "spec.hostNetwork", "status.phase", "status.podIP", "status.podIPs", "status.nominatedNodeName", "spec.unschedulable",
		"status.replicas", "type", "spec.clusterIP", "spec.type", "status.successful", "spec.signerName", "involvedObject.name", "involvedObject.kind", "reason",
		"source", "type", "reportingComponent", "regarding.name", "spec.nodeName", "spec.parentRef.resource", "spec.driver", "spec", "spec.replicas")
	target := from.target
	if m.random.IntN(5) == 0 {
		if at := strings.Index(target, "/namespaces/"); at >= 0 {
			parts := strings.Split(target[at+1:], "/")
			if len(parts) > 2 {
				target = target[:at] + "/" + strings.Join(parts[2:], "/")
			}
		}
	}
	query := label + m.word("=", "==", "!=", " in ", "") + m.word("", from.name(), "default", "Running", "true", "0", "a,b")
	return &request{method: "GET", target: target + "?fieldSelector=" + url.QueryEscape(query) + "&limit=3", header: "Accept: application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
		how: []string{query}}
}

// tables asks for the columns of the kind, with the object as it is.
func (m *mutator) tables(from seed, path string) *request {
	media := "application/json;as=Table;v=v1;g=meta.k8s.io"
	target := from.target + "?limit=3"
	if from.exists && m.random.IntN(3) > 0 {
		target = path + "?"
		media = m.word(media, media, "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io")
	}
	if include := m.word("", "None", "Metadata", "Object", "Other"); include != "" {
		target += "&includeObject=" + include
	}
	return &request{method: "GET", target: target, header: "Accept: " + media, how: []string{"table"}}
}

// scale writes or patches the scale, or another subresource that there may be.
func (m *mutator) scale(from seed, path string) *request {
	sub := m.word("scale", "scale", "scale", "status", "approval", "finalize", "resize", "ephemeralcontainers", "nothing")
	r := &request{method: m.word("GET", "PUT", "PATCH", "POST", "DELETE"), target: path + "/" + sub + "?" + dryRun, how: []string{sub}}
	switch r.method {
	case "GET":
		r.target = path + "/" + sub
	case "PUT", "POST":
		if sub == "scale" {
			r.body = map[string]any{"apiVersion": m.word("autoscaling/v1", "autoscaling/v2"), "kind": "Scale", "metadata": map[string]any{"name": m.word(from.name(), from.name(), "other")},
				"spec": map[string]any{"replicas": numbers[m.random.IntN(len(numbers))]}}
		} else {
			r.body = clone(from.body).(map[string]any)
		}
	case "PATCH":
		r.header = "Content-Type: application/" + m.word("merge-patch", "strategic-merge-patch") + "+json"
		r.body = map[string]any{"spec": map[string]any{"replicas": numbers[m.random.IntN(len(numbers))]}}
	}
	return r
}

// deletion is a dry run, with or without what has to hold.
func (m *mutator) deletion(_ seed, path string) *request {
	options := map[string]any{"apiVersion": "v1", "kind": "DeleteOptions", "dryRun": []any{"All"}}
	for range m.random.IntN(3) {
		switch m.random.IntN(5) {
		case 0:
			options["propagationPolicy"] = m.word("Orphan", "Foreground", "Background", "Other", "")
		case 1:
			options["gracePeriodSeconds"] = numbers[m.random.IntN(len(numbers))]
		case 2:
			options["preconditions"] = map[string]any{m.word("uid", "resourceVersion"): m.word("1", "other", "")}
		case 3:
			options["orphanDependents"] = m.random.IntN(2) == 0
		case 4:
			options[m.word("unknown", "dryRun", "kind", "apiVersion")] = m.word("x", "v1", "All")
		}
	}
	return &request{method: "DELETE", target: path, body: options, how: []string{"delete"}}
}

// evict is an eviction of whatever it is.
func (m *mutator) evict(from seed, path string) *request {
	sub, kind, version := "eviction", "Eviction", "policy/v1"
	if m.random.IntN(3) == 0 {
		sub, kind, version = "binding", "Binding", "v1"
	}
	body := map[string]any{"apiVersion": version, "kind": kind, "metadata": map[string]any{"name": m.word(from.name(), "other", "")}}
	if sub == "binding" {
		body["target"] = map[string]any{"kind": m.word("Node", "Pod", ""), "name": m.word("n", "", "a b")}
	}
	return &request{method: "POST", target: path + "/" + sub + "?" + dryRun, body: body, how: []string{sub}}
}
