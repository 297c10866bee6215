// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package olm validates bundles with the validators of the Operator Framework.
package olm

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/operator-framework/api/pkg/manifests"
	"github.com/operator-framework/api/pkg/validation"
)

// TestBundleOfAProjectIsValid makes a project with webhooks, packages two versions, and
// validates the bundle of the second.
func TestBundleOfAProjectIsValid(t *testing.T) {
	dir := project(t, "records,grafana,alerts")
	bundle, err := manifests.GetBundleFromDir(filepath.Join(dir, "bundle"))
	if err != nil {
		t.Fatal(err)
	}
	if bundle.CSV.Name != "guestbook.v0.2.0" || bundle.CSV.Spec.Replaces != "guestbook.v0.1.0" {
		t.Errorf("the bundle is %s and replaces %q", bundle.CSV.Name, bundle.CSV.Spec.Replaces)
	}
	if n := len(bundle.CSV.Spec.WebhookDefinitions); n != 2 {
		t.Errorf("%d webhooks, want 2", n)
	}
	if entries, err := os.ReadDir(filepath.Join(dir, "bundle", "manifests")); err != nil || len(entries) < 2 {
		t.Errorf("the bundle has %d manifests, %v", len(entries), err)
	}
	results := validation.DefaultBundleValidators.Validate(bundle.ObjectsToValidate()...)
	results = append(results, validation.OperatorHubV2Validator.Validate(bundle)...)
	results = append(results, validation.GoodPracticesValidator.Validate(bundle)...)
	for _, result := range results {
		for _, problem := range result.Errors {
			t.Errorf("%s: %v", result.Name, problem)
		}
		for _, warning := range result.Warnings {
			t.Logf("%s: %v", result.Name, warning)
		}
	}
}

// project makes a project with webhooks, and the bundles of two versions, the second with
// additions.
func project(t *testing.T, with string) string {
	t.Helper()
	dir := t.TempDir()
	program := filepath.Join(t.TempDir(), "steer")
	run(t, "../..", "go", "build", "-o", program, "./cmd/steer")
	gvk := []string{"--group", "webapp", "--version", "v1", "--kind", "Guestbook"}
	run(t, dir, program, "init", "--domain", "example.com", "--project-name", "guestbook")
	run(t, dir, append([]string{program, "create", "api"}, gvk...)...)
	run(t, dir, append([]string{program, "create", "webhook", "--programmatic-validation", "--defaulting"}, gvk...)...)
	run(t, dir, program, "package", "olm", "--version", "0.1.0")
	run(t, dir, program, "package", "olm", "--version", "0.2.0", "--replaces", "guestbook.v0.1.0", "--with", with)
	return dir
}

// run runs a program in a folder, and returns what it writes.
func run(t *testing.T, in string, words ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), words[0], words[1:]...)
	cmd.Dir = in
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(words, " "), err, out)
	}
	return string(out)
}
