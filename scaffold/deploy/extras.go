// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/steer-dev/steer/internal/userroles"
	"github.com/steer-dev/steer/scaffold/project"
)

// extras adds the manifests of the project's own, as they are written. Those of namespaced
// kinds that name no namespace are in that of the operator.
func (b *builder) extras(dir string) error {
	manifests, err := readExtras(filepath.Join(dir, filepath.FromSlash(project.ExtrasDir)))
	if err != nil {
		return err
	}
	global := globalKinds()
	for _, o := range slices.Concat(contentsOf(b.objects), manifests) {
		if spec, _ := o["spec"].(object); o["kind"] == "CustomResourceDefinition" && spec["scope"] == "Cluster" {
			names, _ := spec["names"].(object)
			kind, _ := names["kind"].(string)
			global = append(global, kind)
		}
	}
	for _, o := range manifests {
		kind, _ := o["kind"].(string)
		metadata := o["metadata"].(object)
		if metadata["namespace"] == nil && !strings.HasPrefix(kind, "Cluster") && !slices.Contains(global, kind) {
			metadata["namespace"] = b.settings.Namespace
		}
		b.add(o)
	}
	return nil
}

func contentsOf(objects []Object) (all []object) {
	for _, o := range objects {
		all = append(all, o.content)
	}
	return all
}

// readExtras reads the manifests of a folder, which does not need to be there.
func readExtras(dir string) (all []object, err error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		name := entry.Name()
		if entry.IsDir() || name == "kustomization.yaml" || !slices.Contains([]string{".yaml", ".yml"}, filepath.Ext(name)) {
			continue
		}
		file := filepath.Join(dir, name)
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		if err := project.CheckDocuments(file, text); err != nil {
			return nil, err
		}
		for document := range Documents(text) {
			var o object
			if err := yaml.Unmarshal(document, &o); err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			if len(o) == 0 { // comments
				continue
			}
			metadata, _ := o["metadata"].(object)
			name, _ := metadata["name"].(string)
			if kind, _ := o["kind"].(string); kind == "" || o["apiVersion"] == nil || name == "" {
				return nil, project.Usagef("%s: a document has no apiVersion, kind or metadata.name", file)
			}
			all = append(all, o)
		}
	}
	return all, nil
}

// globalKinds are the kinds of Kubernetes that have no namespace; those whose names begin
// with Cluster have none either.
func globalKinds() []string {
	return []string{
		"APIService", "CSIDriver", "CSINode", "CertificateSigningRequest", "CustomResourceDefinition", "DeviceClass", "FlowSchema", "IPAddress", "IngressClass",
		"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding", "MutatingWebhookConfiguration", "Namespace", "Node", "PersistentVolume", "PriorityClass",
		"PriorityLevelConfiguration", "ResourceSlice", "RuntimeClass", "ServiceCIDR", "StorageClass", "ValidatingAdmissionPolicy",
		"ValidatingAdmissionPolicyBinding", "ValidatingWebhookConfiguration", "VolumeAttachment", "VolumeAttributesClass",
	}
}

// userRoles adds the roles for people who use the kind that a definition has.
func (b *builder) userRoles(definition object) {
	for _, role := range userroles.Of(b.project.Name, b.project.MultiGroup, definition) {
		role["metadata"].(object)["labels"] = b.labels()
		b.add(role)
	}
}
