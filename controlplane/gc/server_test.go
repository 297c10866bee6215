// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package gc

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/controlplane/internal/step/steptest"
)

// notes are a resource that another server serves.
func notes() step.Resource {
	return step.Resource{
		Bucket: step.ElsewhereBucket("example.org", "notes"), Group: "example.org", Version: "v1", Plural: "notes", Kind: "Note", Namespaced: true,
		Verbs: []string{"get", "list", "watch", "patch", "delete"},
	}
}

const notesPath = "/apis/example.org/v1/namespaces/a/notes/"

// catalog is a catalog with resources of another server, which may change.
type catalog struct {
	steptest.Catalog
	others     step.Elsewhere
	generation uint64
}

func (c *catalog) Elsewhere() *step.Elsewhere { return &c.others }

func (c *catalog) Generation() uint64 { return c.generation }

// serve changes what the other server serves, and which versions are stale.
func (c *catalog) serve(resources []step.Resource, stale ...schema.GroupVersion) {
	c.generation++
	c.others = step.Elsewhere{Resources: resources, Kinds: map[schema.GroupVersionKind]int{}, Stale: stale}
	for i, r := range resources {
		c.others.Kinds[schema.GroupVersionKind{Group: r.Group, Version: r.Version, Kind: r.Kind}] = i
	}
}

// server is another API server, with objects of one resource.
type server struct {
	t     *testing.T
	begun time.Time

	mu      sync.Mutex
	objects []*metav1.PartialObjectMetadata
	watches []*io.PipeWriter
	log     []string
	// refuse, if set, answers a request with an error; it gets the line of the log.
	refuse func(line string) error
	// begins are what the next watches begin with, after which they end; those beyond stay
	// open.
	begins []string
	// instead, if set, is the answer to requests for one object.
	instead *metav1.PartialObjectMetadata
}

// fetch implements [step.Fetcher].
func (s *server) fetch(ctx context.Context, r step.Request) (io.ReadCloser, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	collection := strings.HasSuffix(r.Path, "/notes")
	line := strings.TrimSpace(r.Method + " " + r.Path + " " + string(r.Body))
	switch {
	case r.Query.Has("watch"):
		line = "WATCH " + r.Query.Get("resourceVersion")
	case collection:
		line = "LIST"
	}
	s.log = append(s.log, fmt.Sprintf("%v %s", time.Since(s.begun), line))
	if s.refuse != nil {
		if err := s.refuse(line); err != nil {
			return nil, err
		}
	}
	switch {
	case r.Query.Has("watch"):
		return s.watch(ctx), nil
	case collection:
		list := &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: "5"}}
		for _, o := range s.objects {
			list.Items = append(list.Items, *o)
		}
		return s.body(list), nil
	case r.Method != http.MethodGet:
		return s.body(struct{}{}), nil
	}
	if s.instead != nil {
		return s.body(s.instead), nil
	}
	for _, o := range s.objects {
		if r.Path == notes().Object(notes().Key(o.Namespace, o.Name)) {
			return s.body(o), nil
		}
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Group: "example.org", Resource: "notes"}, r.Path[strings.LastIndex(r.Path, "/")+1:])
}

func (s *server) body(answer any) io.ReadCloser {
	raw, err := json.Marshal(answer)
	if err != nil {
		s.t.Error(err)
	}
	return io.NopCloser(strings.NewReader(string(raw)))
}

func (s *server) watch(ctx context.Context) io.ReadCloser {
	if len(s.begins) > 0 {
		begin := s.begins[0]
		s.begins = s.begins[1:]
		return io.NopCloser(strings.NewReader(begin))
	}
	r, w := io.Pipe()
	context.AfterFunc(ctx, func() { w.CloseWithError(ctx.Err()) })
	s.watches = append(s.watches, w)
	return r
}

// tell sends an event to the watches, and changes the objects accordingly.
func (s *server) tell(event string, o *metav1.PartialObjectMetadata) {
	s.mu.Lock()
	s.objects = slices.DeleteFunc(s.objects, func(old *metav1.PartialObjectMetadata) bool {
		return old.Namespace == o.Namespace && old.Name == o.Name
	})
	if event != "DELETED" {
		s.objects = append(s.objects, o)
	}
	watches := slices.Clone(s.watches)
	s.mu.Unlock()
	for _, w := range watches {
		_, _ = io.WriteString(w, eventOf(s.t, event, o)) // some watches have ended
	}
}

// end ends the open watches; nil as if their time was over.
func (s *server) end(err error) {
	s.mu.Lock()
	watches := s.watches
	s.watches = nil
	s.mu.Unlock()
	for _, w := range watches {
		w.CloseWithError(cmp.Or(err, io.EOF))
	}
}

// replace changes the objects without an event.
func (s *server) replace(objects ...*metav1.PartialObjectMetadata) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects = objects
}

// answers changes how the server answers.
func (s *server) answers(change func(*server)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
}

// refuses has the server answer all requests whose lines begin so with an error; nil: none.
func (s *server) refuses(begin string, err error) {
	s.answers(func(s *server) {
		s.refuse = func(line string) error {
			if strings.HasPrefix(line, begin) {
				return err
			}
			return nil
		}
	})
}

// requests returns what the server was asked since the last call, with the time that had passed.
func (s *server) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.log
	s.log = nil
	return out
}

func eventOf(t *testing.T, event string, o *metav1.PartialObjectMetadata) string {
	t.Helper()
	raw, err := json.Marshal(map[string]any{"type": event, "object": o})
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// note returns the metadata of an object of the other server: "namespace/name".
func note(name, uid string, with ...func(*metav1.ObjectMeta)) *metav1.PartialObjectMetadata {
	o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid), ResourceVersion: "7"}}
	o.Namespace, o.Name = step.SplitName(name)
	for _, change := range with {
		change(&o.ObjectMeta)
	}
	return o
}

func ownedByNote(name, uid string) func(*metav1.ObjectMeta) {
	return func(m *metav1.ObjectMeta) {
		m.OwnerReferences = append(m.OwnerReferences, steptest.Owner("example.org/v1", "Note", name, types.UID(uid), true))
	}
}

// outside is a world with another server. It lives in a bubble of synctest.
type outside struct {
	*world
	catalog *catalog
	server  *server
	// signals counts those of the collector, seen are those that settle has acted on.
	signals, seen atomic.Int64
	// lost are the errors of requests that were not sent at all, by their line.
	lost map[string]error
}

func newOutside(t *testing.T, objects ...*metav1.PartialObjectMetadata) *outside {
	t.Helper()
	o := &outside{world: newWorld(t), catalog: &catalog{Catalog: testCatalog()}, server: &server{t: t, begun: time.Now(), objects: objects}}
	o.catalog.serve([]step.Resource{notes()})
	o.collector = New(o.catalog, steptest.Decode, o.server.fetch)
	o.collector.OnSignal(func() { o.signals.Add(1) })
	t.Cleanup(o.collector.Close)
	return o
}

// step has the collector look once, carries out its requests to the other server and returns
// all requests, one line each.
func (o *outside) step() string {
	o.t.Helper()
	synctest.Wait()
	o.catchUp()
	requests := o.collector.Sync(o.store.Latest(), time.Now())
	for _, r := range requests {
		err := o.lost[r.Method+" "+r.Path]
		if r.Do != nil && err == nil {
			err = r.Do(o.t.Context())
		}
		o.collector.Done(r, err)
	}
	return render(requests)
}

// settle has the collector look until nothing is left to do now, and returns its requests.
func (o *outside) settle() string {
	o.t.Helper()
	var all []string
	for range 20 {
		synctest.Wait()
		o.seen.Store(o.signals.Load())
		lines := o.step()
		if lines != "" {
			all = append(all, lines)
		}
		synctest.Wait() // for what the mirrors see
		if now := o.collector.Wake(); lines == "" && o.seen.Load() == o.signals.Load() && (now.IsZero() || now.After(time.Now())) {
			return strings.Join(all, "\n")
		}
	}
	o.t.Fatalf("the collector does not come to rest:\n%s", strings.Join(all, "\n"))
	return ""
}

// pass lets time go by.
func (*outside) pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}
