// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package collection_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/cache/internal/collection"
	"github.com/steer-dev/steer/cache/internal/reflector"
	"github.com/steer-dev/steer/client/listwatch"
	"github.com/steer-dev/steer/client/mapping"
	"github.com/steer-dev/steer/client/wire"
)

// discovered answers discovery with two kinds.
type discovered struct{}

func (discovered) Do(_ context.Context, r wire.Request) (*wire.Response, error) {
	body := map[string]string{
		"/api":  `{"kind":"APIVersions","versions":["v1"]}`,
		"/apis": `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`,
		"/api/v1": `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"pods","namespaced":true,"kind":"Pod","verbs":["list","watch"]},` +
			`{"name":"nodes","namespaced":false,"kind":"Node","verbs":["list","watch"]}]}`,
	}[r.Path]
	if body == "" {
		return nil, apierrors.NewNotFound(schema.GroupResource{}, r.Path)
	}
	return &wire.Response{Status: http.StatusOK, ContentType: "application/json", Body: []byte(body)}, nil
}

// server notes what is opened.
type server struct {
	minor  int
	err    error
	asked  int
	list   listwatch.ListOptions
	opened []listwatch.WatchOptions
}

func (s *server) OpenList(_ context.Context, _ *listwatch.Collection, o listwatch.ListOptions) (listwatch.Page, error) {
	s.list = o
	return nil, nil
}

func (s *server) OpenWatch(_ context.Context, _ *listwatch.Collection, o listwatch.WatchOptions) (listwatch.Events, error) {
	s.opened = append(s.opened, o)
	return nil, nil
}

func (s *server) ServerMinor(context.Context) (int, error) {
	s.asked++
	return s.minor, s.err
}

func source(s *server, sync collection.Sync, index int, kind string) *collection.Source {
	return collection.NewSource(collection.NewServer(s), mapping.New(discovered{}), sync, index, listwatch.Collection{GVK: schema.GroupVersionKind{Version: "v1", Kind: kind}})
}

func TestSourceStreamsTheInitialStateWhereThatIsBetter(t *testing.T) {
	t.Parallel()
	down := errors.New("down")
	for _, tt := range []struct {
		sync  collection.Sync
		minor int
		err   error
		want  bool
	}{
		{sync: collection.Auto, minor: 36}, {sync: collection.Auto, minor: 37, want: true}, {sync: collection.Auto, minor: 37, err: down},
		{sync: collection.List, minor: 37}, {sync: collection.WatchList, minor: 30, want: true},
	} {
		s := &server{minor: tt.minor, err: tt.err}
		src := source(s, tt.sync, 0, "Pod")
		for range 2 {
			got, err := src.Resolve(t.Context())
			if got != tt.want || err != nil {
				t.Errorf("%+v: %v, %v", tt, got, err)
			}
		}
		asked := map[bool]int{true: 1, false: 0}[tt.sync == collection.Auto]
		if tt.err != nil {
			asked = 2 // it may be there the next time
		}
		if s.asked != asked {
			t.Errorf("%+v: the version was requested %d times, want %d", tt, s.asked, asked)
		}
	}
}

func TestSourceDoesNotWaitForTheVersionLongerThanItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	var src *collection.Source
	s := &blocking{server: server{minor: 37}, during: func() {
		cancel()
		if stream, err := src.Resolve(ctx); stream || err != nil {
			t.Errorf("while another requests the version: %v, %v", stream, err)
		}
	}}
	src = collection.NewSource(collection.NewServer(s), mapping.New(discovered{}), collection.Auto, 0, listwatch.Collection{GVK: schema.GroupVersionKind{Version: "v1", Kind: "Pod"}})
	if stream, err := src.Resolve(t.Context()); !stream || err != nil {
		t.Errorf("%v, %v", stream, err)
	}
}

// blocking does something while the version is requested.
type blocking struct {
	server
	during func()
}

func (b *blocking) ServerMinor(ctx context.Context) (int, error) {
	b.during()
	return b.server.ServerMinor(ctx)
}

func TestSourceResolvesItsResource(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		kind  string
		index int
		name  string
		err   func(error) bool
	}{
		{"Pod", 1, "pods", nil}, {"Node", 0, "nodes", nil},
		{"Node", 1, "nodes", func(err error) bool { return errors.Is(err, reflector.ErrCovered) }}, // in no namespace: the first source has all
		{"Gear", 0, "", meta.IsNoMatchError},
	} {
		src := source(&server{}, collection.List, tt.index, tt.kind)
		if name := src.ResourceName(); name != "" {
			t.Errorf("before it is resolved it is %s", name)
		}
		_, err := src.Resolve(t.Context())
		if src.ResourceName() != tt.name || (err == nil) != (tt.err == nil) || tt.err != nil && !tt.err(err) {
			t.Errorf("%s, %d: %q, %v", tt.kind, tt.index, src.ResourceName(), err)
		}
	}
}

func TestSourceOpensListsAndWatches(t *testing.T) {
	t.Parallel()
	s := &server{}
	src := source(s, collection.List, 0, "Pod")
	src.Random = rand.New(rand.NewPCG(1, 2))
	if _, err := src.List(t.Context(), "next", 7); err != nil || s.list != (listwatch.ListOptions{Limit: 7, Continue: "next"}) {
		t.Errorf("the list is %+v, %v", s.list, err)
	}
	lengths := map[time.Duration]bool{}
	for i := range 50 {
		if _, err := src.Watch(t.Context(), fmt.Sprint(i), i%2 == 0); err != nil {
			t.Fatal(err)
		}
		o := s.opened[i]
		if lengths[o.Timeout] = true; o.ResourceVersion != fmt.Sprint(i) || o.SendInitialEvents != (i%2 == 0) || o.Timeout < 5*time.Minute || o.Timeout >= 10*time.Minute {
			t.Errorf("watch %d is %+v", i, o)
		}
	}
	if len(lengths) < 10 {
		t.Errorf("50 watches have %d lengths", len(lengths))
	}
}
