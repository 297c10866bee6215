// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package configuration reads AdmissionConfigurations: the files that kube-apiserver is given with
// --admission-control-config-file, which say how admission plugins are configured.
package configuration

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/steer-dev/steer/controlplane/admission/webhooks"
	"github.com/steer-dev/steer/controlplane/quota"
)

// Configuration is what a file says. The zero value is that of a control plane without one.
type Configuration struct {
	// KubeConfigFiles are the files with the credentials that plugins show to webhooks, by the
	// name of the plugin, as options of package webhookclient take them.
	KubeConfigFiles map[string]string
	// LimitedResources are what the plugin ResourceQuota refuses where no quota is about it.
	LimitedResources []quota.Limited
}

// file is an AdmissionConfiguration.
type file struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Plugins    []plugin `json:"plugins"`
}

// plugin is an entry for a plugin.
type plugin struct {
	Name string `json:"name"`
	// Path is a file with the configuration, relative to the directory of the first one.
	Path          string          `json:"path"`
	Configuration json.RawMessage `json:"configuration"`
}

// webhookConfiguration configures a plugin that calls webhooks.
type webhookConfiguration struct {
	APIVersion     string `json:"apiVersion"`
	Kind           string `json:"kind"`
	KubeConfigFile string `json:"kubeConfigFile"`
}

// quotaConfiguration configures the plugin ResourceQuota.
type quotaConfiguration struct {
	APIVersion       string          `json:"apiVersion"`
	Kind             string          `json:"kind"`
	LimitedResources []quota.Limited `json:"limitedResources"`
}

// configurable are the plugins that can be configured.
func configurable() []string {
	return []string{webhooks.MutatingName, webhooks.ValidatingName, quota.PluginName}
}

// Read reads a file. Plugins that cannot be configured, and fields that are not known, are errors.
func Read(name string) (Configuration, error) {
	out := Configuration{KubeConfigFiles: map[string]string{}}
	var f file
	text, err := os.ReadFile(name)
	if err != nil {
		return out, err
	}
	if err := decode(text, &f); err != nil {
		return out, fmt.Errorf("%s: %w", name, err)
	}
	if err := isOf(f.APIVersion, f.Kind, "apiserver.config.k8s.io/v1 AdmissionConfiguration", "apiserver.k8s.io/v1alpha1 AdmissionConfiguration"); err != nil {
		return out, fmt.Errorf("%s: %w", name, err)
	}
	for i := range f.Plugins {
		p, where := &f.Plugins[i], fmt.Sprintf("%s: plugins[%d]", name, i)
		if !slices.Contains(configurable(), p.Name) {
			return out, fmt.Errorf("%s: %q cannot be configured: leave it out; there are %v", where, p.Name, configurable())
		}
		text, where := p.Configuration, where+".configuration"
		if text == nil && p.Path != "" {
			if where = p.Path; !filepath.IsAbs(where) {
				where = filepath.Join(filepath.Dir(name), where)
			}
			if text, err = os.ReadFile(where); err != nil {
				return out, err
			}
		}
		if text == nil {
			continue
		}
		if err := out.add(p.Name, text); err != nil {
			return out, fmt.Errorf("%s: %w", where, err)
		}
	}
	return out, nil
}

// add takes over the configuration of a plugin.
func (c *Configuration) add(name string, text []byte) error {
	if name == quota.PluginName {
		var of quotaConfiguration
		if err := decode(text, &of); err != nil {
			return err
		}
		if err := isOf(of.APIVersion, of.Kind, "apiserver.config.k8s.io/v1 ResourceQuotaConfiguration",
			"resourcequota.admission.k8s.io/v1beta1 Configuration", "resourcequota.admission.k8s.io/v1alpha1 Configuration"); err != nil {
			return err
		}
		c.LimitedResources = of.LimitedResources
		return quota.CheckLimited(of.LimitedResources)
	}
	var of webhookConfiguration
	if err := decode(text, &of); err != nil {
		return err
	}
	var accepted []string
	for _, version := range []string{"apiserver.config.k8s.io/v1", "apiserver.config.k8s.io/v1alpha1"} {
		accepted = append(accepted, version+" WebhookAdmissionConfiguration", version+" WebhookAdmission")
	}
	if err := isOf(of.APIVersion, of.Kind, accepted...); err != nil {
		return err
	}
	switch {
	case of.KubeConfigFile == "":
	case !filepath.IsAbs(of.KubeConfigFile):
		return fmt.Errorf("kubeConfigFile: %q must be an absolute path", of.KubeConfigFile)
	default:
		c.KubeConfigFiles[name] = of.KubeConfigFile
	}
	return nil
}

// decode reads YAML or JSON without fields that into does not have. The error is one line.
func decode(text []byte, into any) error {
	if err := yaml.UnmarshalStrict(text, into); err != nil {
		return errors.New(strings.Join(strings.Fields(err.Error()), " "))
	}
	return nil
}

// isOf validates the type of a configuration: one of those accepted, each an apiVersion and a kind.
func isOf(version, kind string, accepted ...string) error {
	if slices.Contains(accepted, version+" "+kind) {
		return nil
	}
	first, want, _ := strings.Cut(accepted[0], " ")
	known := slices.ContainsFunc(accepted, func(of string) bool { return strings.HasSuffix(of, " "+kind) })
	switch {
	case kind == "":
		return errors.New("kind is missing: write " + want)
	case !known:
		return fmt.Errorf("kind is %q, want %s", kind, want)
	}
	return fmt.Errorf("apiVersion is %q, want %s", version, first)
}
