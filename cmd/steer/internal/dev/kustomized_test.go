// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestDevGivesCommandsACertificateWhereControllerRuntimeLooks(t *testing.T) {
	t.Parallel()
	env, err := environment(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var temporary string
	for _, variable := range env {
		if dir, ok := strings.CutPrefix(variable, "TMPDIR="); ok {
			temporary = dir
		}
	}
	dir := filepath.Join(temporary, "k8s-webhook-server", "serving-certs")
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	bundle, err := os.ReadFile(filepath.Join(dir, "ca.crt"))
	if err != nil || !roots.AppendCertsFromPEM(bundle) {
		t.Fatal(err)
	}
	for _, name := range []string{"localhost", "127.0.0.1"} {
		if _, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: name, CurrentTime: time.Now()}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestDevFindsWhatAProjectOfKubebuilderInstalls(t *testing.T) {
	t.Parallel()
	const website = "../../testdata/website"
	k, err := readKustomized(website)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(k.manifests, " "), website+"/config/crd/bases "+website+"/config/webhook/manifests.yaml"; filepath.ToSlash(got) != want {
		t.Errorf("manifests: %s, want %s", got, want)
	}
	if len(k.conversions) != 1 || k.conversions[0].GetName() != "websites.apps.example.com" {
		t.Errorf("conversions: %v", k.conversions)
	}
	if k, err := readKustomized(t.TempDir()); err != nil || k.manifests != nil || k.conversions != nil {
		t.Errorf("a folder that is no project: %v, %v", k, err)
	}
}

func TestDevReadsThePatchesThatTheKustomizationNames(t *testing.T) {
	t.Parallel()
	const patch = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: NAME.example.com, annotations: {a: b}}\nspec: SPEC\n"
	conversion := "{conversion: {strategy: Webhook}, group: x}"
	for name, c := range map[string]struct {
		kustomization string
		want          int
	}{
		"none":          {"resources: []", 0},
		"commented out": {"patches:\n# - path: patches/one.yaml\n", 0},
		"patches":       {"patches:\n- path: patches/one.yaml\n- path: patches/labels.yaml\n- patch: '[]'\n", 1},
		"older":         {"patchesStrategicMerge:\n- patches/one.yaml\n", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for file, text := range map[string]string{
				"PROJECT": "version: \"3\"\n", "config/crd/kustomization.yaml": c.kustomization,
				"config/crd/patches/one.yaml":    strings.NewReplacer("NAME", "one", "SPEC", conversion).Replace(patch),
				"config/crd/patches/labels.yaml": strings.NewReplacer("NAME", "one", "SPEC", "{}").Replace(patch),
			} {
				file = filepath.Join(dir, filepath.FromSlash(file))
				if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			k, err := readKustomized(dir)
			if err != nil || len(k.conversions) != c.want {
				t.Fatalf("%d conversions, want %d; %v", len(k.conversions), c.want, err)
			}
			for _, o := range k.conversions {
				spec := o.Object["spec"].(map[string]any)
				if len(spec) != 1 || spec["conversion"] == nil || len(o.GetAnnotations()) > 0 {
					t.Errorf("more than the conversion is patched: %v", o.Object)
				}
			}
		})
	}
}
