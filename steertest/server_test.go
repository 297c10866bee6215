// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package steertest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/client"
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
				Scheme: scheme(t), Setup: setup, Role: role(t, "get, list, watch, create, patch, delete"),
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
