// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package flow

import (
	_ "embed"
	"encoding/json"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/storage"
)

// recorded is what a fresh cluster has; see oracle/cmd/bootstrap.
//
//go:embed bootstrap.txt
var recorded string

// fresh returns the objects of a fresh cluster.
var fresh = sync.OnceValue(func() []step.Template { return step.Templates(recorded) })

// Boot returns the creations of the objects of a fresh cluster that are not in a
// view. uid returns a new one.
func Boot(view storage.View, uid func() types.UID, now time.Time) []storage.Write {
	at := now.UTC().Format(time.RFC3339)
	var create []storage.Write
	all := fresh()
	for i := range all {
		if t := &all[i]; view.Get(t.Key) == nil {
			create = append(create, t.Write(uid(), at))
		}
	}
	return create
}

// mandatory reads the object of a fresh cluster that nobody may change, and tells
// whether there is one of that name.
func mandatory(bucket, name string, into any) bool {
	if name != exempt && name != catchAll {
		return false
	}
	for _, t := range fresh() {
		if t.Key.Bucket != bucket || t.Key.Name != name {
			continue
		}
		write := t.Write("", "2000-01-01T00:00:00Z")
		return json.Unmarshal(write.Value, into) == nil
	}
	return false
}

// Names of what nobody may change.
const (
	exempt   = "exempt"
	catchAll = "catch-all"
)
