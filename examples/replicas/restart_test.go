// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package replicas_test

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/examples/replicas"
	v1 "github.com/steer-dev/steer/examples/replicas/api/v1"
	"github.com/steer-dev/steer/steertest"
)

func TestARestartInSteadyStateWritesNothing(t *testing.T) {
	t.Parallel()
	env := steertest.New(t, steertest.Options{CRDs: []string{"config/crd/bases"}, Operator: replicas.Operator(), Workloads: steertest.Workloads()})
	for i := range 20 {
		env.Create(&v1.Fleet{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("fleet-", i)},
			Spec:       v1.FleetSpec{Replicas: 3, Image: "nginx"},
		})
	}
	env.ExpectNoWrites()
}
