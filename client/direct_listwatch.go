// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/client/codec"
	"github.com/steer-dev/steer/client/listwatch"
	"github.com/steer-dev/steer/client/wire"
)

var _ listwatch.Source = (*direct)(nil)

// OpenList implements listwatch.Source.
func (d *direct) OpenList(ctx context.Context, c *listwatch.Collection, o listwatch.ListOptions) (listwatch.Page, error) {
	query := url.Values{}
	setListQuery(query, &ListOptions{LabelSelector: c.LabelSelector, FieldSelector: c.FieldSelector, Limit: o.Limit, Continue: o.Continue})
	answer := c.NewItem()
	if _, ok := answer.(*metav1.PartialObjectMetadata); ok {
		answer = &metav1.PartialObjectMetadataList{}
	}
	stream, err := d.openCollection(ctx, c, VerbList, query, answer)
	if err != nil {
		return nil, err
	}
	items, err := codec.NewItems(stream.ContentType, stream.Body, c.GVK, c.NewItem, c.Codec)
	if err != nil {
		_ = stream.Body.Close()
		return nil, err
	}
	return page{items, stream}, nil
}

type page struct {
	*codec.Items
	stream *wire.Stream
}

func (p page) Close() error { return p.stream.Body.Close() }

// OpenWatch implements listwatch.Source.
func (d *direct) OpenWatch(ctx context.Context, c *listwatch.Collection, o listwatch.WatchOptions) (listwatch.Events, error) {
	query := url.Values{}
	setListQuery(query, &ListOptions{LabelSelector: c.LabelSelector, FieldSelector: c.FieldSelector})
	query.Set("watch", "true")
	query.Set("allowWatchBookmarks", "true")
	if o.Timeout > 0 {
		query.Set("timeoutSeconds", strconv.FormatInt(int64(o.Timeout/time.Second), 10))
	}
	if o.SendInitialEvents {
		query.Set("sendInitialEvents", "true")
		query.Set("resourceVersionMatch", string(metav1.ResourceVersionMatchNotOlderThan))
	} else {
		query.Set("resourceVersion", o.ResourceVersion)
	}
	stream, err := d.openCollection(ctx, c, VerbWatch, query, c.NewItem())
	if err != nil {
		return nil, err
	}
	return events{codec.NewEvents(stream.ContentType, stream.Body, c.GVK, c.NewItem, c.Codec), stream}, nil
}

type events struct {
	*codec.Events
	stream *wire.Stream
}

func (e events) Close() error { return e.stream.Body.Close() }

// openCollection sends the request of a list or watch; answer has the type that
// decides the media type.
func (d *direct) openCollection(ctx context.Context, c *listwatch.Collection, verb Verb, query url.Values, answer runtime.Object) (*wire.Stream, error) {
	stream, err := d.openStream(ctx, wire.Request{
		Verb: string(verb), Method: http.MethodGet, Path: c.Resource.Path(c.Namespace, "", ""), Query: query,
	}, answer, c.GVK, verb == VerbWatch)
	if apierrors.IsNotFound(err) {
		d.mapper.Invalidate()
	}
	return stream, err
}

// openStream sends a list or watch whose items are like item, and falls back to
// JSON where protobuf is refused.
func (d *direct) openStream(ctx context.Context, req wire.Request, item runtime.Object, gvk schema.GroupVersionKind, watch bool) (*wire.Stream, error) {
	for {
		req.Accept = d.accept(item, gvk, watch)
		stream, err := d.conn.Stream(ctx, req)
		if err != nil && d.refusedProtobuf(item, gvk, err) {
			continue
		}
		return stream, err
	}
}

// ServerMinor implements listwatch.Source.
func (d *direct) ServerMinor(ctx context.Context) (int, error) {
	resp, err := d.conn.Do(ctx, wire.Request{Verb: "get", Method: http.MethodGet, Path: "/version", Accept: codec.JSON})
	if err != nil {
		return 0, err
	}
	var version struct{ Major, Minor string }
	if err := json.Unmarshal(resp.Body, &version); err != nil || version.Major != "1" {
		return 0, nil //nolint:nilerr // it answers, but is not Kubernetes: no minor
	}
	minor, _ := strconv.Atoi(strings.TrimRight(version.Minor, "+"))
	return minor, nil
}
