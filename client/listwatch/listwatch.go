// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package listwatch lists and watches one collection of an API server for a cache, and
// decodes its objects one at a time.
//
// The Client that client.New returns is a [Source]. Operators read and watch with
// the methods of the Client, or through package cache.
package listwatch

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/steer-dev/steer/client/codec"
	"github.com/steer-dev/steer/client/mapping"
)

// Source opens lists and watches. It is safe for concurrent use; its errors are
// those of package client.
type Source interface {
	// OpenList requests a page of a list.
	OpenList(ctx context.Context, c *Collection, o ListOptions) (Page, error)
	// OpenWatch opens a watch, which ends with ctx.
	OpenWatch(ctx context.Context, c *Collection, o WatchOptions) (Events, error)
	// ServerMinor returns the minor version of a server of Kubernetes 1.x, and 0
	// for a server that names another version.
	ServerMinor(ctx context.Context) (int, error)
}

// Collection is what a list or a watch covers, and how its objects are decoded.
type Collection struct {
	// GVK is the kind of the items, Resource where they are served.
	GVK      schema.GroupVersionKind
	Resource mapping.Resource
	// Namespace restricts to one namespace; empty means all.
	Namespace string
	// LabelSelector and FieldSelector restrict the objects; nil means all.
	LabelSelector labels.Selector
	FieldSelector fields.Selector
	// NewItem returns an empty item, whose type decides the media type: metadata
	// only for *metav1.PartialObjectMetadata, protobuf for types that have it.
	NewItem func() runtime.Object
	// Codec adjusts how items are decoded.
	Codec codec.Options
}

// ListOptions select the page of a list.
type ListOptions struct {
	// Limit is the most objects of the page; 0 means all of them.
	Limit int64
	// Continue is the metadata.continue of the page before; empty for the first.
	Continue string
}

// WatchOptions say where a watch begins and how long it lasts.
type WatchOptions struct {
	// ResourceVersion is the revision after which events are sent. It is not used
	// with SendInitialEvents.
	ResourceVersion string
	// SendInitialEvents begins the watch with the present objects and a bookmark.
	SendInitialEvents bool
	// Timeout is when the server ends the watch, in whole seconds; 0 leaves it to
	// the server.
	Timeout time.Duration
}

// Page is a list that is read item by item.
type Page interface {
	// Next returns the next item, and io.EOF after the last.
	Next() (runtime.Object, error)
	// Meta is complete once Next has returned io.EOF.
	Meta() metav1.ListMeta
	// Close releases the connection.
	Close() error
}

// Events is an open watch.
type Events interface {
	// Next waits for the next event; the error of a watch that the server ended is
	// io.EOF.
	Next() (watch.Event, error)
	// Close releases the connection and ends a Next that waits.
	Close() error
}
