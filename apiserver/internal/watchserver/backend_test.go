// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package watchserver

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	kwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/steer-dev/steer/apiserver/internal/exchange"
	"github.com/steer-dev/steer/apiserver/internal/registry"
	"github.com/steer-dev/steer/apiserver/internal/representation"
	"github.com/steer-dev/steer/apiserver/resource"
)

// computed is a resource whose events its backend makes.
type computed struct {
	events iter.Seq2[resource.WatchEvent, error]
	err    error
}

func (c computed) Watch(context.Context, *resource.Request, *internalversion.ListOptions) (iter.Seq2[resource.WatchEvent, error], error) {
	return c.events, c.err
}

func TestServeBackendSendsWhatTheBackendYields(t *testing.T) {
	inTime(t, func(f *fixture) {
		config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", ResourceVersion: "7"}}
		mark := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "9"}}
		serve := func(b computed, bookmarks bool) (*watching, error) {
			v := &f.served.Versions[0]
			sel, err := f.registry.Select(&resource.Request{Resource: f.served.Resource, Version: v}, f.served, &internalversion.ListOptions{})
			if err != nil {
				f.Fatal(err)
			}
			w := &watching{fixture: f, sent: newRecorder()}
			err = f.server.ServeBackend(f.Context(), &exchange.Writer{ResponseWriter: w.sent, Warnings: noWarnings{}}, &Request{
				HTTP:           httptest.NewRequest(http.MethodGet, "/api/v1/namespaces/default/configmaps?watch=true", nil),
				Representation: representation.Representation{Choice: asJSON, Served: f.served, Version: v}, Selection: sel,
				Options: &internalversion.ListOptions{AllowWatchBookmarks: bookmarks},
				Metrics: Metrics{Events: prometheus.NewCounter(prometheus.CounterOpts{}), Sizes: prometheus.NewSummary(prometheus.SummaryOpts{})},
				Status:  func(err error) *metav1.Status { return &metav1.Status{Reason: metav1.StatusReason(err.Error())} },
			}, &resource.Request{}, b)
			return w, err
		}
		unreadable := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "none"}}
		yields := func(events ...any) computed {
			return computed{events: func(yield func(resource.WatchEvent, error) bool) {
				for _, event := range events {
					err, failed := event.(error)
					if failed && !yield(resource.WatchEvent{}, err) || !failed && !yield(event.(resource.WatchEvent), nil) {
						return
					}
				}
			}}
		}
		added, bookmark := resource.WatchEvent{Type: "ADDED", Object: config}, resource.WatchEvent{Type: "BOOKMARK", Object: mark}
		for _, c := range []struct {
			when      string
			b         computed
			bookmarks bool
			want      string
		}{
			{"an error", yields(added, bookmark, errors.New("broken"), resource.WatchEvent{Type: "DELETED", Object: config}), true, "ADDED a@7, BOOKMARK @9, ERROR broken"},
			{"the end", yields(added), true, "ADDED a@7"},
			{"bookmarks that are not allowed", yields(bookmark, added), false, "ADDED a@7"},
			{"a bookmark without a revision", yields(resource.WatchEvent{Type: "BOOKMARK", Object: unreadable}, added), true,
				`ERROR Internal error occurred: a bookmark of the backend: resourceVersion: strconv.ParseInt: parsing "none": invalid syntax`},
		} {
			w, err := serve(c.b, c.bookmarks)
			if err != nil {
				f.Error(err)
			}
			w.expect(c.when, c.want)
		}
		refused := errors.New("refused")
		if w, err := serve(computed{err: refused}, false); !errors.Is(err, refused) || len(w.sent.bytes()) > 0 {
			f.Errorf("a refused watch answers %v and sends %q", err, w.sent.bytes())
		}
	})
}

// TestWatchesOfBackendsAreSelected: a backend has all events, of which a client gets those of
// its namespace and its selectors, after the objects that are present.
func TestWatchesOfBackendsAreSelected(t *testing.T) {
	inTime(t, func(f *fixture) {
		config := func(revision, namespace, name, x string) *corev1.ConfigMap {
			return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, ResourceVersion: revision, Labels: map[string]string{"x": x}}}
		}
		event := func(t kwatch.EventType, obj, previous *corev1.ConfigMap) resource.WatchEvent {
			e := resource.WatchEvent{Type: t, Object: obj}
			if previous != nil {
				e.Previous = previous
			}
			return e
		}
		var asked internalversion.ListOptions
		b := watcher(func(o *internalversion.ListOptions) iter.Seq2[resource.WatchEvent, error] {
			asked = *o
			return func(yield func(resource.WatchEvent, error) bool) {
				for _, e := range []resource.WatchEvent{
					event(kwatch.Added, config("8", "default", "b", "no"), nil),
					event(kwatch.Added, config("9", "other", "c", "1"), nil),
					event(kwatch.Modified, config("10", "default", "b", "1"), config("8", "default", "b", "no")),
					event(kwatch.Modified, config("11", "default", "b", "1"), config("10", "default", "b", "1")),
					event(kwatch.Modified, config("12", "default", "b", "no"), config("11", "default", "b", "1")),
					event(kwatch.Modified, config("13", "default", "b", "never"), config("12", "default", "b", "no")),
					event(kwatch.Modified, config("14", "default", "a", "no"), nil),
					event(kwatch.Modified, config("15", "default", "a", "1"), nil),
					event(kwatch.Deleted, config("16", "default", "b", "never"), nil),
					event(kwatch.Deleted, config("17", "default", "a", "1"), nil),
				} {
					if !yield(e, nil) {
						return
					}
				}
			}
		})
		v := &f.served.Versions[0]
		yes := true
		options := &internalversion.ListOptions{
			LabelSelector: labels.SelectorFromSet(labels.Set{"x": "1"}), AllowWatchBookmarks: true,
			SendInitialEvents: &yes, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
		}
		sel, err := f.registry.Select(&resource.Request{Resource: f.served.Resource, Version: v, Namespace: "default"}, f.served, options)
		if err != nil {
			f.Fatal(err)
		}
		present, err := f.registry.RecordsFromBackend(f.Context(), f.served, v, config("5", "default", "a", "1"))
		if err != nil {
			f.Fatal(err)
		}
		w := &watching{fixture: f, sent: newRecorder()}
		err = f.server.ServeBackend(f.Context(), &exchange.Writer{ResponseWriter: w.sent, Warnings: noWarnings{}}, &Request{
			HTTP:           httptest.NewRequest(http.MethodGet, "/api/v1/namespaces/default/configmaps?watch=true", nil),
			Representation: representation.Representation{Choice: asJSON, Served: f.served, Version: v}, Selection: sel, Options: options,
			Present: &registry.Page{Records: present, Revision: 7},
			Metrics: Metrics{Events: prometheus.NewCounter(prometheus.CounterOpts{}), Sizes: prometheus.NewSummary(prometheus.SummaryOpts{})},
			Status:  func(err error) *metav1.Status { return &metav1.Status{Reason: metav1.StatusReason(err.Error())} },
		}, &resource.Request{}, b)
		if err != nil {
			f.Error(err)
		}
		w.expect("selected", "ADDED a@5, BOOKMARK @7 end, ADDED b@10, MODIFIED b@11, DELETED b@12, DELETED a@14, MODIFIED a@15, DELETED a@17")
		if asked.ResourceVersion != "7" || asked.SendInitialEvents != nil || asked.ResourceVersionMatch != "" {
			f.Errorf("the backend was asked with %+v", asked)
		}
	})
}

// watcher is a [resource.Watcher].
type watcher func(o *internalversion.ListOptions) iter.Seq2[resource.WatchEvent, error]

func (w watcher) Watch(_ context.Context, _ *resource.Request, o *internalversion.ListOptions) (iter.Seq2[resource.WatchEvent, error], error) {
	return w(o), nil
}
