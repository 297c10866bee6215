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
	"time"

	"github.com/steer-dev/steer/apiserver"
	"github.com/steer-dev/steer/storage"
	"github.com/steer-dev/steer/storage/storagetest/shared"
)

func TestServersOfOneDatabaseReadEachOthersWrites(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := shared.New(1)
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

func TestReadsOfAnyRevisionWaitForWhatIsOlderThanFiveSeconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := shared.New(1)
		first, second := db.Open(storage.MemoryOptions{}), db.Open(storage.MemoryOptions{})
		defer first.Close()
		defer second.Close()
		writer := newServer(t, func(o *apiserver.Options) { o.Store = first }).RoundTripper(admin)
		reader := newServer(t, func(o *apiserver.Options) { o.Store = second }).RoundTripper(admin)
		const path = "/api/v1/namespaces/default/configmaps"

		resume := second.Pause()
		defer resume()
		if created := send(t, writer, http.MethodPost, path, `{"metadata":{"name":"a"}}`); created.code != http.StatusCreated {
			t.Fatalf("create: %d %s", created.code, created.body)
		}
		time.Sleep(4 * time.Second)
		for read, code := range map[string]int{"?resourceVersion=0": http.StatusOK, "/a?resourceVersion=0": http.StatusNotFound} {
			if got := send(t, reader, http.MethodGet, path+read, ""); got.code != code {
				t.Errorf("%s after 4 seconds: %d %s", read, got.code, got.body)
			}
		}
		time.Sleep(2 * time.Second)
		for _, read := range []string{"?resourceVersion=0", "?resourceVersion=0&watch=true"} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://steer.invalid"+path+read, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			answer, err := reader.RoundTrip(r)
			if err == nil {
				answer.Body.Close()
			}
			if err == nil && answer.StatusCode != http.StatusGatewayTimeout {
				t.Errorf("%s after 6 seconds: %d", read, answer.StatusCode)
			}
			cancel()
		}
	})
}

// unreachable is a store whose database does not answer.
type unreachable struct{ storage.Store }

func (unreachable) Sync(context.Context, time.Duration) error { return errors.New("no leader") }

func TestRequestsAreRefusedWhileTheDatabaseDoesNotAnswer(t *testing.T) {
	t.Parallel()
	s := newServer(t, func(o *apiserver.Options) { o.Store = unreachable{storage.NewMemory(storage.MemoryOptions{})} })
	got := send(t, s.RoundTripper(admin), http.MethodGet, "/api/v1/namespaces/default/configmaps", "")
	if got.code != http.StatusServiceUnavailable || !strings.Contains(got.body, "the store cannot be read: no leader") {
		t.Errorf("%d %s", got.code, got.body)
	}
}
