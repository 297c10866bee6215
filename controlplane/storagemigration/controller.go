// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package storagemigration has objects written again in the version in which their resource
// is stored, as StorageVersionMigrations ask for (KEP-4192).
package storagemigration

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	migrationv1 "k8s.io/api/storagemigration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/storage"
)

// ControllerName is the name of a [Controller].
const ControllerName = "storage-version-migrator-controller"

const (
	user = step.KubeSystem + ControllerName
	// runner is the field manager of the conditions of CRDs.
	runner = "migration-runner-controller"

	bucket      = migrationv1.GroupName + "/storageversionmigrations"
	definitions = "apiextensions.k8s.io/customresourcedefinitions"

	// patience is how long a resource may be unknown after a migration was created: its
	// definition may come with it.
	patience = time.Minute
	// pause is how often it is looked for.
	pause = time.Second
	// mostPatches is how many patches of a migration one step asks for.
	mostPatches = 100
)

// Controller carries migrations out. Of those of one resource one runs at a time, the oldest
// first. It notes the revision from which on every write is in the new version, patches each
// object that is older with nothing but its own revision, and then takes the versions that are
// left out of the status of the definition.
type Controller struct {
	catalog step.Catalog
	due     bool // a migration may have something to do
	// progress of migrations that run. It is not stored: after a restart all is patched again.
	progress map[storage.Key]*progress
	wake     time.Time
}

// progress is how far a migration is.
type progress struct {
	// patched are the keys of objects that are written, or need not be any more.
	patched map[storage.Key]bool
	// asked counts the patches that are under way.
	asked int
	// failed is what no retry mends, trouble what the last patch that is tried again met.
	failed, trouble error
}

var (
	_ step.Controller = (*Controller)(nil)
	_ step.Waker      = (*Controller)(nil)
)

// NewController returns a controller that has seen nothing.
func NewController(catalog step.Catalog) *Controller {
	return &Controller{catalog: catalog, progress: map[storage.Key]*progress{}}
}

// Name implements [step.Controller].
func (*Controller) Name() string { return ControllerName }

// Reset implements [step.Controller].
func (c *Controller) Reset(storage.View) {
	*c = *NewController(c.catalog)
	c.due = true
}

// Filter implements [step.Controller].
func (*Controller) Filter(e storage.Event) bool { return e.Record.Key.Bucket == bucket }

// Handle implements [step.Controller].
func (c *Controller) Handle(e storage.Event) {
	c.due = true
	if e.Deleted {
		delete(c.progress, e.Record.Key)
	}
}

// Wake implements [step.Waker].
func (c *Controller) Wake() time.Time { return c.wake }

// Sync implements [step.Controller].
func (c *Controller) Sync(view storage.View, now time.Time) []step.Request {
	if !c.due && (c.wake.IsZero() || now.Before(c.wake)) {
		return nil
	}
	c.due, c.wake = false, time.Time{}
	var out []step.Request
	for _, m := range active(view) {
		out = append(out, c.advance(view, m, now)...)
	}
	return out
}

// active are the migrations that have something to do: those that run, and the oldest of each
// resource of which none does.
func active(view storage.View) (out []*migrationv1.StorageVersionMigration) {
	next := map[metav1.GroupResource]*migrationv1.StorageVersionMigration{}
	busy := map[metav1.GroupResource]bool{}
	for rec := range view.Ascend(bucket, "", "") { // by name
		m := &migrationv1.StorageVersionMigration{}
		if step.Decode(rec, m) != nil {
			continue
		}
		m.ResourceVersion = strconv.FormatInt(int64(rec.Modified), 10)
		switch first := next[m.Spec.Resource]; {
		case is(m, migrationv1.MigrationRunning):
			busy[m.Spec.Resource] = busy[m.Spec.Resource] || !ended(m)
			out = append(out, m)
		case !ended(m) && (first == nil || m.CreationTimestamp.Before(&first.CreationTimestamp)):
			next[m.Spec.Resource] = m
		}
	}
	for resource, m := range next {
		if !busy[resource] {
			out = append(out, m)
		}
	}
	slices.SortFunc(out, func(a, b *migrationv1.StorageVersionMigration) int { return strings.Compare(a.Name, b.Name) })
	return out
}

func migrations() step.Resource {
	return step.Resource{Bucket: bucket, Group: migrationv1.GroupName, Version: "v1", Plural: "storageversionmigrations"}
}

func crds() step.Resource {
	return step.Resource{Bucket: definitions, Group: apiextensionsv1.GroupName, Version: "v1", Plural: "customresourcedefinitions"}
}

func keyOf(m *migrationv1.StorageVersionMigration) storage.Key {
	return storage.Key{Bucket: bucket, Name: m.Name}
}

func is(m *migrationv1.StorageVersionMigration, t migrationv1.MigrationConditionType) bool {
	return meta.IsStatusConditionTrue(m.Status.Conditions, string(t))
}

func ended(m *migrationv1.StorageVersionMigration) bool {
	return is(m, migrationv1.MigrationSucceeded) || is(m, migrationv1.MigrationFailed)
}

// advance returns the next requests of a migration.
func (c *Controller) advance(view storage.View, m *migrationv1.StorageVersionMigration, now time.Time) []step.Request {
	crd := definition(view, m)
	switch {
	case ended(m):
		if crd != nil && migrating(crd, m) != nil {
			return one(finish(crd, m, now))
		}
		set(m, now, migrationv1.MigrationRunning, metav1.ConditionFalse, "MigrationCompleted", "Migration completed", m.Generation)
		delete(c.progress, keyOf(m))
		return one(status(m))
	case !is(m, migrationv1.MigrationRunning):
		if crd != nil && migrating(crd, m) == nil {
			return one(begin(crd, m, now))
		}
		set(m, now, migrationv1.MigrationRunning, metav1.ConditionTrue, "MigrationRunning", running(0, 0, nil), 0)
		return one(status(m))
	}
	resource, known := c.resource(m.Spec.Resource)
	if !known {
		if now.Before(m.CreationTimestamp.Add(patience)) {
			c.wake = now.Add(pause)
			return nil
		}
		return one(fail(m, now, "resource does not exist in discovery"))
	}
	if m.Status.ResourceVersion == "" {
		m.Status.ResourceVersion = strconv.FormatInt(int64(view.Revision()), 10)
		return one(status(m))
	}
	return c.patch(view, m, resource, now)
}

func one(r step.Request) []step.Request { return []step.Request{r} }

// resource returns the one of a name, in the version in which controllers call it.
func (c *Controller) resource(of metav1.GroupResource) (step.Resource, bool) {
	for r := range c.catalog.Resources() {
		if r.Group == of.Group && r.Plural == of.Resource {
			return r, true
		}
	}
	return step.Resource{}, false
}

// patch returns patches of objects that are not written yet, or the end of the migration.
func (c *Controller) patch(view storage.View, m *migrationv1.StorageVersionMigration, resource step.Resource, now time.Time) []step.Request {
	p := c.progress[keyOf(m)]
	if p == nil {
		p = &progress{patched: map[storage.Key]bool{}}
		c.progress[keyOf(m)] = p
	}
	if p.asked > 0 {
		return nil
	}
	since, err := strconv.ParseInt(m.Status.ResourceVersion, 10, 64)
	if err != nil {
		return one(fail(m, now, "error comparing resource versions: "+err.Error()))
	}
	var out []step.Request
	all, left := 0, 0
	for rec := range view.Ascend(resource.Bucket, "", "") {
		all++
		if int64(rec.Modified) > since || p.patched[rec.Key] {
			continue
		}
		if left++; len(out) < mostPatches {
			out = append(out, rewrite(resource, rec, m.Name))
		}
	}
	switch {
	case p.failed != nil:
		set(m, now, migrationv1.MigrationRunning, metav1.ConditionTrue, "MigrationRunning", running(left, all, nil), 0)
		return one(fail(m, now, fmt.Sprintf("%d/%d not yet migrated. migration encountered unhandled error: %s", left, all, p.failed)))
	case left == 0:
		set(m, now, migrationv1.MigrationRunning, metav1.ConditionTrue, "MigrationRunning", running(0, all, nil), 0)
		set(m, now, migrationv1.MigrationSucceeded, metav1.ConditionTrue, "StorageVersionMigrationSucceeded", "Migration completed", 0)
		return one(status(m))
	case p.trouble != nil:
		text := running(left, all, p.trouble)
		p.trouble = nil
		if known := meta.FindStatusCondition(m.Status.Conditions, string(migrationv1.MigrationRunning)); known.Message != text {
			set(m, now, migrationv1.MigrationRunning, metav1.ConditionTrue, "MigrationRunning", text, 0)
			return one(status(m))
		}
	}
	p.asked = len(out)
	return out
}

// rewrite is the patch that changes nothing, of the version at hand.
func rewrite(resource step.Resource, rec *storage.Record, migration string) step.Request {
	version := schema.GroupVersion{Group: resource.Group, Version: resource.Version}
	body, _ := json.Marshal(map[string]any{ // texts: cannot fail
		"apiVersion": version.String(), "kind": resource.Kind, "metadata": map[string]any{"resourceVersion": strconv.FormatInt(int64(rec.Modified), 10)},
	})
	r := step.Patch(user, resource.Object(rec.Key), body, step.Subject{Key: rec.Key, Detail: migration})
	r.Query = url.Values{"fieldManager": {ControllerName}}
	return r
}

// Done implements [step.Controller].
func (c *Controller) Done(r step.Request, err error) {
	key := storage.Key{Bucket: bucket, Name: r.Subject.Detail}
	c.due = true
	p := c.progress[key]
	if r.Subject.Key.Bucket == bucket || p == nil {
		return
	}
	p.asked--
	switch {
	// What was written meanwhile is in the new version, and what is gone in none.
	case err == nil, apierrors.IsConflict(err), apierrors.IsNotFound(err):
		p.patched[r.Subject.Key] = true
	case apierrors.IsInvalid(err), apierrors.IsForbidden(err), apierrors.IsBadRequest(err), apierrors.IsMethodNotSupported(err):
		p.failed = err
	default:
		p.trouble = err
	}
}

// running is the message of the condition of a migration that runs.
func running(left, all int, trouble error) string {
	text := "The migration is running"
	switch {
	case all > 0 && left > 0:
		text += fmt.Sprintf(", %d/%d objects not yet migrated", left, all)
	case all > 0:
		text += fmt.Sprintf(", %d objects verified migrated", all)
	}
	if trouble != nil {
		text += "; transient error: " + trouble.Error()
	}
	return text
}

func set(m *migrationv1.StorageVersionMigration, now time.Time, t migrationv1.MigrationConditionType, state metav1.ConditionStatus, reason, message string, generation int64) {
	meta.SetStatusCondition(&m.Status.Conditions, metav1.Condition{
		Type: string(t), Status: state, Reason: reason, Message: message, ObservedGeneration: generation, LastTransitionTime: metav1.NewTime(now),
	})
}

func fail(m *migrationv1.StorageVersionMigration, now time.Time, message string) step.Request {
	set(m, now, migrationv1.MigrationFailed, metav1.ConditionTrue, "StorageVersionMigrationFailed", message, 0)
	return status(m)
}

// status is the request that writes the status of a migration.
func status(m *migrationv1.StorageVersionMigration) step.Request {
	key := keyOf(m)
	m.APIVersion, m.Kind = migrationv1.SchemeGroupVersion.String(), "StorageVersionMigration"
	body, _ := json.Marshal(m) // a type of the API: cannot fail
	return step.Put(user, migrations().Object(key)+"/status", body, step.Subject{Key: key, Detail: m.Name})
}

// definition returns the CRD of what a migration is of; nil if it is no custom resource.
func definition(view storage.View, m *migrationv1.StorageVersionMigration) *apiextensionsv1.CustomResourceDefinition {
	rec := view.Get(storage.Key{Bucket: definitions, Name: m.Spec.Resource.Resource + "." + m.Spec.Resource.Group})
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if rec == nil || step.Decode(rec, crd) != nil {
		return nil
	}
	crd.ResourceVersion = strconv.FormatInt(int64(rec.Modified), 10)
	return crd
}

// migrating returns the condition that says that a migration of a CRD runs; nil if it does not.
func migrating(crd *apiextensionsv1.CustomResourceDefinition, m *migrationv1.StorageVersionMigration) *apiextensionsv1.CustomResourceDefinitionCondition {
	for i := range crd.Status.Conditions {
		c := &crd.Status.Conditions[i]
		if c.Type == apiextensionsv1.StorageMigrating && c.Status == apiextensionsv1.ConditionTrue && c.Message == runs(m) {
			return c
		}
	}
	return nil
}

func runs(m *migrationv1.StorageVersionMigration) string {
	return "Migration " + m.Name + " is running"
}

// begin says in the status of a CRD that it is migrated.
func begin(crd *apiextensionsv1.CustomResourceDefinition, m *migrationv1.StorageVersionMigration, now time.Time) step.Request {
	return apply(crd, m, now, apiextensionsv1.ConditionTrue, "MigrationRunning", runs(m), nil)
}

// finish says how the migration of a CRD ended. No version but the present one is stored any
// more, unless the CRD was changed meanwhile.
func finish(crd *apiextensionsv1.CustomResourceDefinition, m *migrationv1.StorageVersionMigration, now time.Time) step.Request {
	var stored []string
	same := migrating(crd, m).ObservedGeneration == crd.Generation
	for _, v := range crd.Spec.Versions {
		if v.Storage && same {
			stored = []string{v.Name}
		}
	}
	switch {
	case !is(m, migrationv1.MigrationSucceeded):
		return apply(crd, m, now, apiextensionsv1.ConditionFalse, "MigrationFailed", "The migration has failed", nil)
	case same:
		return apply(crd, m, now, apiextensionsv1.ConditionFalse, "MigrationSucceeded", "The migration has succeeded and the stored versions have been updated", stored)
	}
	return apply(crd, m, now, apiextensionsv1.ConditionFalse, "MigrationSucceeded", "The migration has succeeded but the stored versions have not been updated due to a generation mismatch", nil)
}

// apply is the request that applies to the status of a CRD as it is at hand.
func apply(crd *apiextensionsv1.CustomResourceDefinition, m *migrationv1.StorageVersionMigration, now time.Time, state apiextensionsv1.ConditionStatus, reason, message string, stored []string) step.Request {
	said := map[string]any{"conditions": []any{map[string]any{
		"type": apiextensionsv1.StorageMigrating, "status": state, "reason": reason, "message": message,
		"lastTransitionTime": metav1.NewTime(now), "observedGeneration": crd.Generation,
	}}}
	if stored != nil {
		said["storedVersions"] = stored
	}
	body, _ := json.Marshal(map[string]any{ // values of the API: cannot fail
		"apiVersion": apiextensionsv1.SchemeGroupVersion.String(), "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": crd.Name, "resourceVersion": crd.ResourceVersion}, "status": said,
	})
	path := crds().Object(storage.Key{Bucket: definitions, Name: crd.Name}) + "/status"
	return step.Apply(user, path, runner, body, step.Subject{Key: keyOf(m), Detail: m.Name})
}
