// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/steer-dev/steer/scaffold/project"
)

// TestKindsOfOtherModulesPassTheirTests makes a controller and webhooks, at paths of their own,
// of a kind whose types are in another module.
func TestKindsOfOtherModulesPassTheirTests(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	other := filepath.Join(base, "certs")
	write(t, other, "go.mod", "module example.org/certs\n\ngo 1.26.0\n")
	if _, err := Init(t.Context(), InitOptions{Dir: other, Domain: "example.org", Name: "certs", Checkout: checkout(t)}); err != nil {
		t.Fatal(err)
	}
	create(t, APIOptions{Dir: other, GVK: kindOf("certs", "v1", "Certificate"), NoController: true})

	dir := filepath.Join(base, "guestbook")
	write(t, dir, "licence", "/*\nAll rights reserved.\n*/\n")
	write(t, dir, modFile, "module example.com/guestbook\n\ngo 1.26.0\n\nreplace example.org/certs => ../certs\n")
	if _, err := Init(t.Context(), InitOptions{Dir: dir, Domain: "example.com", Checkout: checkout(t), LicenseFile: filepath.Join(dir, "licence")}); err != nil {
		t.Fatal(err)
	}
	before := tree(t, dir)
	kind := kindOf("certs", "v1", "Certificate")
	from := project.External{Path: "example.org/certs/api/v1", Domain: "example.org", Module: "example.org/certs@v1.2.3"}
	create(t, APIOptions{Dir: dir, GVK: kind, NoResource: true, External: from})
	createWebhook(t, WebhookOptions{Dir: dir, GVK: kind, Defaulting: true, DefaultingPath: "/certs/default", Validation: true})
	now := tree(t, dir)
	const want = `- controller: true
  domain: example.org
  external: true
  group: certs
  kind: Certificate
  module: example.org/certs@v1.2.3
  path: example.org/certs/api/v1
  version: v1
`
	if !strings.Contains(now[project.File], want) || !strings.Contains(now[modFile], "example.org/certs v1.2.3") {
		t.Errorf("PROJECT and go.mod are\n%s\n%s", now[project.File], now[modFile])
	}
	if text := now["internal/webhook/v1/certificate_webhook.go"]; !strings.HasPrefix(text, "/*\nAll rights") || strings.Count(text, "/certs/default") != 2 || strings.Count(text, "/validate-certs-example-org-v1-certificate") != 1 {
		t.Errorf("the webhooks are\n%s", text)
	}
	// An object of the kind is reconciled, and its status is left to its own controller.
	const test, sample = "internal/controller/certificate_controller_test.go", "config/samples/certificate.yaml"
	write(t, dir, sample, "apiVersion: certs.example.org/v1\nkind: Certificate\nmetadata:\n  name: one\n")
	write(t, dir, test, strings.Replace(now[test], "\tenv.ExpectNoWrites()", "\tenv.Apply(\""+sample+"\")\n\tenv.ExpectNoWrites()", 1))
	passes(t, dir, "./...")
	if err := os.RemoveAll(filepath.Join(dir, "config", "samples")); err != nil {
		t.Fatal(err)
	}
	if _, err := DeleteWebhook(t.Context(), DeleteOptions{Dir: dir, GVK: kind, Force: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := DeleteAPI(t.Context(), DeleteOptions{Dir: dir, GVK: kind, Force: true}); err != nil {
		t.Fatal(err)
	}
	now = tree(t, dir)
	now[modFile], now[sumFile] = before[modFile], before[sumFile]
	if !maps.Equal(now, before) {
		t.Error(differences(before, now))
	}
	// Webhooks alone, of a kind that PROJECT does not have.
	createWebhook(t, WebhookOptions{Dir: dir, GVK: kind, Validation: true, External: from, NoGenerate: true})
	if text, err := os.ReadFile(filepath.Join(dir, project.File)); err != nil || !strings.Contains(string(text), "external: true") {
		t.Errorf("%v, PROJECT is\n%s", err, text)
	}
}
