// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
)

// quote encodes a patched value for a refusal. Members are in the order of their names
// where something has changed, and elsewhere as raw has them, which was decoded from.
func quote(raw json.RawMessage, was, is any) (json.RawMessage, error) {
	if reflect.DeepEqual(was, is) {
		return raw, nil
	}
	switch is := is.(type) {
	case map[string]any:
		before, _ := was.(map[string]any)
		var members map[string]json.RawMessage
		if before == nil {
			break
		}
		if err := json.Unmarshal(raw, &members); err != nil {
			return nil, err
		}
		out := make(map[string]json.RawMessage, len(is))
		for name, value := range is {
			member, err := quote(members[name], before[name], value)
			if err != nil {
				return nil, err
			}
			out[name] = member
		}
		return json.Marshal(out)
	case []any:
		before, _ := was.([]any)
		var elements []json.RawMessage
		if before == nil {
			break
		}
		if err := json.Unmarshal(raw, &elements); err != nil {
			return nil, err
		}
		out := make([]json.RawMessage, len(is))
		for i, value := range is {
			at := slices.IndexFunc(before, func(v any) bool { return reflect.DeepEqual(v, value) })
			if at < 0 {
				at = i
			}
			var err error
			if at < len(before) {
				out[i], err = quote(elements[at], before[at], value)
			} else {
				out[i], err = json.Marshal(value)
			}
			if err != nil {
				return nil, err
			}
		}
		return json.Marshal(out)
	}
	return json.Marshal(is)
}

// strange are the findings about an object that is read in another form than it is in:
// it has none of the fields.
func strange(doc map[string]any) []error {
	var out []error
	for _, name := range slices.Sorted(maps.Keys(doc)) {
		if name != "kind" && name != "apiVersion" {
			out = append(out, fmt.Errorf("unknown field %q", name))
		}
	}
	return out
}
