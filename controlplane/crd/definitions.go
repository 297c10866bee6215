// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/apiserver"
	"github.com/steer-dev/steer/apiserver/custom"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/component"
	"github.com/steer-dev/steer/controlplane/webhookclient"
	"github.com/steer-dev/steer/storage"
)

// Options of [New]. All are required.
type Options struct {
	// Server that custom resources are installed into. A definition of what the server
	// has already is stored, but not served.
	Server *apiserver.Server
	// Store of the server.
	Store storage.Store
	// Transport carries requests to the server as the server's own user.
	Transport http.RoundTripper
	// Schemas compiles and remembers schemas.
	Schemas *custom.Schemas
	// Webhooks calls conversion webhooks.
	Webhooks *webhookclient.Client
	// NewUID identifies the requests to them.
	NewUID func() types.UID
	// Upkeep settles names that requests of users have made free, where that is refused.
	Upkeep *component.Upkeep
	// Log receives what is not served, and why.
	Log *slog.Logger
	// Measure registers the metrics of conversions.
	Measure func(...prometheus.Collector)
}

// Definitions serves custom resource definitions and their objects.
type Definitions struct {
	options Options
	metrics *conversionMetrics
	reviews *webhookclient.Decoder // of conversion webhooks

	mu      sync.RWMutex
	entries map[string]*entry // by name of the definition
	at      storage.Revision  // of the newest state that was synced
}

// entry is one stored definition.
type entry struct {
	// crd as stored at revision. It is shared and must not be changed.
	crd      *v1.CustomResourceDefinition
	revision storage.Revision
	// serving identifies what is installed; zero when nothing is.
	serving  [sha256.Size]byte
	resource *resource.Resource
	// stored is what holds writes to the definition that is installed.
	stored *stored
}

// stored is a stored definition as the writes of its objects see it.
type stored struct {
	definitions *Definitions
	key         storage.Key
	at          atomic.Int64 // the last revision that says what is installed
}

// Condition implements [resource.Definition].
func (s *stored) Condition() storage.Condition {
	return storage.Condition{Key: s.key, At: storage.Revision(s.at.Load())}
}

// WaitSynced implements [resource.Definition].
func (s *stored) WaitSynced(ctx context.Context) error { return s.definitions.follow(ctx, s.key.Name) }

// New returns definitions that know of nothing yet.
func New(o Options) *Definitions {
	d := &Definitions{options: o, entries: map[string]*entry{}, metrics: newConversionMetrics(), reviews: newConversionReviews()}
	o.Measure(d.metrics.collectors()...)
	return d
}

// Resource returns the resource that serves the definitions themselves.
func (d *Definitions) Resource() *resource.Resource {
	return &resource.Resource{
		Names: resource.Names{
			Group: v1.GroupName, Plural: "customresourcedefinitions", Singular: "customresourcedefinition",
			Kind: "CustomResourceDefinition", ListKind: "CustomResourceDefinitionList",
			ShortNames: []string{"crd", "crds"}, Categories: []string{"api-extensions"},
		},
		Storage: resource.Storage{Bucket: Bucket, Version: "v1"},
		Versions: []resource.Version{{
			Name:     "v1",
			New:      func() resource.Object { return &v1.CustomResourceDefinition{} },
			Strategy: definitionStrategy{d},
			Subresources: []resource.Subresource{{
				Name: "status", Strategy: definitionStatusStrategy{d}, FieldManager: definitionOwnership("status", "spec"),
			}},
			FieldManager:   definitionOwnership("", "status"),
			Printer:        definitionPrinter{},
			StrategicMerge: true,
		}},
		Deletion:  resource.DeletionRules{Holds: holds, Mark: mark, NoGarbageCollection: true},
		Committed: d.committed,
	}
}

// Load serves what the store holds, as far as it is not served yet. A definition that cannot
// be served is logged, and keeps nothing else from being served: it can be deleted.
func (d *Definitions) Load(context.Context) error {
	view := d.options.Store.Latest()
	d.mu.Lock()
	defer d.mu.Unlock()
	if view.Revision() < d.at {
		return nil // a newer state is served
	}
	d.at = view.Revision()
	check := func(name string, err error) {
		if err != nil {
			d.options.Log.Error("a custom resource definition is not served: correct or delete it", "name", name, "err", err)
		}
	}
	for _, name := range sortedKeys(d.entries) {
		if view.Get(storage.Key{Bucket: Bucket, Name: name}) == nil {
			check(name, d.syncLocked(name, nil))
		}
	}
	var waiting []string
	for rec := range view.Ascend(Bucket, "", "") {
		if e := d.entries[rec.Key.Name]; e != nil && e.resource == nil {
			waiting = append(waiting, rec.Key.Name) // for names, or for a version that can be served
		}
		check(rec.Key.Name, d.syncLocked(rec.Key.Name, rec))
	}
	for _, name := range waiting { // names may have become free
		if e := d.entries[name]; e.resource == nil {
			check(name, d.install(e))
		}
	}
	return nil
}

// lead settles anew the names of definitions that wait for some: the server that led before
// may have ended between the change that made them free and that.
func (d *Definitions) lead(context.Context) error {
	var waiting []string
	d.mu.RLock()
	for _, name := range sortedKeys(d.entries) {
		if !apihelpers.IsCRDConditionTrue(d.entries[name].crd, v1.NamesAccepted) {
			waiting = append(waiting, name)
		}
	}
	d.mu.RUnlock()
	for _, name := range waiting {
		d.options.Upkeep.Due(d.settling(resettlement{name, askAgain}))
	}
	return nil
}

// takenBeside returns the names that the other definitions of a group have.
func (d *Definitions) takenBeside(crd *v1.CustomResourceDefinition) taken {
	d.mu.RLock()
	defer d.mu.RUnlock()
	var others []*v1.CustomResourceDefinition
	for name, e := range d.entries {
		if name != crd.Name && e.crd.Spec.Group == crd.Spec.Group {
			others = append(others, e.crd)
		}
	}
	return takenBy(others)
}

// committed follows a change of a definition before its request is answered.
func (d *Definitions) committed(ctx context.Context, change resource.Change) error {
	return d.follow(ctx, change.Object.GetName())
}

// follow serves what is stored under a name, and has settled anew what that calls
// for. What is refused of that is no error of the request that called for it.
func (d *Definitions) follow(ctx context.Context, name string) error {
	follow, err := d.sync(name)
	if err != nil {
		return err
	}
	for _, f := range follow {
		name, do := d.settling(f)
		d.options.Upkeep.Try(context.WithoutCancel(ctx), name, do)
	}
	return nil
}

// settling is [Definitions.resettle] for the upkeep.
func (d *Definitions) settling(what resettlement) (name string, do func(context.Context) error) {
	return "settle the names of the custom resource definition " + what.name, func(ctx context.Context) error { return d.resettle(ctx, what) }
}

// resettlement asks that the names of a definition are settled anew.
type resettlement struct {
	name string
	// patch of its status.
	patch string
}

const (
	// askAgain changes nothing by itself.
	askAgain = "{}"
	// giveUp takes back all names, so that only those that are free are given.
	giveUp = `{"status":{"acceptedNames":{"plural":"","singular":null,"kind":"","listKind":null,"shortNames":null,"categories":null},"conditions":null}}`
)

// sync brings what is served in line with what is stored under a name, whatever
// the order in which changes report. It returns what has to be settled anew:
// definitions of the group that wait for a name, when this change may have
// released one, and this one, when another took its names in the same moment.
func (d *Definitions) sync(name string) ([]resettlement, error) {
	for {
		view := d.options.Store.Latest()
		if out, synced, err := d.syncAt(view, name); synced || err != nil {
			return out, err
		}
	}
}

// syncAt does it with a state of the store, unless a newer one was used before.
func (d *Definitions) syncAt(view storage.View, name string) (out []resettlement, synced bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if view.Revision() < d.at {
		return nil, false, nil
	}
	d.at = view.Revision()
	out, err = d.syncIn(view, name)
	return out, true, err
}

// syncIn does it under the lock.
func (d *Definitions) syncIn(view storage.View, name string) ([]resettlement, error) {
	before := d.entries[name]
	rec := view.Get(storage.Key{Bucket: Bucket, Name: name})
	if err := d.syncLocked(name, rec); err != nil {
		return nil, err
	}
	after := d.entries[name]
	if after != nil && d.clashes(after) {
		return []resettlement{{name, giveUp}}, nil
	}
	if before == nil || (after != nil && namesEqual(&before.crd.Status.AcceptedNames, &after.crd.Status.AcceptedNames)) {
		return nil, nil
	}
	var follow []resettlement
	for _, other := range sortedKeys(d.entries) {
		e := d.entries[other]
		if other != name && e.crd.Spec.Group == before.crd.Spec.Group && !apihelpers.IsCRDConditionTrue(e.crd, v1.NamesAccepted) {
			follow = append(follow, resettlement{other, askAgain})
		}
	}
	return follow, nil
}

// clashes reports whether a definition that is not served yet has accepted names
// that a served one has as well.
func (d *Definitions) clashes(e *entry) bool {
	if e.resource != nil {
		return false
	}
	var served []*v1.CustomResourceDefinition
	for _, o := range d.entries {
		if o.resource != nil && o.crd.Spec.Group == e.crd.Spec.Group {
			served = append(served, o.crd)
		}
	}
	used, n := takenBy(served), &e.crd.Status.AcceptedNames
	return used.resources[n.Plural] || used.resources[n.Singular] || used.kinds[n.Kind] || used.kinds[n.ListKind] ||
		slices.ContainsFunc(n.ShortNames, func(s string) bool { return used.resources[s] })
}

func (d *Definitions) syncLocked(name string, rec *storage.Record) error {
	before := d.entries[name]
	if rec == nil {
		if before != nil {
			d.uninstall(before)
			delete(d.entries, name)
		}
		return nil
	}
	if before != nil && before.revision >= rec.Modified {
		return nil
	}
	crd := &v1.CustomResourceDefinition{}
	if err := json.Unmarshal(rec.Value, crd); err != nil {
		return fmt.Errorf("crd: decode the stored definition %s: %w", name, err)
	}
	e := &entry{crd: crd, revision: rec.Modified}
	if before != nil {
		e.serving, e.resource, e.stored = before.serving, before.resource, before.stored
	}
	d.entries[name] = e
	return d.install(e)
}

// install serves a definition as it is now, unless that is what is served.
func (d *Definitions) install(e *entry) error {
	crd := e.crd
	if !apihelpers.IsCRDConditionTrue(crd, v1.Established) || d.builtin(e) || d.clashes(e) {
		d.uninstall(e)
		return nil
	}
	encoded, err := json.Marshal(struct {
		Spec  *v1.CustomResourceDefinitionSpec
		Names *v1.CustomResourceDefinitionNames
		Last  bool
	}{&crd.Spec, &crd.Status.AcceptedNames, custom.Last(crd)})
	if err != nil {
		return fmt.Errorf("crd: encode definition %s: %w", crd.Name, err)
	}
	serving := sha256.Sum256(encoded)
	if e.resource != nil && serving == e.serving {
		e.stored.at.Store(int64(e.revision))
		return nil
	}
	options := custom.Options{Schemas: d.options.Schemas, Since: e.revision}
	if usesWebhook(crd) {
		options.Convert, options.Remote = d.converterOf(crd).convert, true
	}
	served, err := custom.Resource(crd, options)
	if err != nil {
		return fmt.Errorf("crd: serve %s: %w", crd.Name, err)
	}
	for i := range served.Versions {
		// Nothing joins the kinds of a built-in version: their paths have no room for others.
		v := &served.Versions[i]
		v.NotServed = v.NotServed || d.options.Server.HasBuiltIn(schema.GroupVersion{Group: crd.Spec.Group, Version: v.Name})
	}
	under := &stored{definitions: d, key: storage.Key{Bucket: Bucket, Name: crd.Name}}
	under.at.Store(int64(e.revision))
	served.Storage.Definition = under
	if err := d.options.Server.Install(served); err != nil {
		return fmt.Errorf("crd: serve %s: %w", crd.Name, err)
	}
	e.serving, e.resource, e.stored = serving, served, under
	return nil
}

func (d *Definitions) uninstall(e *entry) {
	if e.resource == nil {
		return
	}
	d.options.Server.Remove(e.resource.Group, e.resource.Plural)
	e.resource, e.serving, e.stored = nil, [sha256.Size]byte{}, nil
}

// builtin reports whether the server has the resource of a definition otherwise.
func (d *Definitions) builtin(e *entry) bool {
	spec := &e.crd.Spec
	return e.resource == nil && d.options.Server.Serves(schema.GroupResource{Group: spec.Group, Resource: spec.Names.Plural})
}

// resettle makes a definition ask again for the names that it wants.
func (d *Definitions) resettle(ctx context.Context, what resettlement) error {
	name := what.name
	path := "https://in-process/apis/apiextensions.k8s.io/v1/customresourcedefinitions/" + name + "/status"
	request, err := http.NewRequestWithContext(ctx, http.MethodPatch, path, strings.NewReader(what.patch))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/merge-patch+json")
	response, err := d.options.Transport.RoundTrip(request)
	if err != nil {
		return fmt.Errorf("crd: reconsider the names of %s: %w", name, err)
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(response.Body)
	if response.StatusCode >= 300 && response.StatusCode != http.StatusNotFound {
		return fmt.Errorf("crd: reconsider the names of %s: %s: %s", name, response.Status, body)
	}
	return nil
}

// Admit refuses to create objects of a definition that is going away.
func (d *Definitions) Admit(_ context.Context, r *resource.AdmissionRequest) error {
	if r.Operation != resource.Create || r.Subresource != "" {
		return nil
	}
	gr := r.Resource.GroupResource()
	d.mu.RLock()
	e := d.entries[gr.Resource+"."+gr.Group]
	d.mu.RUnlock()
	if e == nil || !terminating(e.crd) {
		return nil
	}
	return apierrors.NewForbidden(gr, r.Object.GetName(), errors.New("create not allowed while custom resource definition is terminating"))
}

// Validate admits everything: [Definitions.Admit] has decided.
func (d *Definitions) Validate(context.Context, *resource.AdmissionRequest) error { return nil }

// Mutates implements [resource.Mutator]: objects stay as they are.
func (d *Definitions) Mutates(*resource.AdmissionRequest) bool { return false }

var _ resource.Admission = (*Definitions)(nil)

func terminating(crd *v1.CustomResourceDefinition) bool {
	return apihelpers.IsCRDConditionTrue(crd, v1.Terminating)
}

func namesEqual(a, b *v1.CustomResourceDefinitionNames) bool {
	return a.Plural == b.Plural && a.Singular == b.Singular && a.Kind == b.Kind && a.ListKind == b.ListKind &&
		slices.Equal(a.ShortNames, b.ShortNames)
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
