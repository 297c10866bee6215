// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/steer-dev/steer/apiserver"
	"github.com/steer-dev/steer/storage"
	"github.com/steer-dev/steer/storage/storagetest"
)

func TestServersOfOneDatabaseReadEachOthersWrites(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := storagetest.NewShared(1)
		first, second := db.Open(storage.MemoryOptions{}), db.Open(storage.MemoryOptions{})
		defer first.Close()
		defer second.Close()
		writer := newServer(t, func(o *apiserver.Options) { o.Store = first }).RoundTripper(admin)
		reader := newServer(t, func(o *apiserver.Options) { o.Store = second }).RoundTripper(admin)
		const path = "/api/v1/namespaces/default/configmaps"

		for _, read := range []string{"/a", ""} {
			resume := second.Pause()
			created := send(t, writer, http.MethodPost, path, `{"metadata":{"name":"a"}}`)
			if created.code != http.StatusCreated {
				t.Fatalf("create: %d %s", created.code, created.body)
			}
			answered := make(chan reply, 1)
			go func() { answered <- send(t, reader, http.MethodGet, path+read, "") }()
			synctest.Wait()
			select {
			case got := <-answered:
				t.Fatalf("%q is answered before the write has arrived: %d %s", read, got.code, got.body)
			default:
			}
			resume()
			if got := <-answered; got.code != http.StatusOK || !strings.Contains(got.body, `"name":"a"`) {
				t.Fatalf("%q: %d %s", read, got.code, got.body)
			}
			if got := send(t, reader, http.MethodDelete, path+"/a", ""); got.code != http.StatusOK {
				t.Fatalf("delete: %d %s", got.code, got.body)
			}
		}
	})
}

// unreachable is a store whose database does not answer.
type unreachable struct{ storage.Store }

func (unreachable) Sync(context.Context) error { return errors.New("no leader") }

func TestRequestsAreRefusedWhileTheDatabaseDoesNotAnswer(t *testing.T) {
	t.Parallel()
	s := newServer(t, func(o *apiserver.Options) { o.Store = unreachable{storage.NewMemory(storage.MemoryOptions{})} })
	got := send(t, s.RoundTripper(admin), http.MethodGet, "/api/v1/namespaces/default/configmaps", "")
	if got.code != http.StatusServiceUnavailable || !strings.Contains(got.body, "the store cannot be read: no leader") {
		t.Errorf("%d %s", got.code, got.body)
	}
}
