// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package steertest_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/steer-dev/steer"
	"github.com/steer-dev/steer/controller"
	"github.com/steer-dev/steer/internal/lifecycletest"
	"github.com/steer-dev/steer/manager"
	"github.com/steer-dev/steer/steertest"
)

// The environment of a test ends with it: here with a subtest that waits for the end of
// the context.
func TestEnvKeepsTheLifecycle(t *testing.T) {
	t.Parallel()
	lifecycletest.RunBlocking(t, func(t *testing.T) lifecycletest.Blocking {
		running := make(chan struct{})
		return lifecycletest.Blocking{
			Run: func(ctx context.Context) error {
				t.Run("env", func(t *testing.T) {
					env := steertest.New(t, steertest.Options{Operator: steer.Operator{
						Scheme: steer.Scheme{corev1.AddToScheme},
						Setup: func(_ context.Context, m *manager.Manager) error {
							return controller.Add(m, controller.Func[*corev1.ConfigMap](func(context.Context, *corev1.ConfigMap) (controller.Result, error) {
								return controller.Done(), nil
							}))
						},
					}})
					env.StartOperator() // it runs
					env.StopOperator()
					env.StopOperator()
					env.StartOperator()
					close(running)
					<-ctx.Done()
				})
				return nil
			},
			Running: func(ctx context.Context) error {
				select {
				case <-running:
					return nil
				case <-ctx.Done():
					return context.Cause(ctx)
				}
			},
		}
	})
}
