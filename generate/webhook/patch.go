// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/strategicpatch"
	kjson "sigs.k8s.io/json"
)

// patch applies a strategic merge patch to a webhook. Fields that a webhook does
// not have are an error, also where the patch would remove them.
func patch[T any](webhook *T, text string) error {
	if text == "" {
		return nil
	}
	var fields map[string]any
	if err := strict([]byte(text), &fields); err != nil {
		return fmt.Errorf("patch: %w", err)
	}
	schema, err := strategicpatch.NewPatchMetaFromStruct(webhook)
	if err != nil {
		return fmt.Errorf("patch: %w", err)
	}
	if err := withoutDirectives(fields, schema); err != nil {
		return fmt.Errorf("patch: %w", err)
	}
	plain, err := json.Marshal(fields)
	if err != nil {
		return fmt.Errorf("patch: %w", err)
	}
	if err := strict(plain, new(T)); err != nil {
		return fmt.Errorf("patch: %w", err)
	}
	before, err := json.Marshal(webhook)
	if err != nil {
		return fmt.Errorf("patch: %w", err)
	}
	after, err := strategicpatch.StrategicMergePatch(before, []byte(text), webhook)
	if err != nil {
		return fmt.Errorf("patch: %w", err)
	}
	var patched T
	if err := strict(after, &patched); err != nil {
		return fmt.Errorf("patch: %w", err)
	}
	*webhook = patched
	return nil
}

// strict decodes JSON and refuses unknown, repeated and miscased fields.
func strict(text []byte, into any) error {
	wrong, err := kjson.UnmarshalStrict(text, into)
	if err == nil && len(wrong) > 0 {
		err = wrong[0]
	}
	return err
}

// withoutDirectives removes the patch language's own keys, so that what remains
// can be checked against the webhook's type.
func withoutDirectives(fields map[string]any, schema strategicpatch.LookupPatchMeta) error {
	for key, value := range fields {
		name := key
		for _, directive := range []string{"$setElementOrder/", "$deleteFromPrimitiveList/"} {
			name = strings.TrimPrefix(name, directive)
		}
		if name != key {
			if _, _, err := schema.LookupPatchMetadataForSlice(name); err != nil {
				return fmt.Errorf("%s: %w", key, err)
			}
		}
		if strings.HasPrefix(key, "$") {
			text, isText := value.(string)
			_, isList := value.([]any)
			if key == "$patch" && isText && (text == "delete" || text == "replace") || key != "$patch" && isList && (name != key || key == "$retainKeys") {
				delete(fields, key)
			}
			continue
		}
		if kind := schema.Name(); kind != "struct" && kind != "ptr" {
			continue // a map: its keys are the user's
		}
		if err := withoutNested(key, value, schema); err != nil {
			return err
		}
	}
	return nil
}

func withoutNested(key string, value any, schema strategicpatch.LookupPatchMeta) error {
	if list, ok := value.([]any); ok {
		item, _, err := schema.LookupPatchMetadataForSlice(key)
		if err != nil {
			return fmt.Errorf("field %q: %w", key, err)
		}
		for _, entry := range list {
			if entry, ok := entry.(map[string]any); ok {
				if err := withoutDirectives(entry, item); err != nil {
					return err
				}
			}
		}
		return nil
	}
	field, _, err := schema.LookupPatchMetadataForStruct(key)
	if err != nil {
		return fmt.Errorf("field %q: %w", key, err)
	}
	if value, ok := value.(map[string]any); ok {
		return withoutDirectives(value, field)
	}
	return nil
}
