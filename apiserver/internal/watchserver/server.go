// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package watchserver

import (
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/apiserver/internal/registry"
	"github.com/steer-dev/steer/apiserver/internal/representation"
	"github.com/steer-dev/steer/storage"
)

// Server serves watches, and holds what they share. It is safe for concurrent use.
type Server struct {
	options Options
	traffic traffic
	timer   sharedTimer
	chunks  chunkCache
	buffers sync.Pool // of *[]byte; a watch owns one while it has unwritten frames
}

// Options of a [Server]. All fields are required.
type Options struct {
	Registry *registry.Registry
	// Jitter returns a duration in [0, limit).
	Jitter func(limit time.Duration) time.Duration
	// MinWatch is how long a watch without a timeout lasts at least; 0 means no limit.
	MinWatch time.Duration
	// BookmarkEvery is the time between bookmarks.
	BookmarkEvery time.Duration
}

// New returns a server of watches.
func New(o Options) *Server { return &Server{options: o} }

// Request is a watch as a client requested it, validated. All fields are required but
// where they say otherwise.
type Request struct {
	HTTP *http.Request
	representation.Representation
	// Tables of a watch that is answered with Tables.
	Tables    representation.Tables
	Selection *registry.Selection
	// After is the resourceVersion of Options.
	After storage.Revision
	// Present are the objects of a backend that the watch begins with; nil if the backend
	// begins it.
	Present *registry.Page
	Options *internalversion.ListOptions
	Metrics Metrics
	// Status returns the Status of an error that ends the watch.
	Status func(error) *metav1.Status
}

// Metrics of the watches of one resource.
type Metrics struct {
	Events prometheus.Counter
	Sizes  prometheus.Observer
}

// observe counts events that were written together. All watches of a resource share the
// counters.
func (m Metrics) observe(sizes []int) {
	m.Events.Add(float64(len(sizes)))
	for _, size := range sizes {
		m.Sizes.Observe(float64(size))
	}
}
