// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cleanup deletes the objects of CustomResourceDefinitions that are being deleted,
// and then removes the finalizer of the definition.
//
// It is short because it is one controller; package crd does not hold it, because the
// controller acts only through the API.
package cleanup

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"time"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/steer-dev/steer/apiserver/custom"
	"github.com/steer-dev/steer/controlplane/crd"
	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/storage"
)

// Cleaner deletes the objects of definitions that are being deleted, and removes the
// finalizer of each definition when no object is left.
type Cleaner struct {
	catalog step.Catalog
	decode  step.Decoder
	// leaving definitions by name.
	leaving map[string]*leaving
}

// leaving is what is known about one definition that is being deleted.
type leaving struct {
	bucket string
	// due reports that it has to be looked at in the next step.
	due bool
	// failure is why its objects could not be deleted.
	failure string
}

var _ step.Controller = (*Cleaner)(nil)

// New returns a cleaner for the resources of a catalog.
func New(catalog step.Catalog, decode step.Decoder) *Cleaner {
	return &Cleaner{catalog: catalog, decode: decode, leaving: map[string]*leaving{}}
}

// Name implements [step.Controller].
func (c *Cleaner) Name() string { return "custom resource cleaner" }

// Reset implements [step.Controller].
func (c *Cleaner) Reset(view storage.View) {
	clear(c.leaving)
	for rec := range view.Ascend(crd.Bucket, "", "") {
		c.note(rec, false)
	}
}

// Filter implements [step.Controller].
func (c *Cleaner) Filter(e storage.Event) bool {
	if e.Record.Key.Bucket == crd.Bucket {
		return true
	}
	for _, l := range c.leaving {
		if l.bucket == e.Record.Key.Bucket {
			return true
		}
	}
	return false
}

// Handle implements [step.Controller].
func (c *Cleaner) Handle(e storage.Event) {
	if e.Record.Key.Bucket == crd.Bucket {
		c.note(e.Record, e.Deleted)
		return
	}
	for _, l := range c.leaving {
		l.due = l.due || l.bucket == e.Record.Key.Bucket
	}
}

func (c *Cleaner) note(rec *storage.Record, deleted bool) {
	name := rec.Key.Name
	if deleted {
		delete(c.leaving, name)
		return
	}
	obj := c.decode(rec)
	if obj == nil || !obj.Deleting || !obj.Has(v1.CustomResourceCleanupFinalizer) {
		delete(c.leaving, name)
		return
	}
	l := c.leaving[name]
	if l == nil {
		l = &leaving{}
		c.leaving[name] = l
	}
	l.due = true
}

// Sync implements [step.Controller].
func (c *Cleaner) Sync(view storage.View, _ time.Time) []step.Request {
	var out []step.Request
	for _, name := range slices.Sorted(maps.Keys(c.leaving)) {
		if l := c.leaving[name]; l.due {
			l.due = false
			out = append(out, c.look(view, name, l)...)
		}
	}
	return out
}

// Done implements [step.Controller].
func (c *Cleaner) Done(r step.Request, err error) {
	l := c.leaving[r.Subject.Key.Name]
	if l == nil {
		return
	}
	l.due = l.due || err != nil
	if r.Method == http.MethodDelete {
		l.failure = ""
		if err != nil {
			l.failure = err.Error()
		}
	}
}

// look returns what one definition that is being deleted calls for.
func (c *Cleaner) look(view storage.View, name string, l *leaving) []step.Request {
	rec := view.Get(storage.Key{Bucket: crd.Bucket, Name: name})
	if rec == nil {
		return nil
	}
	definition := &v1.CustomResourceDefinition{}
	if json.Unmarshal(rec.Value, definition) != nil {
		return nil // Load has reported it
	}
	l.bucket = custom.BucketOf(definition)
	resource, served := c.catalog.Bucket(l.bucket)
	objects := 0
	if served {
		objects = view.Count(l.bucket, "", "")
	}
	switch {
	case !apihelpers.IsCRDConditionTrue(definition, v1.Established):
		return release(rec, definition, v1.ConditionFalse, "NeverEstablished", "resource was never established")
	case !served:
		return release(rec, definition, v1.ConditionFalse, "OverlappingBuiltInResource", "instances overlap with built-in resources in storage")
	case objects == 0:
		return release(rec, definition, v1.ConditionFalse, "InstanceDeletionCompleted", "removed all instances")
	}
	reason, message := "InstanceDeletionInProgress", "CustomResource deletion is in progress"
	if l.failure != "" {
		reason, message = "InstanceDeletionFailed", "could not issue all deletes: "+l.failure
	}
	return append(progress(rec, definition, reason, message), c.deletions(view, rec.Key, resource)...)
}

// deletions returns the requests that delete the objects without a deletionTimestamp,
// namespace by namespace.
func (c *Cleaner) deletions(view storage.View, about storage.Key, r step.Resource) []step.Request {
	var out []step.Request
	last, first := "", true
	for rec := range view.Ascend(r.Bucket, "", "") {
		namespace := ""
		if r.Namespaced {
			namespace, _ = step.SplitName(rec.Key.Name)
		}
		if !first && namespace == last {
			continue
		}
		if obj := c.decode(rec); obj != nil && obj.Deleting {
			continue
		}
		last, first = namespace, false
		out = append(out, step.Delete(step.APIServer, r.Collection(namespace), nil, step.Subject{Key: about, Detail: namespace}))
	}
	return out
}

// progress sets the condition Terminating, unless it is so already.
func progress(rec *storage.Record, definition *v1.CustomResourceDefinition, reason, message string) []step.Request {
	now := apihelpers.FindCRDCondition(definition, v1.Terminating)
	if now != nil && now.Reason == reason && now.Message == message {
		return nil
	}
	return []step.Request{putStatus(rec, definition, v1.ConditionTrue, reason, message)}
}

// release takes the finalizer from a definition.
func release(rec *storage.Record, definition *v1.CustomResourceDefinition, status v1.ConditionStatus, reason, message string) []step.Request {
	apihelpers.CRDRemoveFinalizer(definition, v1.CustomResourceCleanupFinalizer)
	return []step.Request{putStatus(rec, definition, status, reason, message)}
}

func putStatus(rec *storage.Record, definition *v1.CustomResourceDefinition, status v1.ConditionStatus, reason, message string) step.Request {
	apihelpers.SetCRDCondition(definition, v1.CustomResourceDefinitionCondition{Type: v1.Terminating, Status: status, Reason: reason, Message: message})
	body, _ := json.Marshal(definition) // was decoded from JSON: cannot fail
	path := "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/" + definition.Name + "/status"
	return step.Put(step.APIServer, path, body, step.Subject{Key: rec.Key})
}
