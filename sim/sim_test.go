// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/controller"
	"github.com/steer-dev/steer/manager"
	"github.com/steer-dev/steer/sim"
	"github.com/steer-dev/steer/steertest"
)

// subject is the environment variable that lets TestSubject run, which fails.
const subject = "STEER_SIM_TEST_SUBJECT"

// pair gives the ConfigMap app two Secrets. Unless it is mended, the first stands for both.
type pair struct {
	client.Client
	mended bool
}

// Reconcile implements controller.Reconciler.
func (p pair) Reconcile(ctx context.Context, app *corev1.ConfigMap) (controller.Result, error) {
	if app.Name != "app" {
		return controller.Done(), nil
	}
	for _, name := range []string{"db", "db-ssl"} {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: app.Namespace, Name: name}}
		err := p.Get(ctx, client.ObjectKeyFromObject(secret), &corev1.Secret{})
		switch {
		case err == nil && !p.mended:
			return controller.Done(), nil
		case client.IgnoreNotFound(err) != nil:
			return controller.Result{}, err
		case err == nil:
			continue
		}
		if err := p.Create(ctx, secret); client.IgnoreAlreadyExists(err) != nil {
			return controller.Result{}, err
		}
	}
	return controller.Done(), nil
}

func setup(_ context.Context, m *manager.Manager) error {
	return controller.Add(m, pair{m.Client(), true}, controller.Owns[*corev1.Secret]())
}

func operatedBy(mended bool) func(t *testing.T) {
	return func(t *testing.T) {
		scheme, err := client.NewScheme(corev1.AddToScheme)
		if err != nil {
			t.Fatal(err)
		}
		env := steertest.New(t, steertest.Options{
			Scheme: scheme, Role: steertest.Administrator,
			Setup: func(_ context.Context, m *manager.Manager) error {
				return controller.Add(m, pair{m.Client(), mended}, controller.Owns[*corev1.Secret]())
			},
		})
		env.Create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "app"}})
		env.Settled()
	}
}

func TestAnOperatorThatSurvivesPasses(t *testing.T) {
	t.Parallel()
	sim.Test(t, operatedBy(true))
}

// TestSubject is run by TestAFailureIsASubtestThatIsRepeatedByItsName, in another process.
func TestSubject(t *testing.T) {
	switch os.Getenv(subject) {
	case "":
		t.Skip("it fails on purpose: TestAFailureIsASubtestThatIsRepeatedByItsName runs it")
	case "with the bug":
		sim.Test(t, operatedBy(false))
	case "accepted":
		sim.Test(t, operatedBy(false), sim.Accept("Secret default/db-ssl is missing", "it is not used"), sim.Accept("nothing", "of the kind"))
	case "mended":
		sim.Test(t, operatedBy(true))
	}
}

// goTest runs TestSubject in a folder, and returns what it says.
func goTest(t *testing.T, folder, what string, args ...string) (output string, passed bool) {
	t.Helper()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), binary, append([]string{"-test.v", "-test.short"}, args...)...)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), subject+"="+what)
	out, err := cmd.CombinedOutput()
	return string(out), err == nil
}

func TestAFailureIsASubtestThatIsRepeatedByItsName(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	file := filepath.Join(folder, "testdata", "sim", "TestSubject", "crash_after_create_Secret_db.plan")
	contains := func(output string, want ...string) {
		t.Helper()
		for _, w := range want {
			if !strings.Contains(output, w) {
				t.Errorf("nothing says %q:\n%s", w, output)
			}
		}
	}
	all := "-test.run=^TestSubject$"
	output, passed := goTest(t, folder, "with the bug", all)
	contains(output, "--- FAIL: TestSubject/crash_after_create_Secret_db", "Secret default/db-ssl is missing", "testdata/sim/TestSubject/crash_after_create_Secret_db.plan")
	if _, err := os.Stat(file); passed || err != nil {
		t.Errorf("passed: %t, the file of the plan: %v", passed, err)
	}

	// By its name it is run alone, whether it fails or not.
	again := "-test.run=^TestSubject$/^crash_after_create_Secret_db$"
	if output, passed = goTest(t, folder, "with the bug", again); passed {
		t.Error("it passes when it is repeated")
	}
	contains(output, "--- FAIL: TestSubject/crash_after_create_Secret_db")
	if output, passed = goTest(t, folder, "mended", again); !passed {
		t.Errorf("mended, it fails:\n%s", output)
	}
	contains(output, "--- PASS: TestSubject/crash_after_create_Secret_db")

	output, passed = goTest(t, folder, "mended", "-test.run=^TestSubject$/^crash_after_nothing$")
	if passed {
		t.Error("a name that no plan has passes")
	}
	contains(output, "no plan has the name that -run asks for")

	// What is accepted is no failure, but an exception for nothing is.
	output, passed = goTest(t, folder, "accepted", all)
	if passed {
		t.Error("an exception that accepts nothing passes")
	}
	contains(output, "accepted: Secret default/db-ssl is missing: it is not used", `Accept("nothing") accepts nothing`)

	// The plan of a write that is no longer there is removed when that is asked for.
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(filepath.Dir(file), "crash_after_create_Secret_other.plan")
	if err := os.WriteFile(other, []byte(strings.ReplaceAll(string(text), "name=db", "name=other")), 0o600); err != nil {
		t.Fatal(err)
	}
	output, _ = goTest(t, folder, "mended", all)
	contains(output, "crash_after_create_Secret_other.plan is about a write that the operator does not make")
	goTest(t, folder, "mended", all, "-sim.update")
	if _, err := os.Stat(other); !os.IsNotExist(err) {
		t.Errorf("the plan is still there: %v", err)
	}
	if _, err := os.Stat(file); err != nil {
		t.Errorf("the other plan: %v", err)
	}
}
