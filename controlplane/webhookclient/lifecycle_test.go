// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package webhookclient_test

import (
	"context"
	"testing"

	"github.com/steer-dev/steer/controlplane/webhookclient"
	"github.com/steer-dev/steer/internal/lifecycletest"
	"github.com/steer-dev/steer/storage"
)

func TestClientKeepsTheLifecycle(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	w := serve(t, a.issue(t, hour(), "127.0.0.1"), answers)
	lifecycletest.RunClosed(t, func(t *testing.T) lifecycletest.Closed {
		c, err := webhookclient.New(webhookclient.Options{}, webhookclient.Deps{Store: storage.NewMemory(storage.MemoryOptions{})})
		if err != nil {
			t.Fatal(err)
		}
		return lifecycletest.Closed{
			Close: func() error { c.Close(); return nil },
			Use: func(ctx context.Context) error {
				_, err := c.Post(ctx, webhookclient.Target{URL: w.URL, CABundle: a.bundle()}, []byte("review"))
				return err
			},
			ErrClosed: webhookclient.ErrClosed,
		}
	})
}
