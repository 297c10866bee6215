// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/client/interceptor"
	"github.com/steer-dev/steer/controller"
)

// TestEventsThatNobodyTakesHoldNobodyUp records more events than may wait while
// the API server does not answer.
func TestEventsThatNobodyTakesHoldNobodyUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		scheme, err := client.NewScheme(corev1.AddToScheme)
		if err != nil {
			t.Fatal(err)
		}
		answers, sent := make(chan struct{}), 0
		slow := interceptor.New(nil, interceptor.Funcs{
			Create: func(ctx context.Context, _ client.Client, _ client.Object, _ ...client.WriteOption) error {
				select {
				case <-answers:
					sent++
				case <-ctx.Done():
				}
				return ctx.Err()
			},
		})
		var log bytes.Buffer // written by Record alone
		r := newRecorder(slow, scheme, "operator", "one", slog.New(slog.NewTextHandler(&log, nil)))
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { _ = r.Start(ctx) })
		record := func(i int) {
			r.Record(controller.Note{
				Regarding: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("pod-", i)}}, Reason: "Seen",
			})
		}
		record(0)
		time.Sleep(2 * gathering) // the sender waits for the answer to it
		const more = 100
		for i := range eventBacklog + more {
			record(1 + i)
		}
		if n := r.dropped.Load(); n != more {
			t.Errorf("%d were dropped, want %d", n, more)
		}
		if n := strings.Count(log.String(), "events are dropped"); n == 0 || n > 8 || !strings.Contains(log.String(), "emit events on transitions") {
			t.Errorf("%d lines about it, want a few with advice: %s", n, log.String())
		}
		close(answers)
		if err := r.Idle(t.Context()); err != nil {
			t.Fatal(err)
		}
		if sent != 1+eventBacklog {
			t.Errorf("%d were sent, want the %d that were not dropped", sent, 1+eventBacklog)
		}
		stop()
		running.Wait()
	})
}
