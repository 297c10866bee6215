// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package steertest_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/controlplane"
	"github.com/steer-dev/steer/steertest"
)

// TestASuiteWithoutNamespacesRunsAnywhere is what a suite is that runs on control
// planes of its own and on the API server of STEERTEST_KUBECONFIG alike.
func TestASuiteWithoutNamespacesRunsAnywhere(t *testing.T) {
	t.Parallel()
	for range 3 { // three tests side by side, on objects of the same name
		t.Run("", func(t *testing.T) {
			t.Parallel()
			env := steertest.New(t, steertest.Options{
				Scheme: scheme(t), Setup: setup, Role: roleWithOwnNamespace(t),
				Objects: []client.Object{&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "other"}}},
			})
			env.Create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "source"}, Data: map[string]string{"a": "1"}})
			env.Settled()
			got := steertest.Expect[*corev1.ConfigMap](env, "copy",
				steertest.Field(func(cm *corev1.ConfigMap) string { return cm.Data["a"] }, "1"))
			if got.Namespace != env.Namespace {
				t.Errorf("the copy is in %s, the test in %s", got.Namespace, env.Namespace)
			}
			if err := env.Client.Delete(env.Context(), got); err != nil {
				t.Fatal(err)
			}
			steertest.WaitGone[*corev1.ConfigMap](env, "copy")
			manifest := filepath.Join(t.TempDir(), "more.yaml")
			if err := os.WriteFile(manifest, []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: more}\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			env.Apply(manifest)
			steertest.Wait(env, "more", func(cm *corev1.ConfigMap) bool { return cm.Namespace == env.Namespace })
			if err := env.AsUser("eve").Delete(env.Context(), got); err == nil || !strings.Contains(err.Error(), "eve") {
				t.Errorf("eve deletes: %v", err)
			}
		})
	}
}

// roleWithOwnNamespace is a role file as markers with namespace=system make it.
func roleWithOwnNamespace(t *testing.T) string {
	t.Helper()
	file := role(t, "get, list, watch, create, patch, delete")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	own := `---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: manager-role, namespace: system}
rules:
- {apiGroups: [""], resources: [secrets], verbs: [create]}
`
	if err := os.WriteFile(file, append(text, own...), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestASuiteRunsOnTheServerOfAKubeconfig(t *testing.T) {
	t.Parallel()
	env := steertest.New(t, steertest.Options{Plane: controlplane.Options{Listen: "127.0.0.1:0"}})
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := env.Plane.WriteKubeconfig(kubeconfig); err != nil {
		t.Fatal(err)
	}
	suite := exec.CommandContext(t.Context(), os.Args[0], "-test.v", "-test.run=^TestASuiteWithoutNamespacesRunsAnywhere$")
	suite.Env = append(os.Environ(), steertest.KubeconfigVariable+"="+kubeconfig)
	out, err := suite.CombinedOutput()
	if passed := strings.Count(string(out), "    --- PASS: "); err != nil || passed != 3 {
		t.Errorf("%d tests of 3 passed, %v: %s", passed, err, out)
	}
}
