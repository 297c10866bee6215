// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package steptest helps to test controllers without a server: a fixed catalog,
// objects in a memory store, and the decoder for them. It is short because the
// controllers are pure: a state goes in, requests come out.
package steptest

import (
	"context"
	"encoding/json"
	"iter"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/storage"
)

// Catalog is a fixed list of resources.
type Catalog []step.Resource

// Kind implements [step.Catalog].
func (c Catalog) Kind(apiVersion, kind string) (step.Resource, bool) {
	for _, r := range c {
		if strings.TrimPrefix(r.Group+"/"+r.Version, "/") == apiVersion && r.Kind == kind {
			return r, true
		}
	}
	return step.Resource{}, false
}

// Bucket implements [step.Catalog].
func (c Catalog) Bucket(name string) (step.Resource, bool) {
	for _, r := range c {
		if r.Bucket == name {
			return r, true
		}
	}
	return step.Resource{}, false
}

// Resources implements [step.Catalog].
func (c Catalog) Resources() iter.Seq[step.Resource] { return slices.Values(c) }

// Elsewhere implements [step.Catalog]: there are no other servers.
func (Catalog) Elsewhere() *step.Elsewhere { return &step.Elsewhere{} }

// Generation implements [step.Catalog].
func (c Catalog) Generation() uint64 { return 1 }

// Object is an object with nothing but metadata.
type Object struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        metav1.ObjectMeta `json:"metadata"`
}

// Decode implements [step.Decoder].
func Decode(rec *storage.Record) *step.Object {
	var o Object
	if err := json.Unmarshal(rec.Value, &o); err != nil || o.Metadata.UID == "" {
		return nil
	}
	m := &o.Metadata
	return &step.Object{UID: m.UID, Owners: m.OwnerReferences, Finalizers: m.Finalizers, Deleting: m.DeletionTimestamp != nil}
}

// Put stores an object, or deletes it when o is nil.
func Put(tb testing.TB, s storage.Store, key storage.Key, o any) {
	tb.Helper()
	w := storage.Write{Key: key, Expect: storage.AnyRevision}
	if o != nil {
		value, err := json.Marshal(o)
		if err != nil {
			tb.Fatal(err)
		}
		w.Value = value
	}
	if _, err := s.Commit(context.Background(), w); err != nil {
		tb.Fatal(err)
	}
}

// Observe shows a controller a write if it says that it concerns it, as a
// [step.Runner] does.
func Observe(c step.Controller, e storage.Event) {
	if c.Filter(e) {
		c.Handle(e)
	}
}

// Owner returns a reference to an owner of a kind in group and version.
func Owner(apiVersion, kind, name string, uid types.UID, blocks bool) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: name, UID: uid, BlockOwnerDeletion: &blocks}
}
