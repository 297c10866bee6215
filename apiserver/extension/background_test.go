// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package extension_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/steer-dev/steer/apiserver/extension"
	"github.com/steer-dev/steer/storage"
)

// recordedStore is a store that says when it is closed.
type recordedStore struct {
	storage.Store
	closed chan<- string
}

func (s recordedStore) Close() error {
	s.closed <- "the store is closed"
	return s.Store.Close()
}

// TestServerRunsBackgroundBesideIt has it write a note when the server serves, and another
// one when the server was told to stop.
func TestServerRunsBackgroundBesideIt(t *testing.T) {
	t.Parallel()
	steps := make(chan string, 10)
	s := noteServer(nil)
	s.Store = func(extension.Options) (storage.Store, error) {
		return recordedStore{storage.NewMemory(storage.MemoryOptions{}), steps}, nil
	}
	s.Background = func(ctx context.Context, loopback *rest.Config) error {
		h, err := rest.HTTPClientFor(loopback)
		if err != nil {
			return err
		}
		write := func(ctx context.Context, name string) error {
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, loopback.Host+notes, strings.NewReader(strings.Replace(note, "milk", name, 1)))
			if err != nil {
				return err
			}
			r.Header.Set("Content-Type", "application/json")
			answer, err := h.Do(r)
			if err != nil {
				return err
			}
			steps <- fmt.Sprintf("%s: %d", name, answer.StatusCode)
			return answer.Body.Close()
		}
		if err := write(ctx, "first"); err != nil {
			return err
		}
		<-ctx.Done()
		return write(context.WithoutCancel(ctx), "last")
	}
	file := filepath.Join(t.TempDir(), "config")
	stop := start(t, s, "--standalone", "--write-kubeconfig", file)
	if got := <-steps; got != "first: 201" {
		t.Fatal(got)
	}
	newClient(t, kubeconfig(t, file)).must(http.StatusOK, "GET", notes+"/first", "")
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if last, closed := <-steps, <-steps; last != "last: 201" || closed != "the store is closed" {
		t.Errorf("at its end: %s, then %s", last, closed)
	}
}

func TestServerEndsWithItsBackground(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"that fails":   {broken, "what runs beside notes: broken"},
		"that returns": {nil, "let Background return when its context ends"},
	} {
		s := noteServer(func(o *extension.Options) {
			listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			o.Listener, o.Kubeconfig, o.Log = listener, "", slog.New(slog.DiscardHandler)
		})
		s.Background = func(context.Context, *rest.Config) error { return c.err }
		if err := extension.Run(t.Context(), []string{"--standalone"}, s); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("one %s: %v, want %q", name, err, c.want)
		}
	}
	s := noteServer(func(o *extension.Options) { o.Kubeconfig = "" })
	s.Store = func(extension.Options) (storage.Store, error) { return nil, broken }
	if err := extension.Run(t.Context(), []string{"--standalone"}, s); !errors.Is(err, broken) {
		t.Errorf("a store that cannot be opened: %v", err)
	}
}
