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

	"github.com/steer-dev/steer/apiserver/internal/encode"
	"github.com/steer-dev/steer/apiserver/internal/exchange"
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
		mark := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "9", Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}}}
		serve := func(b computed, bookmarks bool) (*watching, error) {
			v := &f.served.Versions[0]
			w := &watching{fixture: f, sent: newRecorder()}
			err := f.server.ServeBackend(f.Context(), &exchange.Writer{ResponseWriter: w.sent, Warnings: noWarnings{}}, &Request{
				HTTP:           httptest.NewRequest(http.MethodGet, "/api/v1/namespaces/default/configmaps?watch=true", nil),
				Representation: encode.Representation{Choice: asJSON, Served: f.served, Version: v},
				Options:        &internalversion.ListOptions{AllowWatchBookmarks: bookmarks},
				Metrics:        Metrics{Events: prometheus.NewCounter(prometheus.CounterOpts{}), Sizes: prometheus.NewSummary(prometheus.SummaryOpts{})},
				Status:         func(err error) *metav1.Status { return &metav1.Status{Reason: metav1.StatusReason(err.Error())} },
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
			{"an error", yields(added, bookmark, errors.New("broken"), resource.WatchEvent{Type: "DELETED", Object: config}), true, "ADDED a@7, BOOKMARK @9 end, ERROR broken"},
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
