// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package flowcontrol

import (
	_ "embed"
	"sync"
	"time"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/storage"
)

// recorded is what a fresh cluster has; see oracle/cmd/bootstrap.
//
//go:embed bootstrap.txt
var recorded string

// cluster is what a fresh cluster has.
type cluster struct {
	all   []step.Template
	byKey map[storage.Key]*step.Template
	// specs are those of its schemas, by name.
	specs func() map[string]*flowcontrolv1.FlowSchemaSpec
}

// fresh returns the objects of a fresh cluster.
var fresh = sync.OnceValue(func() *cluster {
	c := &cluster{all: step.Templates(recorded), byKey: map[storage.Key]*step.Template{}}
	for i := range c.all {
		c.byKey[c.all[i].Key] = &c.all[i]
	}
	c.specs = sync.OnceValue(c.readSpecs)
	return c
})

func (c *cluster) readSpecs() map[string]*flowcontrolv1.FlowSchemaSpec {
	specs := map[string]*flowcontrolv1.FlowSchemaSpec{}
	for i := range c.all {
		if t := &c.all[i]; t.Key.Bucket == schemas {
			var s flowcontrolv1.FlowSchema
			if t.Decode(&s) == nil {
				specs[t.Key.Name] = &s.Spec
			}
		}
	}
	return specs
}

// Boot returns the creations of the objects of a fresh cluster that are not in a
// view. uid returns a new one.
func Boot(view storage.View, uid func() types.UID, now time.Time) []storage.Write {
	at := now.UTC().Format(time.RFC3339)
	var create []storage.Write
	all := fresh().all
	for i := range all {
		if t := &all[i]; view.Get(t.Key) == nil {
			create = append(create, t.Write(uid(), at))
		}
	}
	return create
}

// mandatory reads the object of a fresh cluster that must not be changed, and reports
// whether there is one of that name.
func mandatory(bucket, name string, into any) bool {
	if name != exempt && name != catchAll {
		return false
	}
	t := fresh().byKey[storage.Key{Bucket: bucket, Name: name}]
	return t != nil && t.Decode(into) == nil
}

// Names of the objects that must not be changed.
const (
	exempt   = "exempt"
	catchAll = "catch-all"
)
