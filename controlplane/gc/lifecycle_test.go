// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package gc

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/internal/lifecycletest"
)

// openWatch is a watch without events, which ends with its request.
type openWatch struct{ ctx context.Context } // a body has no other

func (w openWatch) Read([]byte) (int, error) {
	<-w.ctx.Done()
	return 0, w.ctx.Err()
}

func (openWatch) Close() error { return nil }

func TestMirrorsKeepTheLifecycle(t *testing.T) {
	t.Parallel()
	errClosed := errors.New("nothing is mirrored")
	others := &step.Elsewhere{Resources: []step.Resource{{
		Bucket: step.ElsewhereBucket("example.com", "notes"), Group: "example.com", Version: "v1", Plural: "notes", Kind: "Note", Verbs: []string{"list", "watch", "delete"},
	}}}
	lifecycletest.RunClosed(t, func(*testing.T) lifecycletest.Closed {
		m := newMirrors(func(ctx context.Context, r step.Request) (io.ReadCloser, error) {
			if r.Query.Get("watch") != "" {
				return openWatch{ctx}, nil
			}
			return io.NopCloser(strings.NewReader(`{"metadata":{"resourceVersion":"5"}}`)), nil
		})
		var steps sync.Mutex // the controller takes one at a time, and none while it is closed
		return lifecycletest.Closed{
			Close: func() error {
				steps.Lock()
				defer steps.Unlock()
				m.close()
				return nil
			},
			Use: func(context.Context) error {
				steps.Lock()
				defer steps.Unlock()
				for bucket := range m.by { // begins again below
					m.by[bucket].stop()
					delete(m.by, bucket)
				}
				m.follow(others)
				if len(m.by) == 0 {
					return errClosed
				}
				return nil
			},
			ErrClosed: errClosed,
		}
	})
}
