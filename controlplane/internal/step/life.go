// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"bytes"
	"encoding/json"

	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/internal/jsontext"
	"github.com/steer-dev/steer/storage"
)

// LifeOf reads what decides over the life of a stored object. It is called for
// every object there is at the start, most of which have neither owners nor
// finalizers; so it looks only at what it needs.
func LifeOf(rec *storage.Record) *Object {
	var uid, deleted, owners, finalizers []byte
	for name, value := range jsontext.Fields(rec.Value, "metadata") {
		switch name {
		case "uid":
			uid = value
		case "deletionTimestamp":
			deleted = value
		case "ownerReferences":
			owners = value
		case "finalizers":
			finalizers = value
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
	for name, value := range jsontext.Fields(rec.Value, "metadata") {
		switch name {
		case "uid":
			uid = bytes.Trim(value, `"`)
		case "deletionTimestamp", "ownerReferences", "finalizers":
			if isSet(value) {
				return nil, false
			}
		}
	}
	return uid, true
}

func isSet(value []byte) bool { return len(value) > 0 && !bytes.Equal(value, []byte("null")) }
