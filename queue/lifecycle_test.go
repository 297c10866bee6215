// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package queue_test

import (
	"context"
	"errors"
	"testing"

	"github.com/steer-dev/steer/internal/lifecycletest"
	"github.com/steer-dev/steer/queue"
)

func TestQueueKeepsTheLifecycle(t *testing.T) {
	t.Parallel()
	errClosed := errors.New("Get returns no item")
	lifecycletest.RunClosed(t, func(*testing.T) lifecycletest.Closed {
		q := queue.New(queue.Options[string]{})
		return lifecycletest.Closed{
			Close: func() error { q.Close(); return nil },
			Use: func(context.Context) error {
				q.Add("a", queue.AddOptions{})
				item, ok := q.Get()
				if !ok {
					return errClosed
				}
				q.Done(item.Key)
				return nil
			},
			ErrClosed: errClosed,
		}
	})
}
