// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"encoding/json"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/client"
)

// owned reports whether a field manager still owns, by apply, every field of a
// body that it applied. Whoever changes such a field takes it over, so then the
// fields are as the server made them of the body.
func owned(live client.Object, manager string, body map[string]any) bool {
	for _, entry := range live.GetManagedFields() {
		if entry.Manager != manager || entry.Operation != metav1.ManagedFieldsOperationApply ||
			entry.Subresource != "" || entry.APIVersion != body["apiVersion"] || entry.FieldsV1 == nil {
			continue
		}
		var fields map[string]any
		return json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields) == nil && coversObject(fields, body)
	}
	return false
}

func coversObject(fields, body map[string]any) bool {
	for k, v := range body {
		if hidden(k) {
			continue
		}
		if k == "metadata" {
			if !coversMetadata(fields["f:metadata"], v) {
				return false
			}
			continue
		}
		if !coversField(fields, k, v) {
			return false
		}
	}
	return true
}

// coversMetadata leaves out what has no managers.
func coversMetadata(fields, metadata any) bool {
	f, _ := fields.(map[string]any)
	m, _ := metadata.(map[string]any)
	for k, v := range m {
		switch k {
		case "name", "namespace", "uid", "resourceVersion":
			continue
		}
		if !coversField(f, k, v) {
			return false
		}
	}
	return true
}

func coversField(fields map[string]any, name string, value any) bool {
	sub, ok := fields["f:"+name]
	if !ok {
		return claimsNothing(value)
	}
	return covers(sub, value)
}

// claimsNothing reports whether an apply of the value owns no field.
func claimsNothing(value any) bool {
	list, ok := value.([]any)
	return ok && len(list) == 0
}

// covers reports whether a set of fields, in the notation of FieldsV1, holds all
// of a value. A set without members is a leaf: the value is owned as a whole.
func covers(fields, value any) bool {
	set, ok := fields.(map[string]any)
	if !ok {
		return false
	}
	if len(set) == 0 {
		return true
	}
	switch v := value.(type) {
	case map[string]any:
		for k, item := range v {
			if !coversField(set, k, item) {
				return false
			}
		}
	case []any:
		for _, item := range v {
			if !coversItem(set, item) {
				return false
			}
		}
	}
	return true
}

// coversItem looks for the item of a list: by its value, or by its keys. A key that
// the item does not have is a default.
func coversItem(set map[string]any, item any) bool {
	for member, fields := range set {
		kind, text, _ := strings.Cut(member, ":")
		var id any
		if kind != "k" && kind != "v" || json.Unmarshal([]byte(text), &id) != nil {
			continue
		}
		if kind == "v" {
			if equalScalars(id, item) {
				return true
			}
			continue
		}
		keys, _ := id.(map[string]any)
		content, ok := item.(map[string]any)
		if ok && hasKeys(content, keys) && covers(fields, item) {
			return true
		}
	}
	return false
}

func hasKeys(item, keys map[string]any) bool {
	for k, want := range keys {
		if have, ok := item[k]; ok && !equalScalars(have, want) {
			return false
		}
	}
	return true
}
