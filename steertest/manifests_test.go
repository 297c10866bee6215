// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package steertest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/steer-dev/steer/steertest"
)

// TestManifestsOfTheProjectAreInForce has a policy refuse what it is about, and a rule of a
// kind that no CRD defines left out.
func TestManifestsOfTheProjectAreInForce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "own.yaml"), []byte(`
apiVersion: monitoring.example.com/v1
kind: Rule
metadata: {name: slow}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: dashboard}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: no-root}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]}
  validations: [{expression: object.metadata.name != 'root'}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: no-root}
spec: {policyName: no-root, validationActions: [Deny]}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	env := steertest.New(t, steertest.Options{Scheme: scheme(t), Manifests: []string{dir}})
	steertest.Wait(env, "dashboard", func(*corev1.ConfigMap) bool { return true })
	if err := env.Client.Create(t.Context(), configMap("root")); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "no-root") {
		t.Errorf("the policy is not in force: %v", err)
	}
	message := fails(t, func(tb testing.TB) {
		steertest.New(tb, steertest.Options{Scheme: scheme(t), Manifests: []string{"testdata/none"}})
	})
	if !strings.Contains(message, "find the manifests: testdata/none") {
		t.Error(message)
	}
}
