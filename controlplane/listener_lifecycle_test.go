// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"syscall"
	"testing"

	"github.com/steer-dev/steer/internal/lifecycletest"
	"github.com/steer-dev/steer/storage"
)

func TestListenerKeepsTheLifecycle(t *testing.T) {
	t.Parallel()
	keys, err := NewKeys()
	if err != nil {
		t.Fatal(err)
	}
	lifecycletest.RunClosed(t, func(t *testing.T) lifecycletest.Closed {
		server := &http.Server{Handler: http.NotFoundHandler()} // the client is the test
		l, err := listen(t.Context(), "127.0.0.1:0", nil, keys, server, func(l net.Listener) net.Listener { return l }, nil, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Error(err)
		}
		client := http.Client{Transport: &http.Transport{
			DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: keys.pool(), MinVersion: tls.VersionTLS12},
		}}
		return lifecycletest.Closed{
			Close: func() error { return l.close(context.Background()) },
			Use: func(ctx context.Context) error {
				r, err := http.NewRequestWithContext(ctx, http.MethodGet, l.url(), http.NoBody)
				if err != nil {
					return err
				}
				answer, err := client.Do(r)
				switch {
				case errors.Is(err, syscall.ECONNRESET), errors.Is(err, io.EOF):
					return syscall.ECONNREFUSED // the connection was not accepted before the end
				case err != nil:
					return err
				}
				return answer.Body.Close()
			},
			ErrClosed: syscall.ECONNREFUSED,
		}
	})
}

// journalFunc is called for every write.
type journalFunc func() error

func (f journalFunc) Append([]storage.Change) error { return f() }
func (f journalFunc) Close() error                  { return nil }

// A Start whose context ends after it has begun to listen gives the address back.
func TestListenerOfAStartThatFailsIsClosed(t *testing.T) {
	t.Parallel()
	var plane *Plane
	var failed *listener
	starting, cancel := context.WithCancel(t.Context())
	defer cancel()
	journal := journalFunc(func() error {
		if plane != nil && failed == nil {
			failed = plane.listener
			cancel()
		}
		return nil
	})
	store, err := storage.NewJournaled(journal, func(func(storage.Change, error) bool) {}, storage.MemoryOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if plane, err = New(Options{Store: store, Listen: "127.0.0.1:0"}); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := plane.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	if err := plane.Start(starting); !errors.Is(err, context.Canceled) {
		t.Fatalf("Start: %v, want %v", err, context.Canceled)
	}
	select {
	case <-failed.served:
	default:
		t.Error("the listener still serves")
	}
	if url := plane.URL(); url != "" {
		t.Errorf("URL: %s", url)
	}
	if err := plane.Start(t.Context()); err != nil {
		t.Errorf("the second Start: %v", err)
	}
}
