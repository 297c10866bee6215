// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"fmt"
	"testing"
)

// BenchmarkPolicies is what a dry run of the creation of a Pod costs, alone and with 50
// policies: ones that match it, with two validations, a message expression and a variable,
// and ones whose rules name another resource. docs/designs/2026-11-23-admission-policies.md has what it
// costs kube-apiserver.
func BenchmarkPolicies(b *testing.B) {
	const pods = "/api/v1/namespaces/default/pods?dryRun=All"
	for _, c := range []struct {
		name, about string
		count       int
	}{{"none", "", 0}, {"matching50", "pods", 50}, {"other1000", "leases", 1000}} {
		b.Run(c.name, func(b *testing.B) {
			_, api := newPlane(b)
			for i := range c.count {
				api.policy("validating", fmt.Sprint("p", i), c.about, benchmarkPolicy, "validationActions: [Deny]")
			}
			body := benchmarkPod("bench", 1)
			api.must("POST", pods, body)
			b.ReportAllocs()
			for b.Loop() {
				api.must("POST", pods, body)
			}
		})
	}
}

const benchmarkPolicy = `variables: [{name: containers, expression: "object.spec.containers"}], validations: [
	{expression: "variables.containers.all(c, has(c.resources) && has(c.resources.limits) && 'memory' in c.resources.limits)", message: "no limit"},
	{expression: "object.metadata.labels.exists(l, l == 'app.kubernetes.io/name')", messageExpression: "'no name: ' + object.metadata.name"}]`
