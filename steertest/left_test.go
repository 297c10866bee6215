// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package steertest_test

import (
	"context"
	"os"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/controller"
	"github.com/steer-dev/steer/manager"
	"github.com/steer-dev/steer/steertest"
	"github.com/steer-dev/steer/steertest/versions"
	"github.com/steer-dev/steer/trace"
)

// TestAFailedTestLeavesWhatItsOperatorDid in a file of the user alone, of all starts, with the
// versions of objects that are gone, and without values of Secrets.
func TestAFailedTestLeavesWhatItsOperatorDid(t *testing.T) {
	t.Parallel()
	page := trace.Object{Kind: "ConfigMap", Namespace: "default", Name: "page"}
	setup := func(_ context.Context, m *manager.Manager) error {
		paint := func(ctx context.Context, c *corev1.ConfigMap) (controller.Result, error) {
			if c.Name == "page" && c.Data["colour"] == "red" {
				c.Data["colour"] = "blue"
				return controller.Done(), m.Client().Update(ctx, c)
			}
			return controller.Done(), nil
		}
		return controller.Add(m, controller.Func[*corev1.ConfigMap](paint), controller.Name("painter"))
	}
	var revisions []string
	_, logs := failsWith(t, func(tb testing.TB) {
		env := steertest.New(tb, steertest.Options{Scheme: scheme(t), Setup: setup, Role: steertest.Administrator, Mistakes: true})
		env.Create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "login", Namespace: "default", Annotations: map[string]string{"a": "hunter1"}}, StringData: map[string]string{"key": "hunter2"}})
		env.Create(configMap("other"))
		cm := configMap("page")
		cm.Data = map[string]string{"colour": "red"}
		env.Create(cm)
		blue := steertest.Wait(env, "default/page", func(c *corev1.ConfigMap) bool { return c.Data["colour"] == "blue" })
		revisions = []string{cm.ResourceVersion, blue.ResourceVersion}
		env.Settled()
		env.StopOperator()
		env.StartOperator()
		if err := env.Client.Delete(env.Context(), blue); err != nil {
			tb.Fatalf("%v", err)
		}
		env.Settled()
		tb.Errorf("it is a test that fails")
	})
	found := regexp.MustCompile(`steer why --from (\S+) configmap/`).FindStringSubmatch(logs)
	if found == nil {
		t.Fatal(logs)
	}
	t.Cleanup(func() { _ = os.Remove(found[1]) })
	text, err := os.ReadFile(found[1])
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(found[1]); err != nil || os.PathSeparator == '/' && info.Mode().Perm() != 0o600 {
		t.Error(info.Mode(), err)
	}
	if strings.Contains(string(text), "hunter") || strings.Contains(string(text), "aHVudGVy") {
		t.Error("values of a Secret are in the file")
	}
	file, err := versions.Read(strings.NewReader(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	for i, colour := range []string{"red", "blue"} {
		at, err := file.At(t.Context(), page, revision(t, revisions[i]))
		if data, _ := at["data"].(map[string]any); err != nil || data["colour"] != colour {
			t.Errorf("at %s: %v %v, want %s", revisions[i], at, err, colour)
		}
	}
	if at, err := file.At(t.Context(), page, 0); at != nil || err != nil {
		t.Errorf("it was deleted: %v %v", at, err)
	}
	starts := map[uint64]bool{}
	for _, r := range file.Records {
		starts[r.ID.Recorder] = true
	}
	if len(starts) != 2 {
		t.Errorf("records of %d starts", len(starts))
	}
}

// TestATestThatPassesLeavesNothing and reads nothing for it.
func TestATestThatPassesLeavesNothing(t *testing.T) {
	t.Parallel()
	if message, logs := outputOf(t, func(tb testing.TB) { steertest.New(tb, steertest.Options{}) }); message != "" || strings.Contains(logs, "steer why") {
		t.Errorf("%s %s", message, logs)
	}
}

func revision(t *testing.T, text string) (n int64) {
	t.Helper()
	for _, digit := range text {
		n = n*10 + int64(digit-'0')
	}
	return n
}
