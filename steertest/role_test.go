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

// role writes a ClusterRole with verbs on ConfigMaps and the right to send events.
func role(t *testing.T, verbs string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "role.yaml")
	text := `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: manager-role}
rules:
- {apiGroups: [""], resources: [configmaps], verbs: [` + verbs + `]}
- {apiGroups: [events.k8s.io], resources: [events], verbs: [create, patch]}
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestTheOperatorRunsUnderItsRole(t *testing.T) {
	t.Parallel()
	env := steertest.New(t, steertest.Options{Scheme: scheme(t), Setup: setup, Role: role(t, "get, list, watch, create, patch")})
	env.Create(configMap("source"))
	env.Settled()
	steertest.Wait(env, "default/copy", func(*corev1.ConfigMap) bool { return true })
}

func TestEveryMissingRuleIsNamedInOneRun(t *testing.T) {
	t.Parallel()
	for verbs, want := range map[string]string{
		"get, list, watch, create": `// +kubebuilder:rbac:groups="",resources=configmaps,verbs=patch;create`,
		"get, list, watch, patch":  `// +kubebuilder:rbac:groups="",resources=configmaps,verbs=create`,
		"get":                      `// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;list;watch;patch;create`,
	} {
		file := role(t, verbs)
		message, logs := failsWith(t, func(tb testing.TB) {
			env := steertest.New(tb, steertest.Options{Scheme: scheme(t), Setup: setup, Role: file})
			env.Create(configMap("source"))
			steertest.Wait(env, "default/copy", func(*corev1.ConfigMap) bool { return true })
		})
		if !strings.HasSuffix(message, "\t"+want+"\n") || strings.Count(message, "// +") != 1 || !strings.Contains(message, file) || !strings.Contains(message, "steer generate") {
			t.Errorf("%s: message %s\nwithout %s", verbs, message, want)
		}
		if !strings.Contains(logs, "reconciles:") {
			t.Errorf("%s: the log does not show the reconciles: %s", verbs, logs)
		}
	}
}

func TestAnAdministratorNeedsNoRole(t *testing.T) {
	t.Parallel()
	env := steertest.New(t, steertest.Options{Scheme: scheme(t), Setup: setup, Role: steertest.Administrator})
	if err := env.Manager().Live().Delete(env.Context(), configMap("none")); !apierrors.IsNotFound(err) {
		t.Errorf("got %v, want not found", err)
	}
}

func TestOperatorWithoutARoleLogsOnceThatItIsAnAdministrator(t *testing.T) {
	t.Parallel()
	for role, want := range map[string]int{"": 1, steertest.Administrator: 0} {
		message, logs := outputOf(t, func(tb testing.TB) {
			env := steertest.New(tb, steertest.Options{Scheme: scheme(t), Setup: setup, Role: role})
			env.StopOperator()
			env.StartOperator()
		})
		if message != "" {
			t.Errorf("the role %q: %s", role, message)
		}
		for _, says := range []string{"the operator runs as an administrator", "config/rbac/role.yaml", "steer generate", "Role: steertest.Administrator"} {
			if got := strings.Count(logs, says); got != want {
				t.Errorf("the role %q: the log says %q %d times, not %d: %s", role, says, got, want, logs)
			}
		}
	}
}

func TestARoleThatIsNoneIsRefused(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "role.yaml")
	if err := os.WriteFile(file, []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{file: "no ClusterRole and no Role", "config/none.yaml": "steer generate"} {
		got := fails(t, func(tb testing.TB) {
			steertest.New(tb, steertest.Options{Scheme: scheme(t), Setup: setup, Role: path})
		})
		if !strings.Contains(got, want) {
			t.Errorf("%s: %s", path, got)
		}
	}
}
