// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/apiserver/discovery"
	"github.com/steer-dev/steer/apiserver/internal/endpoint"
	"github.com/steer-dev/steer/apiserver/internal/exchange"
	"github.com/steer-dev/steer/apiserver/internal/inprocess"
	"github.com/steer-dev/steer/apiserver/internal/registry"
	"github.com/steer-dev/steer/apiserver/notes"
	"github.com/steer-dev/steer/apiserver/openapi"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/storage"
)

// Server serves resources. All methods are safe for concurrent use.
type Server struct {
	options  Options
	store    storage.Store
	entropy  Entropy
	limits   Limits
	metrics  *metrics
	inFlight *exchange.MaxInFlight
	// impersonator lets users act as others.
	impersonator auth.Impersonator
	// leadership is nil where one server has the store.
	leadership Leadership
	// registry stores the objects, endpoint answers the requests for them.
	registry *registry.Registry
	notes    *notes.Notes // nil: none
	endpoint *endpoint.Handler

	mu    sync.Mutex // serialises changes of table
	table atomic.Pointer[served]

	leaving  atomic.Bool     // whether Leave or Stop was called
	stopping context.Context // done once EndWatches or Stop was called
	stop     context.CancelFunc
}

// served is the set of resources and handlers at one time. It is immutable.
type served struct {
	resources map[schema.GroupResource]*installed
	handlers  map[string]http.Handler
	// delegated are the group versions that other servers serve, by path.
	delegated map[string]Delegated
	// generation counts the changes of resources and of delegated.
	generation uint64
	// discovery and openapi return the documents of the resources.
	discovery func() *discovery.Documents
	openapi   func() *openapi.Documents
}

// installed is a resource while it is served.
type installed struct {
	*registry.Served
	remove   context.CancelFunc
	observed observed
}

// New returns a server without resources. It starts nothing; to end the
// requests in flight, call Stop.
func New(options Options) (*Server, error) {
	if options.Store == nil {
		return nil, errors.New("apiserver: Options.Store is required: give it a store, for example storage.NewMemory(storage.MemoryOptions{})")
	}
	if options.Entropy == nil {
		options.Entropy = RandomEntropy()
	}
	if options.Authenticator == nil {
		options.Authenticator = auth.AsAnonymous{}
	}
	if options.Authorizer == nil {
		options.Authorizer = auth.Authorizers{auth.AllowMasters{}, auth.AllowPaths{
			"/healthz", "/livez", "/readyz", "/version", "/version/", "/api", "/api/*", "/apis", "/apis/*", "/openapi/*",
		}}
	}
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{
		options: options, store: options.Store, entropy: options.Entropy,
		limits: options.Limits.withDefaults(),
	}
	if options.NoteBytes >= 0 {
		s.notes = notes.New(options.NoteBytes)
	}
	s.impersonator.Authorizer = options.Authorizer
	s.inFlight = exchange.NewMaxInFlight(exchange.Limits{
		Reads: s.limits.Reads, Writes: s.limits.Writes, Watches: s.limits.WatchesPerUser,
		Connections: s.limits.Connections, UserConnections: s.limits.ConnectionsPerUser,
		UserWaiting: s.limits.WaitingPerUser, ConnectionWaiting: s.limits.WaitingPerConnection,
	})
	s.metrics = newMetrics(options.Metrics, s)
	s.stopping, s.stop = context.WithCancel(context.Background())
	s.registry = registry.New(registry.Options{
		Store: s.store, Identity: s.entropy, Admission: options.Admission, AuthorizeCreate: s.authorizeCreate,
		CacheBytes: options.CacheBytes, Notes: s.notes, ObjectBytes: s.limits.ObjectBytes,
	})
	s.endpoint = endpoint.New(endpoint.Options{
		Registry: s.registry, Known: s.known, Watched: s.metrics.watch, Jitter: s.entropy.Jitter, Log: options.Log,
		BodyBytes: s.limits.BodyBytes, PatchOperations: s.limits.PatchOperations, RequestTimeout: s.limits.RequestTimeout,
		MinWatch: s.limits.MinWatch, BookmarkEvery: s.limits.BookmarkEvery, Audited: options.Audit != nil,
	})
	empty := &served{resources: map[schema.GroupResource]*installed{}, handlers: map[string]http.Handler{}}
	empty.discovery, empty.openapi = empty.documents(), empty.descriptions()
	s.table.Store(empty)
	s.mountBuiltins()
	return s, nil
}

// Bindings are the options of a server that may need the server itself to be made: an
// admission plugin that sends requests, for example. A nil field leaves the option of
// the same name as it is.
type Bindings struct {
	Authenticator auth.Authenticator
	Admission     resource.Admission
	Checks        []Check
	// Leadership is set where several servers share the store.
	Leadership Leadership
}

// Bind sets options of a new server. It is called before the first resource is installed
// and before the first request, and not concurrently with anything else.
func (s *Server) Bind(b Bindings) {
	if b.Authenticator != nil {
		s.options.Authenticator = b.Authenticator
	}
	if b.Admission != nil {
		s.registry.SetAdmission(b.Admission)
	}
	if b.Leadership != nil {
		s.leadership = b.Leadership
	}
	if b.Checks != nil {
		s.options.Checks = b.Checks
		s.mountBuiltins()
	}
}

// Install adds resources, or replaces those of the same group and plural name, whose
// watches then end. The next request sees all of them. If one is invalid, none is
// installed.
func (s *Server) Install(resources ...*resource.Resource) error {
	for _, r := range resources {
		if err := r.Check(); err != nil {
			return err
		}
	}
	resources, err := s.dated(resources)
	if err != nil {
		return err
	}
	var replaced []*installed
	s.change(func(t *served) {
		for _, r := range resources {
			if old := t.resources[r.GroupResource()]; old != nil {
				replaced = append(replaced, old)
			}
			t.resources[r.GroupResource()] = s.installed(r)
		}
		t.generation++
		t.discovery, t.openapi = t.documents(), t.descriptions()
	})
	for _, old := range replaced {
		old.remove()
	}
	return nil
}

// installedBucket has a record for each resource with [resource.SinceInstalled], written
// when it was installed last.
const installedBucket = "steer.dev/installed"

// dated returns resources with a revision in place of [resource.SinceInstalled].
func (s *Server) dated(resources []*resource.Resource) ([]*resource.Resource, error) {
	out := slices.Clone(resources)
	for i, r := range out {
		if r.Storage.Since != resource.SinceInstalled {
			continue
		}
		// The write also makes the revision of an empty store greater than 0, which has a
		// meaning of its own in requests.
		rec, err := s.store.Commit(context.Background(), storage.Write{
			Key: storage.Key{Bucket: installedBucket, Name: r.GroupResource().String()}, Value: []byte("{}"), Expect: storage.AnyRevision,
		})
		if err != nil {
			return nil, fmt.Errorf("apiserver: install %s: note the revision in the store: %w", r.Plural, err)
		}
		dated := *r
		dated.Storage.Since = rec.Modified
		out[i] = &dated
	}
	return out, nil
}

// installed prepares a resource for serving.
func (s *Server) installed(r *resource.Resource) *installed {
	in := &installed{Served: s.registry.Serve(r.Viewed())}
	in.Gone, in.remove = context.WithCancel(s.stopping)
	return in
}

// Remove removes a resource and ends its watches. Removing an unknown one is no error.
func (s *Server) Remove(group, plural string) {
	var removed *installed
	s.change(func(t *served) {
		gr := schema.GroupResource{Group: group, Resource: plural}
		removed = t.resources[gr]
		delete(t.resources, gr)
		t.generation++
		t.discovery, t.openapi = t.documents(), t.descriptions()
	})
	if removed != nil {
		removed.remove()
	}
}

// Handle mounts a handler at a path outside the resource API; a path that ends in a
// slash covers everything below it. Requests for it are authenticated, authorized and
// limited like others. A nil handler unmounts the path.
func (s *Server) Handle(path string, h http.Handler) {
	s.change(func(t *served) {
		if h == nil {
			delete(t.handlers, path)
			return
		}
		t.handlers[path] = h
		t.openapi = t.descriptions()
	})
}

func (s *Server) change(edit func(*served)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.table.Load()
	next := &served{resources: maps.Clone(old.resources), handlers: maps.Clone(old.handlers), delegated: old.delegated, generation: old.generation, discovery: old.discovery, openapi: old.openapi}
	edit(next)
	s.table.Store(next)
}

// handler returns the mounted handler of a path.
func (t *served) handler(path string) http.Handler {
	if path == "/" {
		path = indexPath
	}
	if h := t.handlers[path]; h != nil {
		return h
	}
	for {
		cut := strings.LastIndexByte(strings.TrimSuffix(path, "/"), '/')
		if cut < 0 {
			return nil
		}
		path = path[:cut+1]
		if h := t.handlers[path]; h != nil {
			return h
		}
	}
}

// Resources returns the served resources, ordered by group and name.
func (s *Server) Resources() []*resource.Resource {
	ordered := s.table.Load().ordered()
	all := make([]*resource.Resource, len(ordered))
	for i, in := range ordered {
		all[i] = in.Resource
	}
	return all
}

// Generation returns a number that changes whenever [Server.Resources] or
// [Server.Delegated] does.
func (s *Server) Generation() uint64 { return s.table.Load().generation }

// Serves reports whether a resource is served.
func (s *Server) Serves(gr schema.GroupResource) bool { return s.table.Load().resources[gr] != nil }

// HasBuiltIn reports whether a group version has kinds with Go types.
func (s *Server) HasBuiltIn(gv schema.GroupVersion) bool {
	return s.table.Load().serves(gv.Group, gv.Version)
}

// Handler returns the HTTP handler of the server. It authenticates requests.
func (s *Server) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.serve(w, r) })
}

// RoundTripper returns an in-process transport. Its requests run as user, whatever
// credentials they carry, and pass the same limits, impersonation, authorization and
// admission as requests over the network. Answers stream, and nothing blocks on
// sockets, so that it works inside a testing/synctest bubble. A nil user is anonymous.
func (s *Server) RoundTripper(user *auth.User) http.RoundTripper {
	if user == nil {
		user = &auth.User{Name: auth.Anonymous, Groups: []string{auth.Unauthenticated}}
	}
	return s.inProcess(func(ctx context.Context) context.Context { return auth.WithUser(ctx, user) })
}

// Reserved returns a [Server.RoundTripper] for the parts of the server itself: its
// controllers, and what they send while they answer others' requests. Slots are reserved for
// them, which no client can take.
func (s *Server) Reserved(user *auth.User) http.RoundTripper {
	return s.inProcess(func(ctx context.Context) context.Context {
		return context.WithValue(auth.WithUser(ctx, user), reservedKey{}, true)
	})
}

// inProcess carries requests of whom their context then names.
func (s *Server) inProcess(in func(context.Context) context.Context) http.RoundTripper {
	return &inprocess.Transport{Handler: s.Handler(), Context: in, Streams: s.streams}
}

// Leave has /readyz fail, so that load balancers choose other servers. Requests are
// answered as before.
func (s *Server) Leave() { s.leaving.Store(true) }

// EndWatches ends all watches in order, and those that begin afterwards.
func (s *Server) EndWatches() {
	s.Leave()
	s.stop()
}

// Stop ends all watches in order, refuses new requests with 503 and waits for those in
// flight, or for ctx. It is idempotent.
func (s *Server) Stop(ctx context.Context) error {
	s.EndWatches()
	return s.inFlight.Drain(ctx)
}

// Decode returns stored records of a served resource as objects in one of its versions, as
// a reader gets them: converted, and with defaults. The caller must not change them. A
// resource that is not served, or not in this version, is a 404.
func (s *Server) Decode(ctx context.Context, gvr schema.GroupVersionResource, records ...*storage.Record) ([]resource.Object, error) {
	if in := s.table.Load().resources[gvr.GroupResource()]; in != nil {
		if v := in.Version(gvr.Version); v != nil {
			return s.registry.Objects(ctx, in.Served, v, records)
		}
	}
	return nil, apierrors.NewNotFound(gvr.GroupResource(), "")
}

// known reports whether any version of a kind is served, and the bucket of its objects.
func (s *Server) known(gvk schema.GroupVersionKind) (bucket string, ok bool) {
	for _, in := range s.table.Load().resources {
		if in.Group == gvk.Group && in.Kind == gvk.Kind && in.Version(gvk.Version) != nil {
			return in.Storage.Bucket, true
		}
	}
	return "", false
}
