// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package loadbalancer_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/steer-dev/steer/examples/loadbalancer"
	"github.com/steer-dev/steer/examples/loadbalancer/cloud"
	"github.com/steer-dev/steer/sim"
	"github.com/steer-dev/steer/steertest"
)

// outside is a cloud at whose writes the operator crashes.
type outside struct {
	cloud.API
	env *steertest.Env
}

func (o *outside) Create(ctx context.Context, name string, s cloud.Spec) error {
	return o.env.Outside("create balancer", func() error { return o.API.Create(ctx, name, s) })
}

func (o *outside) Update(ctx context.Context, name string, s cloud.Spec) error {
	return o.env.Outside("update balancer", func() error { return o.API.Update(ctx, name, s) })
}

func (o *outside) Delete(ctx context.Context, name string) error {
	return o.env.Outside("delete balancer", func() error { return o.API.Delete(ctx, name) })
}

// TestBalancersAreNeitherLostNorLeftWhateverGoesWrong has a Service come and go, and crashes
// the operator at every write, those to the cloud included.
func TestBalancersAreNeitherLostNorLeftWhateverGoesWrong(t *testing.T) {
	t.Parallel()
	sim.Test(t, func(t *testing.T) {
		memory := &cloud.Memory{Latency: 200 * time.Millisecond, Lag: 3 * time.Second, Provisioning: 20 * time.Second}
		c := &outside{API: memory}
		env := steertest.New(t, steertest.Options{Operator: loadbalancer.Operator(loadbalancer.Options{Cloud: c}), Timeout: 10 * time.Minute})
		c.env = env
		env.Create(node("a", "10.0.0.1", corev1.ConditionTrue))
		env.Create(service(env, "web", ours()))
		s := address(env, "web")
		only(t, memory)
		if err := env.Client.Delete(env.Context(), s); err != nil {
			t.Fatal(err)
		}
		steertest.WaitGone[*corev1.Service](env, env.Namespace+"/web")
		if got := len(memory.Balancers()); got != 0 {
			t.Errorf("%d balancers are left", got)
		}
	})
}
