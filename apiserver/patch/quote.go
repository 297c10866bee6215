// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"encoding/json"
	"reflect"
	"slices"
)

// Quote encodes a patched value for an error message. kube-apiserver quotes
// unchanged parts as the stored JSON has them and encodes changed objects with sorted
// keys; raw is the JSON that was decoded to was.
func Quote(raw json.RawMessage, was, is any) (json.RawMessage, error) {
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
			member, err := Quote(members[name], before[name], value)
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
				out[i], err = Quote(elements[at], before[at], value)
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
