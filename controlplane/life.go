// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bytes"
	"encoding/json"

	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/storage"
)

// lifeOf reads what decides over the life of a stored object. It is called for
// every write and, at the start, for every object there is, most of which have
// neither owners nor finalizers; so it looks only at what it needs.
func lifeOf(rec *storage.Record) *step.Object {
	metadata := member(rec.Value, "metadata")
	uid := member(metadata, "uid")
	if len(uid) < 3 || uid[0] != '"' {
		return nil
	}
	out := &step.Object{
		UID:      types.UID(uid[1 : len(uid)-1]), // never has escapes
		Deleting: isSet(member(metadata, "deletionTimestamp")),
	}
	if owners := member(metadata, "ownerReferences"); isSet(owners) {
		if json.Unmarshal(owners, &out.Owners) != nil {
			return nil
		}
	}
	if finalizers := member(metadata, "finalizers"); isSet(finalizers) {
		if json.Unmarshal(finalizers, &out.Finalizers) != nil {
			return nil
		}
	}
	return out
}

func isSet(value []byte) bool { return len(value) > 0 && !bytes.Equal(value, []byte("null")) }

// member returns the value of a member of a JSON object as it is written, or
// nil. The object must be valid JSON in the form that the server stores: without
// space between its parts.
func member(object []byte, name string) []byte {
	if len(object) == 0 || object[0] != '{' {
		return nil
	}
	for i := 1; i < len(object) && object[i] == '"'; {
		keyEnd := skip(object, i)
		if keyEnd >= len(object) || object[keyEnd] != ':' {
			return nil
		}
		valueEnd := skip(object, keyEnd+1)
		if string(object[i+1:keyEnd-1]) == name {
			return object[keyEnd+1 : valueEnd]
		}
		if valueEnd >= len(object) || object[valueEnd] != ',' {
			return nil
		}
		i = valueEnd + 1
	}
	return nil
}

// skip returns where the JSON value that begins at i ends.
func skip(text []byte, i int) int {
	depth := 0
	for ; i < len(text); i++ {
		switch text[i] {
		case '"':
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			depth++
			continue
		case '}', ']':
			if depth == 0 {
				return i // the end of what the value stands in
			}
			depth--
		case ',', ':':
			if depth == 0 {
				return i
			}
			continue
		default:
			continue
		}
		if depth == 0 {
			return min(i+1, len(text))
		}
	}
	return len(text)
}
