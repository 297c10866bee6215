// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"syscall"
	"testing"

	"github.com/steer-dev/steer/internal/lifecycletest"
)

func TestListenerKeepsTheLifecycle(t *testing.T) {
	t.Parallel()
	keys, err := NewKeys()
	if err != nil {
		t.Fatal(err)
	}
	lifecycletest.RunClosed(t, func(t *testing.T) lifecycletest.Closed {
		server := &http.Server{Handler: http.NotFoundHandler()} //nolint:gosec // the client is the test
		l, err := listen(t.Context(), "127.0.0.1:0", nil, keys, server, slog.New(slog.DiscardHandler))
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
