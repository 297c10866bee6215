// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"bytes"
	"encoding/json"

	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/storage"
)

// LifeOf reads what decides over the life of a stored object. It is called for
// every write and, at the start, for every object there is, most of which have
// neither owners nor finalizers; so it looks only at what it needs.
func LifeOf(rec *storage.Record) *Object {
	metadata := Member(rec.Value, "metadata")
	uid := Member(metadata, "uid")
	if len(uid) < 3 || uid[0] != '"' {
		return nil
	}
	out := &Object{
		UID:      types.UID(uid[1 : len(uid)-1]), // never has escapes
		Deleting: isSet(Member(metadata, "deletionTimestamp")),
	}
	if owners := Member(metadata, "ownerReferences"); isSet(owners) {
		if json.Unmarshal(owners, &out.Owners) != nil {
			return nil
		}
	}
	if finalizers := Member(metadata, "finalizers"); isSet(finalizers) {
		if json.Unmarshal(finalizers, &out.Finalizers) != nil {
			return nil
		}
	}
	return out
}

func isSet(value []byte) bool { return len(value) > 0 && !bytes.Equal(value, []byte("null")) }
