// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/client/manifest"
	"github.com/steer-dev/steer/scaffold/project"
)

// kustomized is what a project of kubebuilder installs: generated manifests, and the
// patches of kustomize that make CRDs convert by a webhook.
type kustomized struct {
	// manifests are files and folders.
	manifests []string
	// conversions are CustomResourceDefinitions with the field spec.conversion alone.
	conversions []manifest.Object
}

// readKustomized looks for what the project in a folder installs; a folder without a file
// PROJECT is not one.
func readKustomized(dir string) (kustomized, error) {
	var k kustomized
	if !exists(filepath.Join(dir, project.File)) {
		return k, nil
	}
	for _, name := range []string{project.CRDDir, webhookFile} {
		name = filepath.Join(dir, filepath.FromSlash(name))
		if exists(name) {
			k.manifests = append(k.manifests, name)
		}
	}
	crds := filepath.Join(dir, "config", "crd")
	text, err := os.ReadFile(filepath.Join(crds, "kustomization.yaml"))
	if errors.Is(err, fs.ErrNotExist) {
		return k, nil
	}
	if err != nil {
		return k, err
	}
	var kustomization struct {
		Patches []struct {
			Path string `json:"path"`
		} `json:"patches"`
		Strategic []string `json:"patchesStrategicMerge"` // of older projects
	}
	if err := yaml.Unmarshal(text, &kustomization); err != nil {
		return k, err
	}
	files := kustomization.Strategic
	for _, patch := range kustomization.Patches {
		files = append(files, patch.Path)
	}
	for _, file := range slices.Compact(files) {
		if file == "" {
			continue // a patch in the text of the kustomization
		}
		objects, err := manifest.Read(filepath.Join(crds, filepath.FromSlash(file)))
		if err != nil {
			return k, err
		}
		k.conversions = append(k.conversions, conversionsOf(objects)...)
	}
	return k, nil
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

// conversionsOf leaves of patches of CustomResourceDefinitions the field spec.conversion.
func conversionsOf(patches []manifest.Object) (out []manifest.Object) {
	for _, patch := range patches {
		conversion, found, err := unstructured.NestedMap(patch.Object, "spec", "conversion")
		if err != nil || !found {
			continue
		}
		only := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"conversion": conversion}}}
		only.SetGroupVersionKind(patch.GroupVersionKind())
		only.SetName(patch.GetName())
		out = append(out, manifest.Object{Unstructured: only, File: patch.File})
	}
	return out
}

// patch applies the conversions, as another field manager than that of the CRDs.
func (k kustomized) patch(ctx context.Context, c client.Client) error {
	return manifest.Apply(ctx, c, "", k.conversions, client.FieldOwner("steer-dev-conversions"))
}
