// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package replicas_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/client/interceptor"
	"github.com/steer-dev/steer/examples/replicas"
	v1 "github.com/steer-dev/steer/examples/replicas/api/v1"
	"github.com/steer-dev/steer/steertest"
)

func TestARestartInSteadyStateWritesNothing(t *testing.T) {
	t.Parallel()
	op := replicas.Operator()
	scheme, err := client.NewScheme(op.Scheme...)
	if err != nil {
		t.Fatal(err)
	}
	var writes atomic.Int64
	count := interceptor.Each(func(_ context.Context, call client.Call, do func() error) error {
		if call.Verb.Writes() {
			writes.Add(1)
		}
		return do()
	})
	env := steertest.New(t, steertest.Options{
		Scheme: scheme, CRDs: []string{"config/crd/bases"}, Setup: op.Setup, Intercept: count, Workloads: steertest.Workloads(),
	})
	for i := range 20 {
		env.Create(&v1.Fleet{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("fleet-", i)},
			Spec:       v1.FleetSpec{Replicas: 3, Image: "nginx"},
		})
	}
	env.Settled()
	if writes.Load() < 20*3 {
		t.Errorf("only %d writes so far", writes.Load())
	}
	env.StopOperator()
	writes.Store(0)
	env.StartOperator()
	env.Settled()
	if n := writes.Load(); n != 0 {
		t.Errorf("%d writes after a restart", n)
	}
}
