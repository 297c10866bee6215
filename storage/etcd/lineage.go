// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/steer-dev/steer/storage"
)

// lineage are the newest terms, oldest first. Two histories of one prefix, as there are after
// a backup was restored, have different terms: the next write is of a new one. So a lineage
// with a term that another does not have, at a revision that the other has seen, is of
// another history, also if it has more revisions.
//
// Its key is written with that of the leader.
type lineage []era

// era is a term: the revision with which it began, and an id, because another history may
// have a term that began with the same revision.
type era struct {
	At storage.Revision `json:"at"`
	ID string           `json:"id"`
}

// succession is the value of the key: a term and those before it. The revision of the term
// is that of the key.
type succession struct {
	ID     string  `json:"id"`
	Before lineage `json:"before"`
}

// maxLineage is how many terms are kept.
const maxLineage = 20

// lineageOf returns what the key says; nil if there is none.
func lineageOf(kv *mvccpb.KeyValue) lineage {
	if kv == nil {
		return nil
	}
	return lineageAt(kv.Value, storage.Revision(kv.ModRevision))
}

// lineageAt returns what a value says that was written at a revision.
func lineageAt(value []byte, rev storage.Revision) lineage {
	var s succession
	_ = json.Unmarshal(value, &s) // what is none says nothing
	return append(s.Before, era{rev, s.ID})
}

// newest returns the revision of the newest term, 0 if there was none.
func (l lineage) newest() storage.Revision {
	if len(l) == 0 {
		return 0
	}
	return l[len(l)-1].At
}

// next returns the value with which the term of a lease begins.
func (l lineage) next(lease clientv3.LeaseID) (string, error) {
	text, err := json.Marshal(succession{ID: strconv.FormatInt(int64(lease), 16), Before: l[max(0, len(l)-maxLineage+1):]})
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
	for _, e := range other {
		if e.At >= l[0].At && e.At <= seen && !slices.Contains(l, e) {
			return fmt.Errorf("%w (a term began at revision %d, where another history was seen up to %d)", ErrRestored, e.At, seen)
		}
	}
	return nil
}
