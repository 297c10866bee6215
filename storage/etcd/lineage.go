// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"encoding/json"
	"fmt"
	"slices"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/steer-dev/steer/storage"
)

// lineage are the revisions of the newest terms, oldest first. Two histories of one prefix,
// as there are after a backup was restored, have different terms: the next write is of a
// new one. So a lineage with a term that another does not have, at a revision that the
// other has seen, is of another history, also if it has more revisions.
//
// Its key is written with that of the leader. The value has the terms before; the revision
// of the key is the newest one.
type lineage []storage.Revision

// maxLineage is how many terms are kept.
const maxLineage = 100

// lineageOf returns what the key says; nil if there is none.
func lineageOf(kv *mvccpb.KeyValue) lineage {
	if kv == nil {
		return nil
	}
	return lineageAt(kv.Value, storage.Revision(kv.ModRevision))
}

// lineageAt returns what a value says that was written at a revision.
func lineageAt(value []byte, rev storage.Revision) lineage {
	var before lineage
	_ = json.Unmarshal(value, &before) // what is no list says nothing
	return append(before, rev)
}

// newest returns the revision of the newest term, 0 if there was none.
func (l lineage) newest() storage.Revision {
	if len(l) == 0 {
		return 0
	}
	return l[len(l)-1]
}

// next returns the value with which the next term begins.
func (l lineage) next() (string, error) {
	text, err := json.Marshal(append(lineage{}, l[max(0, len(l)-maxLineage+1):]...))
	if err != nil {
		return "", fmt.Errorf("etcd: encode the terms: %w", err)
	}
	return string(text), nil
}

// check returns an error matching [ErrRestored] if other is not of the history of which l
// was seen up to a revision.
func (l lineage) check(seen storage.Revision, other lineage) error {
	if len(l) == 0 {
		return nil
	}
	for _, term := range other {
		if term >= l[0] && term <= seen && !slices.Contains(l, term) {
			return fmt.Errorf("%w (a term began at revision %d, where another history was seen up to %d)", ErrRestored, term, seen)
		}
	}
	return nil
}
