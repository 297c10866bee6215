// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"strings"
	"testing"
)

func TestDemoEndsByItselfAfterTheLastStep(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	d := &demo{out: &printer{w: &out}, exit: true}
	if err := d.run(t.Context()); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	for _, part := range []string{"1. A Kubernetes control plane is up in this process", "reconcile CronTab default/" + sampleName, "11. Everything converged", "because", "webhook /", "the page of its operator: http://127.0.0.1:"} {
		if !strings.Contains(out.String(), part) {
			t.Errorf("%q is not printed:\n%s", part, out.String())
		}
	}
}
