// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apiservice

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	v1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/steer-dev/steer/apiserver"
	"github.com/steer-dev/steer/apiserver/discovery"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/internal/egress"
	"github.com/steer-dev/steer/storage"
)

// Aggregation has a server pass requests on to the API servers behind APIServices. It is
// safe for concurrent use, and has no goroutines but those of the connections that are
// open.
type Aggregation struct {
	store    storage.Store
	server   *apiserver.Server
	services *egress.Services
	identity Identity
	log      *slog.Logger
	metrics  *metrics
	buffers  buffers
	// running ends with Close, and all requests with it.
	running context.Context // the life of the aggregation
	stop    context.CancelFunc
	// unsubscribe ends what follows the table of addresses.
	unsubscribe []func()

	mu sync.Mutex // never held while the store is read, or another server asked
	// at is the newest state of the store that the server was told.
	at storage.Revision
	// remote are the stored services that other servers serve.
	remote   []service
	backends map[reach]*backend
	// documents are what the servers say about versions, by the names of services.
	documents map[string]*document
}

// NewAggregation returns an aggregation that has told the server nothing yet.
func NewAggregation(store storage.Store, server *apiserver.Server, services *egress.Services, identity Identity, log *slog.Logger) *Aggregation {
	a := &Aggregation{store: store, server: server, services: services, identity: identity, log: log, metrics: newMetrics(store), backends: map[reach]*backend{}, documents: map[string]*document{}}
	a.running, a.stop = context.WithCancel(context.Background())
	return a
}

// Close ends all requests to other servers and closes the connections to them. Closing
// twice is no error.
func (a *Aggregation) Close() {
	a.stop()
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, end := range a.unsubscribe {
		end()
	}
	a.unsubscribe = nil
	for _, b := range a.backends {
		b.close()
	}
	clear(a.backends)
}

// onAddresses has a function called when a Service is given another address, until Close.
func (a *Aggregation) onAddresses(changed func()) {
	end := a.services.Table.OnChange(changed)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.unsubscribe = append(a.unsubscribe, end)
}

// Resource returns APIServices, by whose changes the server is told.
func (a *Aggregation) Resource() *resource.Resource {
	r := *shared()
	r.Committed = func(ctx context.Context, c resource.Change) error {
		if !isRemote(c.Object) && !isRemote(c.Old) {
			return nil
		}
		s, _ := c.Object.(service)
		old, _ := c.Old.(service)
		a.metrics.changed(s, old)
		return a.Load(ctx)
	}
	return &r
}

func isRemote(obj resource.Object) bool {
	s, ok := obj.(service)
	return ok && s.Spec.Service != nil
}

// Load tells the server what is stored.
func (a *Aggregation) Load(ctx context.Context) error {
	view := a.store.Latest()
	a.mu.Lock()
	defer a.mu.Unlock()
	if view.Revision() < a.at {
		return nil // a call that was later has told it
	}
	a.at = view.Revision()
	had := len(a.remote) > 0
	a.remote = nil
	used, named := map[reach]bool{}, map[string]bool{}
	for rec := range view.Ascend(Bucket, "", "") {
		if s := remote(rec); s != nil {
			a.remote = append(a.remote, s)
			used[reachOf(s)], named[s.Name] = true, true
		}
	}
	for r, b := range a.backends {
		if !used[r] {
			b.close()
			delete(a.backends, r)
		}
	}
	maps.DeleteFunc(a.documents, func(name string, _ *document) bool { return !named[name] })
	if len(a.remote) > 0 || had {
		a.publish()
	}
	return nil
}

// publish tells the server which versions others serve. The caller holds mu.
func (a *Aggregation) publish() {
	var others []apiserver.Delegated
	for _, s := range a.remote {
		b, d := a.backend(reachOf(s)), a.documents[s.Name]
		if d == nil {
			d = &document{stale: true}
		}
		others = append(others, apiserver.Delegated{
			Elsewhere: discovery.Elsewhere{
				GroupVersion:  schema.GroupVersion{Group: s.Spec.Group, Version: s.Spec.Version},
				GroupPriority: s.Spec.GroupPriorityMinimum, VersionPriority: s.Spec.VersionPriority,
				Resources: d.resources, Stale: d.stale,
			},
			OpenAPI: d.openAPI, Swagger: d.swagger, Convert: d.onlyOld,
			Handler: &proxy{
				backend: b, available: available(s),
				running: a.running, buffers: &a.buffers, log: a.log,
			},
		})
	}
	a.server.Delegate(others...)
}

// describe asks the server behind a service what it says about the version, and publishes
// what is new of that. If the server does not answer, what it said last is stale.
func (a *Aggregation) describe(ctx context.Context, s service) error {
	a.mu.Lock()
	b, last := a.backend(reachOf(s)), a.documents[s.Name]
	a.mu.Unlock()
	known := document{stale: true}
	if last != nil {
		known = *last
	}
	next := known
	next.stale = false
	err := b.discover(ctx, s, last, &next)
	if err != nil {
		next = known
		next.stale = true
	}
	last = a.learn(s, last, &next)
	// A server that answers is asked, whatever its discovery is: the descriptions do not depend on it.
	if invalid := (*invalidError)(nil); err == nil || errors.As(err, &invalid) {
		a.learn(s, last, b.openAPI(ctx, next))
	}
	return err
}

// learn publishes what a server says about the version of a service, if that is new, and returns it.
func (a *Aggregation) learn(s service, last, next *document) *document {
	a.mu.Lock()
	defer a.mu.Unlock()
	stored := slices.ContainsFunc(a.remote, func(other service) bool { return other.Name == s.Name })
	if !stored || reflect.DeepEqual(last, next) {
		return last
	}
	a.documents[s.Name] = next
	a.publish()
	return next
}

// backend returns a server, new ones included. The caller holds mu.
func (a *Aggregation) backend(r reach) *backend {
	b := a.backends[r]
	if b == nil {
		b = newBackend(a.running, r, a.services, a.identity)
		a.backends[r] = b
	}
	return b
}

// behind returns the server behind a service.
func (a *Aggregation) behind(s service) *backend {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.backend(reachOf(s))
}

// buffers are those by which bodies are copied.
type buffers struct{ pool sync.Pool }

const bufferBytes = 32 << 10

// Get implements [httputil.BufferPool].
func (b *buffers) Get() []byte {
	if buffer, ok := b.pool.Get().(*[bufferBytes]byte); ok {
		return buffer[:]
	}
	return make([]byte, bufferBytes)
}

// Put implements [httputil.BufferPool].
func (b *buffers) Put(buffer []byte) { b.pool.Put((*[bufferBytes]byte)(buffer)) }

// remote returns the service of a record if another server serves it, or nil. Most
// are of this one, and are not even decoded.
func remote(rec *storage.Record) service {
	if !bytes.Contains(rec.Value, []byte(`"service":{`)) {
		return nil
	}
	s := decode(rec)
	if s == nil || s.Spec.Service == nil {
		return nil
	}
	return s
}

// decode returns the service of a record, or nil if it is none.
func decode(rec *storage.Record) service {
	s := &v1.APIService{}
	if json.Unmarshal(rec.Value, s) != nil {
		return nil
	}
	return s
}
