// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package watchserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/steer-dev/steer/apiserver/internal/exchange"
	"github.com/steer-dev/steer/apiserver/internal/negotiation"
	"github.com/steer-dev/steer/apiserver/internal/registry"
	"github.com/steer-dev/steer/apiserver/internal/representation"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/apiserver/table"
	"github.com/steer-dev/steer/storage"
)

// fixture is a store of ConfigMaps and a server of watches, in virtual time.
type fixture struct {
	*testing.T
	store    *storage.Memory
	registry *registry.Registry
	served   *registry.Served
	server   *Server
	replace  context.CancelFunc // of the served resource
	onStatus func()             // called when a watch makes an ERROR event; may be nil
	onWrite  func()             // called before a watch writes; may be nil
}

// inTime runs a test in virtual time, with a server whose watches last a minute and get a
// bookmark every ten seconds.
func inTime(t *testing.T, test func(f *fixture)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fixture{T: t, store: storage.NewMemory(storage.MemoryOptions{})}
		defer func() { _ = f.store.Close() }()
		f.registry = registry.New(registry.Options{Store: f.store})
		f.served = f.registry.Serve(&resource.Resource{
			Names:   resource.Names{Plural: "configmaps", Kind: "ConfigMap", ListKind: "ConfigMapList", Namespaced: true},
			Storage: resource.Storage{Bucket: "configmaps", Version: "v1"},
			Versions: []resource.Version{{
				Name: "v1", New: func() resource.Object { return &corev1.ConfigMap{} },
				Printer: &table.Typed[*corev1.ConfigMap]{
					Definitions: []metav1.TableColumnDefinition{{Name: "Name"}, {Name: "Data"}},
					Row:         func(c *corev1.ConfigMap) []any { return []any{c.Name, len(c.Data)} },
				},
				Selectable: []resource.SelectableField{{Path: "data.a", Value: func(o resource.Object) string { return o.(*corev1.ConfigMap).Data["a"] }}},
			}},
		})
		f.served.Gone, f.replace = context.WithCancel(t.Context())
		f.server = New(Options{
			Registry: f.registry, MinWatch: time.Minute, BookmarkEvery: 10 * time.Second,
			Jitter: func(time.Duration) time.Duration { return 0 },
		})
		test(f)
	})
}

// put stores an object with labels, in JSON, and without them deletes it.
func (f *fixture) put(name, labels string) {
	f.Helper()
	w := storage.Write{Key: storage.Key{Bucket: "configmaps", Name: "default/" + name}, Expect: storage.AnyRevision}
	if labels != "" {
		const before = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"resourceVersion":"`
		w.Value, w.Stamp = fmt.Appendf(nil, before+`","name":%q,"namespace":"default","labels":%s},"data":{"a":"b"}}`, name, labels), len(before)
	}
	if _, err := f.store.Commit(f.Context(), w); err != nil {
		f.Fatal(err)
	}
}

// recorder keeps the answer to a watch. It is safe for concurrent use.
type recorder struct {
	mu     sync.Mutex
	header http.Header
	code   int
	body   []byte
	before func() // called by Write; may be nil
}

func newRecorder() *recorder { return &recorder{header: http.Header{}} }

func (r *recorder) Header() http.Header  { return r.header }
func (r *recorder) WriteHeader(code int) { r.code = code }
func (r *recorder) Flush()               {}

func (r *recorder) Write(p []byte) (int, error) {
	if r.before != nil {
		r.before()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.body = append(r.body, p...)
	return len(p), nil
}

func (r *recorder) bytes() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return bytes.Clone(r.body)
}

// watching is a watch under way.
type watching struct {
	*fixture
	sent   *recorder
	read   int // bytes
	cancel context.CancelFunc
	done   chan error
}

// watch begins a watch after a revision, -1 for one that begins with the present objects.
func (f *fixture) watch(choice negotiation.Choice, after storage.Revision, change func(*internalversion.ListOptions)) *watching {
	f.Helper()
	options := &internalversion.ListOptions{ResourceVersion: fmt.Sprint(after)}
	if after < 0 {
		options.ResourceVersion, after = "", 0
	}
	if change != nil {
		change(options)
	}
	v := &f.served.Versions[0]
	sel, err := f.registry.Select(&resource.Request{Resource: f.served.Resource, Version: v, Namespace: "default"}, f.served, options)
	if err != nil {
		f.Fatal(err)
	}
	w := &watching{fixture: f, sent: newRecorder(), done: make(chan error, 1)}
	w.sent.before = f.onWrite
	req := &Request{
		HTTP:           httptest.NewRequest(http.MethodGet, "/api/v1/namespaces/default/configmaps?watch=true", nil),
		Representation: representation.Representation{Choice: choice, Served: f.served, Version: v},
		Tables:         representation.NewTables(v, ""), Selection: sel, After: after, Options: options,
		Metrics: Metrics{Events: prometheus.NewCounter(prometheus.CounterOpts{}), Sizes: prometheus.NewSummary(prometheus.SummaryOpts{})},
		Status: func(err error) *metav1.Status {
			if f.onStatus != nil {
				f.onStatus()
			}
			var known apierrors.APIStatus
			if errors.As(err, &known) {
				status := known.Status()
				return &status
			}
			return &metav1.Status{Reason: "Unknown", Message: err.Error()}
		},
	}
	ctx, cancel := context.WithCancel(f.Context())
	w.cancel = cancel
	go func() {
		w.done <- f.server.Serve(ctx, &exchange.Writer{ResponseWriter: w.sent, Warnings: noWarnings{}}, req)
	}()
	return w
}

// next returns the events that were sent since the last call, as "TYPE name@revision".
func (w *watching) next() string {
	w.Helper()
	synctest.Wait()
	all := w.sent.bytes()
	lines := all[w.read:]
	w.read = len(all)
	var out []string
	for line := range bytes.Lines(lines) {
		var e struct {
			Type   string
			Object struct {
				metav1.PartialObjectMetadata
				Reason string
			}
		}
		if err := json.Unmarshal(line, &e); err != nil {
			w.Fatalf("%s: %v", line, err)
		}
		text := e.Type + " " + e.Object.Name + "@" + e.Object.ResourceVersion
		if e.Object.Annotations[metav1.InitialEventsAnnotationKey] == "true" {
			text += " end"
		}
		if e.Type == "ERROR" {
			text = "ERROR " + e.Object.Reason
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ")
}

// expect compares the events since the last call.
func (w *watching) expect(when, want string) {
	w.Helper()
	if got := w.next(); got != want {
		w.Errorf("%s: %q, want %q", when, got, want)
	}
}

// end waits for the watch to end by itself.
func (w *watching) end() {
	w.Helper()
	if err := <-w.done; err != nil {
		w.Errorf("the watch ended with %v", err)
	}
	w.cancel()
}

type noWarnings struct{}

func (noWarnings) Texts() []string { return nil }

var asJSON = negotiation.Choice{MetaVersion: "v1"}

func TestServeSendsPresentObjectsAndThenChanges(t *testing.T) {
	inTime(t, func(f *fixture) {
		f.put("a", "{}")
		f.put("b", "{}")
		w := f.watch(asJSON, -1, nil)
		w.expect("at the start", "ADDED a@1, ADDED b@2")
		if got := w.sent.Header().Get("Content-Type"); got != "application/json" || w.sent.code != 200 {
			f.Errorf("the answer is %d, %s", w.sent.code, got)
		}
		f.put("c", "{}")
		f.put("a", `{"x":"y"}`)
		w.expect("after two writes", "ADDED c@3, MODIFIED a@4")
		f.put("b", "")
		w.expect("after a deletion", "DELETED b@5")
		resumed := f.watch(asJSON, 3, nil)
		resumed.expect("resumed after revision 3", "MODIFIED a@4, DELETED b@5")
		for _, w := range []*watching{w, resumed} {
			w.cancel()
			w.end()
		}
	})
}

func TestServeSendsChangesOfTheSelection(t *testing.T) {
	inTime(t, func(f *fixture) {
		f.put("a", `{"app":"web"}`)
		f.put("b", `{"app":"db"}`)
		w := f.watch(asJSON, -1, func(o *internalversion.ListOptions) {
			o.LabelSelector = labels.SelectorFromSet(labels.Set{"app": "web"})
		})
		w.expect("at the start", "ADDED a@1")
		f.put("b", `{"app":"web"}`)
		f.put("a", `{"app":"db"}`)
		w.expect("as objects enter and leave", "ADDED b@3, DELETED a@4")
		f.put("a", `{"app":"none"}`)
		f.put("a", "")
		w.expect("as others change", "")
		named := f.watch(asJSON, 0, func(o *internalversion.ListOptions) {
			o.FieldSelector = fields.OneTermEqualSelector("metadata.name", "b")
		})
		named.expect("of one name", "ADDED b@3")
		for _, w := range []*watching{w, named} {
			w.cancel()
			w.end()
		}
	})
}

func TestServeSendsBookmarks(t *testing.T) {
	inTime(t, func(f *fixture) {
		f.put("a", "{}")
		bookmarks := func(o *internalversion.ListOptions) { o.AllowWatchBookmarks = true }
		w := f.watch(asJSON, 1, bookmarks)
		time.Sleep(10*time.Second - time.Nanosecond)
		w.expect("before ten seconds", "")
		time.Sleep(time.Nanosecond)
		w.expect("after ten seconds", "BOOKMARK @1")
		f.put("a", `{"x":"y"}`)
		w.expect("after a write", "MODIFIED a@2")
		time.Sleep(10 * time.Second)
		w.expect("ten seconds later", "BOOKMARK @2")

		yes := true
		list := f.watch(asJSON, -1, func(o *internalversion.ListOptions) {
			bookmarks(o)
			o.SendInitialEvents = &yes
		})
		list.expect("a watch in place of a list", "ADDED a@2, BOOKMARK @2 end")
		for _, w := range []*watching{w, list} {
			w.cancel()
			w.end()
		}
	})
}

// TestServeEndsInOrder: with a last bookmark if it has news, and without an error.
func TestServeEndsInOrder(t *testing.T) {
	inTime(t, func(f *fixture) {
		seconds := int64(5)
		limited := f.watch(asJSON, 0, func(o *internalversion.ListOptions) { o.TimeoutSeconds, o.AllowWatchBookmarks = &seconds, true })
		lasting := f.watch(asJSON, 0, nil)
		begin := time.Now()
		synctest.Wait()
		f.put("a", "{}")
		limited.expect("after a write", "ADDED a@1")
		limited.end()
		if took := time.Since(begin); took != 5*time.Second {
			f.Errorf("a watch of 5 s ends after %v", took)
		}
		lasting.end()
		if took := time.Since(begin); took != time.Minute {
			f.Errorf("a watch without a timeout ends after %v, want a minute", took)
		}
		limited.expect("at the end", "")
		replaced := f.watch(asJSON, 1, nil)
		synctest.Wait()
		f.put("b", "{}")
		f.replace()
		replaced.end()
		replaced.expect("of a resource that is replaced", "ADDED b@2")
	})
}

func TestServeReportsCompactedRevisions(t *testing.T) {
	inTime(t, func(f *fixture) {
		f.put("a", "{}")
		f.put("a", `{"x":"y"}`)
		f.put("a", `{"x":"z"}`)
		if err := f.store.Compact(f.Context(), 2); err != nil {
			f.Fatal(err)
		}
		w := f.watch(asJSON, 1, nil)
		w.end()
		w.expect("after a revision that is gone", "ERROR Expired")
		future := f.watch(asJSON, -1, func(o *internalversion.ListOptions) {})
		future.expect("of the present", "ADDED a@3")
		future.cancel()
		future.end()
	})
}

func TestServeSendsColumnsOfTablesOnce(t *testing.T) {
	inTime(t, func(f *fixture) {
		f.put("a", "{}")
		w := f.watch(negotiation.Choice{Shape: negotiation.Table, MetaVersion: "v1"}, -1, func(o *internalversion.ListOptions) { o.AllowWatchBookmarks = true })
		synctest.Wait()
		f.put("b", "{}")
		time.Sleep(10 * time.Second)
		synctest.Wait()
		w.cancel()
		w.end()
		var got []string
		for line := range bytes.Lines(w.sent.bytes()) {
			var e struct {
				Type   string
				Object metav1.Table
			}
			if err := json.Unmarshal(line, &e); err != nil {
				f.Fatalf("%s: %v", line, err)
			}
			row := &e.Object.Rows[0]
			got = append(got, fmt.Sprintf("%s %s@%s: %d columns, cells %v, %t", e.Type, e.Object.Kind, e.Object.ResourceVersion,
				len(e.Object.ColumnDefinitions), row.Cells, bytes.Contains(row.Object.Raw, []byte("PartialObjectMetadata"))))
		}
		want := []string{
			"ADDED Table@1: 2 columns, cells [a 1], true", "ADDED Table@2: 0 columns, cells [b 1], true", "BOOKMARK Table@2: 0 columns, cells [ 0], true",
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			f.Errorf("tables are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	})
}

// TestServeGathersEventsUnderLoad: watches of one representation then share whole pieces.
func TestServeGathersEventsUnderLoad(t *testing.T) {
	inTime(t, func(f *fixture) {
		one, two := f.watch(asJSON, 0, nil), f.watch(asJSON, 0, nil)
		meta := f.watch(negotiation.Choice{Shape: negotiation.Metadata, MetaVersion: "v1"}, 0, nil)
		synctest.Wait()
		for i := range 200 {
			for range 10 {
				f.put("a", fmt.Sprintf(`{"i":"%d"}`, i))
			}
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Second)
		events := strings.Split(one.next(), ", ")
		if len(events) != 2000 || events[1999] != "MODIFIED a@2000" {
			f.Errorf("%d events, the last is %s", len(events), events[len(events)-1])
		}
		two.next()
		meta.next()
		if !bytes.Equal(one.sent.bytes(), two.sent.bytes()) {
			f.Error("two watches of one representation are sent different bytes")
		}
		if bytes.Equal(one.sent.bytes(), meta.sent.bytes()) || !bytes.Contains(meta.sent.bytes(), []byte("PartialObjectMetadata")) {
			f.Error("a watch of metadata is sent the objects")
		}
		for _, w := range []*watching{one, two, meta} {
			w.cancel()
			w.end()
		}
		longest := 0
		f.server.chunks.mu.Lock()
		defer f.server.chunks.mu.Unlock()
		for _, chunk := range f.server.chunks.last {
			if chunk != nil {
				longest = max(longest, len(chunk.frames))
			}
		}
		if longest < 2 {
			f.Errorf("the longest shared piece has %d events, want several", longest)
		}
	})
}
