// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bytes"
	"encoding/json"
)

// withoutManagedFields returns an object, a list or a Table without the managed fields of its
// objects. What cannot be parsed is returned as it is.
func withoutManagedFields(text []byte) []byte {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var content map[string]any
	if decoder.Decode(&content) != nil {
		return text
	}
	strip(content)
	items, _ := content["items"].([]any)
	for _, item := range items {
		strip(item)
	}
	rows, _ := content["rows"].([]any)
	for _, row := range rows {
		if row, ok := row.(map[string]any); ok {
			strip(row["object"])
		}
	}
	out, err := json.Marshal(content)
	if err != nil {
		return text
	}
	return out
}

func strip(object any) {
	content, _ := object.(map[string]any)
	if metadata, ok := content["metadata"].(map[string]any); ok {
		delete(metadata, "managedFields")
	}
}
