// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package crontab_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/client/manifest"
	"github.com/steer-dev/steer/examples/crontab"
	v1 "github.com/steer-dev/steer/examples/crontab/api/v1"
	"github.com/steer-dev/steer/manager"
	"github.com/steer-dev/steer/steertest"
)

// policy requires what the rule of BenchmarkValidation requires.
const policy = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: images}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules: [{apiGroups: [stable.example.com], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [crontabs]}]
  validations: [{expression: "object.spec.image.startsWith('my-')"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: images}
spec: {policyName: images, validationActions: [Deny]}
`

// BenchmarkValidation changes an annotation of a CronTab by a patch: without validation
// beyond the schema, with a rule in the CRD, with a policy, and with the webhooks of the
// operator, a defaulter and a validator. docs/validation.md has the figures.
func BenchmarkValidation(b *testing.B) {
	b.Run("schema", func(b *testing.B) { benchmarkPatches(b, operatedBy(b, steertest.Options{})) })
	b.Run("rule", func(b *testing.B) {
		e := operatedBy(b, steertest.Options{})
		crd := &unstructured.Unstructured{}
		crd.SetAPIVersion("apiextensions.k8s.io/v1")
		crd.SetKind("CustomResourceDefinition")
		crd.SetName("crontabs.stable.example.com")
		patch := `[{"op":"add","path":"/spec/versions/0/schema/openAPIV3Schema/properties/spec/x-kubernetes-validations","value":[{"rule":"self.image.startsWith('my-')"}]}]`
		if err := e.Client.Patch(b.Context(), crd, client.RawPatch(types.JSONPatchType, []byte(patch))); err != nil {
			b.Fatal(err)
		}
		benchmarkPatches(b, e)
	})
	b.Run("policy", func(b *testing.B) {
		e := operatedBy(b, steertest.Options{})
		objects, err := manifest.Parse("policy", []byte(policy))
		if err != nil {
			b.Fatal(err)
		}
		if err := manifest.Apply(b.Context(), e.Client, "", objects); err != nil {
			b.Fatal(err)
		}
		benchmarkPatches(b, e)
	})
	b.Run("webhooks in process", func(b *testing.B) {
		benchmarkPatches(b, operatedBy(b, steertest.Options{Webhooks: []string{"config/webhook"}}))
	})
	b.Run("webhooks over TLS", func(b *testing.B) {
		benchmarkPatches(b, operatedBy(b, steertest.Options{Webhooks: []string{"config/webhook"}, WebhooksOverTLS: true}))
	})
}

// operatedBy runs the operator with its webhooks alone, so that nothing but the
// benchmark costs.
func operatedBy(b *testing.B, o steertest.Options) *steertest.Env {
	b.Helper()
	o.CRDs, o.Operator = []string{generated}, crontab.Operator()
	o.Operator.Setup = func(_ context.Context, m *manager.Manager) error { return crontab.AddWebhooks(m) }
	return steertest.New(b, o)
}

// BenchmarkWebhookAdds patches a CronTab on two control planes in turn, of which one calls
// the two webhooks of the operator, and prints what each adds to the median of a write.
func BenchmarkWebhookAdds(b *testing.B) {
	for _, overTLS := range []bool{false, true} {
		b.Run(fmt.Sprintf("tls=%v", overTLS), func(b *testing.B) {
			without := patches(b, operatedBy(b, steertest.Options{}))
			with := patches(b, operatedBy(b, steertest.Options{Webhooks: []string{"config/webhook"}, WebhooksOverTLS: overTLS}))
			var took [2][]time.Duration
			for b.Loop() {
				for i, patch := range []func(){without, with} {
					began := time.Now()
					patch()
					took[i] = append(took[i], time.Since(began))
				}
			}
			median := func(d []time.Duration) float64 {
				slices.Sort(d)
				return d[len(d)/2].Seconds() * 1000
			}
			b.ReportMetric((median(took[1])-median(took[0]))/2, "ms/webhook")
		})
	}
}

func benchmarkPatches(b *testing.B, e *steertest.Env) {
	b.Helper()
	patch := patches(b, e)
	b.ReportAllocs()
	for b.Loop() {
		patch()
	}
}

// patches creates a CronTab, and returns a function that changes it by a patch.
func patches(b *testing.B, e *steertest.Env) func() {
	b.Helper()
	e.Apply(sample)
	ct := &v1.CronTab{}
	ct.Namespace, ct.Name = "default", object
	n := 0
	return func() {
		n++
		patch := fmt.Sprintf(`{"metadata":{"annotations":{"n":"%d"}}}`, n)
		if err := e.Client.Patch(b.Context(), ct, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
			b.Fatal(err)
		}
	}
}
