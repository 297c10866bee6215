// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"bytes"
	"context"
	"io"
	"maps"
	"net/http"
	"testing"

	"github.com/steer-dev/steer/apiserver"
	"github.com/steer-dev/steer/storage/storagetest/teststore"
)

// inEachRole runs a test with a server that is alone, one that leads, and one that follows.
func inEachRole(t *testing.T, test func(t *testing.T, role string)) {
	t.Helper()
	for _, role := range []string{"alone", "leader", "follower"} {
		t.Run(role, func(t *testing.T) { test(t, role) })
	}
}

// leading is the [apiserver.Leadership] of a server that executes what changes something.
type leading struct{}

func (leading) Enter(context.Context) (func(), error) { return func() {}, nil }
func (leading) CatchUp(context.Context) error         { return nil }
func (leading) Forward(http.ResponseWriter, apiserver.Forwarded) (bool, error) {
	panic("a server that leads passes a request on")
}

// following is that of a server that has another one execute it.
type following struct{ leader *apiserver.Server }

func (following) Enter(context.Context) (func(), error) { return nil, nil } // another leads
func (following) CatchUp(context.Context) error         { return nil }
func (f following) Forward(w http.ResponseWriter, r apiserver.Forwarded) (bool, error) {
	request := r.Request.Clone(r.Request.Context())
	request.Body = io.NopCloser(bytes.NewReader(r.Body))
	answer, err := f.leader.RoundTripper(r.User).RoundTrip(request)
	if err != nil {
		return false, err
	}
	defer func() { _ = answer.Body.Close() }()
	maps.Copy(w.Header(), answer.Header)
	w.WriteHeader(answer.StatusCode)
	_, err = io.Copy(w, answer.Body)
	return true, err
}

// newServerAs returns a server in a role; that which follows has a leader with its options and its store.
func newServerAs(t *testing.T, role string, edit func(*apiserver.Options)) *apiserver.Server {
	t.Helper()
	store := teststore.New(t)
	shared := func(o *apiserver.Options) {
		o.Store = store
		edit(o)
	}
	s := newServer(t, shared)
	switch role {
	case "leader":
		s.Bind(apiserver.Bindings{Leadership: leading{}})
	case "follower":
		s.Bind(apiserver.Bindings{Leadership: following{newServer(t, shared)}})
	}
	return s
}
