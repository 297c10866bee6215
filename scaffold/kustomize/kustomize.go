// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kustomize makes the kustomizations that projects of kubebuilder have in their
// folder config, of the objects of package deploy: the command steer package kustomize, and
// what steer init --layout=kubebuilder adds to a project.
//
// CRDs, roles and webhook configurations are the files that steer generate writes; the
// other objects get files beside them, without the prefix of their names and without
// their namespace, which config/default adds. kustomize build config/default gives what
// steer package yaml writes.
package kustomize

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/steer-dev/steer/scaffold/deploy"
	"github.com/steer-dev/steer/scaffold/project"
)

// Output is the folder of the kustomizations in a project.
const Output = "config"

// Options of [Write].
type Options struct {
	// Dir is the folder of the project. Default: the working directory.
	Dir string
	// Image of the operator. Default: that of steer.yaml.
	Image string
	// Force writes files anew that were edited.
	Force bool
}

type object = map[string]any

// Write writes the kustomizations of a project. Files that its owner has edited are left.
func Write(ctx context.Context, o Options) (*project.Report, error) {
	p, settings, err := deploy.ReadProject(o.Dir, o.Image)
	if err != nil {
		return nil, err
	}
	folder, err := Folder(ctx, o.Dir, p, settings)
	if err != nil {
		return nil, err
	}
	folder.Force = o.Force
	report, err := folder.Write()
	if _, extras := folder.Files[path.Join(path.Base(project.ExtrasDir), file)]; err == nil && extras {
		report.Notes = append(report.Notes, project.ExtrasDir+" is not part of config/default, which would rename what is in it: kubectl apply --server-side -k "+project.ExtrasDir)
	}
	if err == nil && len(p.Served) > 0 {
		report.Notes = append(report.Notes, "the custom API server is left out, since it has a binding in kube-system: steer package yaml and helm have it")
	}
	return report, err
}

// Folder has the kustomizations of a project as they are to be.
func Folder(ctx context.Context, dir string, p *project.Project, s deploy.Settings) (*deploy.Folder, error) {
	objects, err := deploy.Objects(ctx, dir, p, s)
	if err != nil {
		return nil, err
	}
	t := &tree{project: p, settings: s, files: map[string][]byte{}, resources: map[string][]string{}}
	for _, o := range objects {
		if o.Part == deploy.Server { // it has a binding in kube-system
			continue
		}
		if err := t.add(o); err != nil {
			return nil, err
		}
	}
	for _, folder := range []string{"samples", path.Base(project.ExtrasDir)} {
		if err := t.list(dir, folder); err != nil {
			return nil, err
		}
	}
	if err := t.kustomizations(); err != nil {
		return nil, err
	}
	return &deploy.Folder{Project: dir, Output: Output, Files: t.files}, nil
}

// tree is what is in the folder config.
type tree struct {
	project   *project.Project
	settings  deploy.Settings
	files     map[string][]byte
	resources map[string][]string // of the kustomizations, by folder
	converted bool                // a webhook converts the versions of a CRD
}

// add adds an object to its file. What steer generate writes is referred to.
func (t *tree) add(o deploy.Object) error {
	text, err := o.YAML()
	if err != nil {
		return err
	}
	var content object
	if err := yaml.Unmarshal(text, &content); err != nil {
		return fmt.Errorf("read %s %s: %w", o.Kind, o.Name, err)
	}
	if o.Part == deploy.Extras { // config/default would rename it
		return nil
	}
	folder, file, generated := place(t.project.Name, o, content)
	if !slices.Contains(t.resources[folder], file) {
		t.resources[folder] = append(t.resources[folder], file)
	}
	if generated {
		t.converted = t.converted || o.Converted()
		return nil
	}
	if o.Namespace != "" && o.Namespace != t.settings.Namespace {
		return project.Usagef("%s %s is in the namespace %s, and kustomizations have one namespace, %s: use steer package yaml or helm", o.Kind, o.Name, o.Namespace, t.settings.Namespace)
	}
	text, err = yaml.Marshal(t.plain("", content))
	if err != nil {
		return fmt.Errorf("write %s %s: %w", o.Kind, o.Name, err)
	}
	name := path.Join(folder, file)
	if t.files[name] != nil {
		t.files[name] = append(t.files[name], "---\n"...)
	}
	t.files[name] = append(t.files[name], text...)
	return nil
}

// place is the folder and the file of an object, and whether steer generate writes it.
func place(project string, o deploy.Object, content object) (folder, file string, generated bool) {
	switch o.Part {
	case deploy.CRD:
		spec, _ := content["spec"].(object)
		names, _ := spec["names"].(object)
		return "crd", fmt.Sprintf("bases/%s_%s.yaml", spec["group"], names["plural"]), true
	case deploy.Namespace, deploy.Manager:
		if o.Kind == "PodDisruptionBudget" {
			return "manager", "disruption_budget.yaml", false
		}
		return "manager", "manager.yaml", false
	case deploy.UserRoles:
		return "rbac", strings.ReplaceAll(strings.TrimPrefix(o.Name, project+"-"), "-", "_") + ".yaml", false
	case deploy.Records:
		return "rbac", "records_role.yaml", false
	case deploy.Prometheus:
		return "prometheus", "monitor.yaml", false
	case deploy.Alerts:
		return "prometheus", "alerts.yaml", false
	case deploy.Grafana:
		return "grafana", "board.yaml", false
	case deploy.NetworkPolicy:
		return "network-policy", "network_policy.yaml", false
	}
	switch {
	case strings.HasSuffix(o.Kind, "WebhookConfiguration"):
		return "webhook", "manifests.yaml", true
	case o.Part == deploy.Webhook && o.Kind == "Service":
		return "webhook", "service.yaml", false
	case o.Part == deploy.Webhook:
		return "webhook", "role.yaml", false
	case o.Kind == "Service":
		return "default", "metrics_service.yaml", false
	case o.Part == deploy.Metrics:
		return "rbac", "metrics_role.yaml", false
	case o.Kind == "ServiceAccount":
		return "rbac", "service_account.yaml", false
	case strings.HasSuffix(o.Kind, "Binding"):
		return "rbac", "role_binding.yaml", false
	case strings.HasSuffix(o.Name, "-leader-election"): // no marker asks for it
		return "rbac", "leader_election_role.yaml", false
	}
	return "rbac", "role.yaml", true
}

// system stands for the namespace, as in projects of kubebuilder.
const system = "system"

// plain is a value without the prefix of names and without the namespace. Names of objects
// that roles are limited to are those of the deployment.
func (t *tree) plain(key string, value any) any {
	switch v := value.(type) {
	case object:
		out := object{}
		for name, value := range v {
			out[name] = t.plain(name, value)
		}
		return out
	case []any:
		if key == "resourceNames" {
			return v
		}
		out := make([]any, len(v))
		for i, value := range v {
			out[i] = t.plain(key, value)
		}
		return out
	case string:
		switch {
		case v == t.settings.Namespace && (key == "namespace" || key == "name"):
			return system
		case key == "name" || key == "serviceAccountName":
			return strings.TrimPrefix(v, t.project.Name+"-")
		}
	}
	return value
}

// list lists the files of a folder that the owner of the project fills.
func (t *tree) list(dir, folder string) error {
	entries, err := os.ReadDir(filepath.Join(dir, Output, folder))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, entry := range entries {
		if name := entry.Name(); path.Ext(name) == ".yaml" && name != file {
			t.resources[folder] = append(t.resources[folder], name)
		}
	}
	return nil
}

// file is the name of a kustomization.
const file = "kustomization.yaml"

// kustomization is the content of a file.
type kustomization struct {
	Namespace  string   `json:"namespace,omitempty"`
	NamePrefix string   `json:"namePrefix,omitempty"`
	Resources  []string `json:"resources"`
	Labels     []labels `json:"labels,omitempty"`
	// Configurations tell kustomize of names that it does not know to be references.
	Configurations []string `json:"configurations,omitempty"`
}

type labels struct {
	Pairs map[string]string `json:"pairs"`
}

// conversionReferences lets kustomize give the webhooks of conversions the name of their
// Service.
const conversionReferences = `nameReference:
- kind: Service
  version: v1
  fieldSpecs:
  - group: apiextensions.k8s.io
    kind: CustomResourceDefinition
    path: spec/conversion/webhook/clientConfig/service/name
`

// kustomizations writes those of all folders.
func (t *tree) kustomizations() error {
	all := kustomization{Namespace: t.settings.Namespace, NamePrefix: t.project.Name + "-"}
	for _, folder := range slices.Sorted(maps.Keys(t.resources)) {
		if !slices.Contains([]string{"default", "samples", path.Base(project.ExtrasDir)}, folder) {
			all.Resources = append(all.Resources, "../"+folder)
		}
	}
	all.Resources = append(all.Resources, t.resources["default"]...)
	for folder, resources := range t.resources {
		k := kustomization{Resources: resources}
		switch folder {
		case "default":
			continue
		case path.Base(project.ExtrasDir): // with the names that they have
			k.Namespace = t.settings.Namespace
		case "crd":
			if t.converted {
				k.Configurations = []string{"references.yaml"}
				t.files["crd/references.yaml"] = []byte(conversionReferences)
			}
		case "rbac", "webhook": // generated files have no labels
			k.Labels = []labels{{map[string]string{"app.kubernetes.io/name": t.project.Name, "app.kubernetes.io/managed-by": "steer"}}}
		}
		if err := t.kustomization(folder, "", k); err != nil {
			return err
		}
	}
	return t.kustomization("default", "# What kubectl apply -k installs; go tool steer package kustomize writes it, and leaves it once it is edited.\n", all)
}

func (t *tree) kustomization(folder, comment string, k kustomization) error {
	text, err := yaml.Marshal(k)
	if err != nil {
		return fmt.Errorf("write the kustomization of %s: %w", folder, err)
	}
	t.files[path.Join(folder, file)] = bytes.Join([][]byte{[]byte(comment), text}, nil)
	return nil
}
