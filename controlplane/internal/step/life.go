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
// every object there is at the start, most of which have neither owners nor
// finalizers; so it looks only at what it needs.
func LifeOf(rec *storage.Record) *Object {
	var uid, deleted, owners, finalizers []byte
	m := metadataOf(rec)
	for m.next() {
		switch string(m.name) {
		case "uid":
			uid = m.value()
		case "deletionTimestamp":
			deleted = m.value()
		case "ownerReferences":
			owners = m.value()
		case "finalizers":
			finalizers = m.value()
		}
	}
	if len(uid) < 3 || uid[0] != '"' {
		return nil
	}
	out := &Object{
		UID:      types.UID(uid[1 : len(uid)-1]), // never has escapes
		Deleting: isSet(deleted),
	}
	if isSet(owners) && json.Unmarshal(owners, &out.Owners) != nil {
		return nil
	}
	if isSet(finalizers) && json.Unmarshal(finalizers, &out.Finalizers) != nil {
		return nil
	}
	return out
}

// Bare reports whether a stored object has no owners and no finalizers and is not
// being deleted, and returns its uid. It decodes nothing.
func Bare(rec *storage.Record) (uid []byte, bare bool) {
	m := metadataOf(rec)
	for m.next() {
		switch string(m.name) {
		case "uid":
			uid = bytes.Trim(m.value(), `"`)
		case "deletionTimestamp", "ownerReferences", "finalizers":
			if isSet(m.value()) {
				return nil, false
			}
		}
	}
	return uid, true
}

// metadataOf reads the metadata of an object, and nothing after it.
func metadataOf(rec *storage.Record) members {
	m := membersOf(rec.Value)
	if !m.find("metadata") {
		return members{}
	}
	return m.inside()
}

func isSet(value []byte) bool { return len(value) > 0 && !bytes.Equal(value, []byte("null")) }
