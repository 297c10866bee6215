// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/cache/internal/reflector"
	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/client/codec"
	"github.com/steer-dev/steer/client/mapping"
	"github.com/steer-dev/steer/client/wire"
)

// source is one collection of the API server, as reflectors follow it.
type source struct {
	live      *client.Direct
	server    *serverVersion
	sync      InitialSync
	gvk       schema.GroupVersionKind
	newItem   func() client.Object
	namespace string
	index     int // among the sources of the informer
	selection client.ListOptions
	codec     codec.Options
	random    *rand.Rand // the reflector's alone

	resource     mapping.Resource // after Resolve; the reflector's alone
	resourceName atomic.Pointer[string]
}

var _ reflector.Source = (*source)(nil)

func (s *source) Resolve(ctx context.Context) (watchList bool, err error) {
	if s.resource, err = s.live.Mapper().ForKind(ctx, s.gvk); err != nil {
		return false, err
	}
	s.resourceName.Store(&s.resource.GVR.Resource)
	if !s.resource.Namespaced && s.index > 0 {
		return false, reflector.ErrCovered
	}
	switch s.sync {
	case SyncWatchList:
		return true, nil
	case SyncAuto:
		return s.server.compressesWatchList(ctx), nil
	}
	return false, nil
}

func (s *source) request(verb client.Verb, query url.Values) wire.Request {
	client.SetListQuery(query, &s.selection)
	return wire.Request{
		Verb: string(verb), Method: http.MethodGet,
		Path: s.resource.Path(s.namespace, "", ""), Query: query,
	}
}

func (s *source) open(ctx context.Context, req wire.Request, item runtime.Object, watch bool) (*wire.Stream, error) {
	stream, err := s.live.OpenStream(ctx, req, item, s.gvk, watch)
	if apierrors.IsNotFound(err) {
		s.live.Mapper().Invalidate()
	}
	return stream, err
}

func (s *source) List(ctx context.Context, cont string, limit int64) (reflector.Page, error) {
	query := url.Values{}
	if limit > 0 {
		query.Set("limit", strconv.FormatInt(limit, 10))
	}
	if cont != "" {
		query.Set("continue", cont)
	}
	item := s.newItem()
	var answer runtime.Object = item
	if _, ok := item.(*metav1.PartialObjectMetadata); ok {
		answer = &metav1.PartialObjectMetadataList{}
	}
	stream, err := s.open(ctx, s.request(client.VerbList, query), answer, false)
	if err != nil {
		return nil, err
	}
	items, err := codec.NewItems(stream.ContentType, stream.Body, s.gvk, s.item, s.codec)
	if err != nil {
		_ = stream.Body.Close()
		return nil, err
	}
	return page{items, stream}, nil
}

func (s *source) item() runtime.Object { return s.newItem() }

type page struct {
	*codec.Items
	stream *wire.Stream
}

func (p page) Close() error { return p.stream.Body.Close() }

func (s *source) Watch(ctx context.Context, revision string, initial bool) (reflector.Events, error) {
	query := url.Values{}
	query.Set("watch", "true")
	query.Set("allowWatchBookmarks", "true")
	// Watches end now and then anyway; different lengths spread their renewal.
	query.Set("timeoutSeconds", strconv.Itoa(300+s.random.IntN(300)))
	if initial {
		query.Set("sendInitialEvents", "true")
		query.Set("resourceVersionMatch", string(metav1.ResourceVersionMatchNotOlderThan))
	} else {
		query.Set("resourceVersion", revision)
	}
	stream, err := s.open(ctx, s.request(client.VerbWatch, query), s.newItem(), true)
	if err != nil {
		return nil, err
	}
	return events{codec.NewEvents(stream.ContentType, stream.Body, s.gvk, s.item, s.codec), stream}, nil
}

type events struct {
	*codec.Events
	stream *wire.Stream
}

func (e events) Close() error { return e.stream.Body.Close() }

// serverVersion asks the server for its version once.
type serverVersion struct {
	conn *wire.Conn
	// turn holds one token: who has put it in asks, the others wait for the answer
	// or for the end of their context.
	turn  chan struct{}
	known bool
	minor int
}

// compressesWatchList says that streaming the initial state is the better way.
func (v *serverVersion) compressesWatchList(ctx context.Context) bool {
	select {
	case v.turn <- struct{}{}:
		defer func() { <-v.turn }()
	case <-ctx.Done():
		return false
	}
	if !v.known {
		resp, err := v.conn.Do(ctx, wire.Request{Verb: "get", Method: http.MethodGet, Path: "/version", Accept: codec.JSON})
		if err != nil {
			return false // not worth a failure: lists work everywhere
		}
		var version struct{ Major, Minor string }
		if json.Unmarshal(resp.Body, &version) == nil && version.Major == "1" {
			v.minor, _ = strconv.Atoi(strings.TrimRight(version.Minor, "+"))
		}
		v.known = true
	}
	return v.minor >= 37
}
