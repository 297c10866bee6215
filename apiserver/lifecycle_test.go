// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/steer-dev/steer/apiserver"
	"github.com/steer-dev/steer/internal/lifecycletest"
	"github.com/steer-dev/steer/storage"
)

func TestServerKeepsTheLifecycle(t *testing.T) {
	t.Parallel()
	errUnavailable := errors.New("503")
	lifecycletest.RunClosed(t, func(t *testing.T) lifecycletest.Closed {
		// A store that ends with the test may have goroutines until then.
		s := newServer(t, func(o *apiserver.Options) { o.Store = storage.NewMemory(storage.MemoryOptions{}) })
		send := s.RoundTripper(admin)
		return lifecycletest.Closed{
			Close: func() error { return s.Stop(context.Background()) },
			Use: func(ctx context.Context) error {
				r, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://steer.invalid/api/v1/configmaps", http.NoBody)
				if err != nil {
					return err
				}
				answer, err := send.RoundTrip(r)
				if err != nil {
					return err
				}
				switch answer.StatusCode {
				case http.StatusOK:
					return answer.Body.Close()
				case http.StatusServiceUnavailable:
					err = errUnavailable
				default:
					err = fmt.Errorf("the answer is %s", answer.Status)
				}
				return errors.Join(err, answer.Body.Close())
			},
			ErrClosed: errUnavailable,
		}
	})
}
