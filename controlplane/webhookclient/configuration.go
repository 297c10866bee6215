// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package webhookclient

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"sigs.k8s.io/yaml"
)

// admissionConfiguration is a file for kube-apiserver's --admission-control-config-file.
type admissionConfiguration struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Plugins    []struct {
		Name string `json:"name"`
		// Path is a file with the configuration, relative to the directory of this one.
		Path          string                         `json:"path"`
		Configuration *webhookAdmissionConfiguration `json:"configuration"`
	} `json:"plugins"`
}

// webhookAdmissionConfiguration configures an admission plugin that calls webhooks.
type webhookAdmissionConfiguration struct {
	APIVersion     string `json:"apiVersion"`
	Kind           string `json:"kind"`
	KubeConfigFile string `json:"kubeConfigFile"`
}

// ReadAdmissionConfiguration reads an AdmissionConfiguration, as kube-apiserver is given it with
// --admission-control-config-file, and returns [Options.KubeConfigFiles]. Plugins are the names
// of the plugins that call webhooks; a configuration of another one is an error.
func ReadAdmissionConfiguration(file string, plugins ...string) (map[string]string, error) {
	var config admissionConfiguration
	if err := readYAML(file, &config); err != nil {
		return nil, err
	}
	if err := hasKind(config.APIVersion, config.Kind, admissionVersions(), "AdmissionConfiguration"); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	files := map[string]string{}
	for i := range config.Plugins {
		p := &config.Plugins[i]
		if !slices.Contains(plugins, p.Name) {
			return nil, fmt.Errorf("%s: plugins[%d]: %q cannot be configured: leave it out; there are %v", file, i, p.Name, plugins)
		}
		of, where := p.Configuration, fmt.Sprintf("%s: plugins[%d].configuration", file, i)
		if of == nil && p.Path != "" {
			if where = p.Path; !filepath.IsAbs(where) {
				where = filepath.Join(filepath.Dir(file), where)
			}
			of = &webhookAdmissionConfiguration{}
			if err := readYAML(where, of); err != nil {
				return nil, err
			}
		}
		if of == nil {
			continue
		}
		err := hasKind(of.APIVersion, of.Kind, webhookVersions(), "WebhookAdmissionConfiguration", "WebhookAdmission")
		if err == nil && of.KubeConfigFile != "" && !filepath.IsAbs(of.KubeConfigFile) {
			err = fmt.Errorf("kubeConfigFile: %q must be an absolute path", of.KubeConfigFile)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", where, err)
		}
		if of.KubeConfigFile != "" {
			files[p.Name] = of.KubeConfigFile
		}
	}
	return files, nil
}

func readYAML(file string, into any) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if err := yaml.UnmarshalStrict(text, into); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}

// Versions of the two kinds. That of the alpha version of an AdmissionConfiguration is in another group.
func admissionVersions() []string {
	return []string{"apiserver.config.k8s.io/v1", "apiserver.k8s.io/v1alpha1"}
}

func webhookVersions() []string {
	return []string{"apiserver.config.k8s.io/v1", "apiserver.config.k8s.io/v1alpha1"}
}

// hasKind validates the type of a configuration.
func hasKind(version, kind string, versions []string, kinds ...string) error {
	switch {
	case kind == "":
		return errors.New("kind is missing: write " + kinds[0])
	case !slices.Contains(kinds, kind):
		return fmt.Errorf("kind is %q, want %s", kind, kinds[0])
	case !slices.Contains(versions, version):
		return fmt.Errorf("apiVersion is %q, want %s", version, versions[0])
	}
	return nil
}
