// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package configuration_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/steer-dev/steer/controlplane/admission/configuration"
	"github.com/steer-dev/steer/controlplane/quota"
)

func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestReadFindsKubeconfigsAndLimitedResources(t *testing.T) {
	t.Parallel()
	const (
		mutating   = "MutatingAdmissionWebhook"
		validating = "ValidatingAdmissionWebhook"
	)
	dir := t.TempDir()
	write(t, dir, "validating.yaml", "apiVersion: apiserver.config.k8s.io/v1\nkind: WebhookAdmissionConfiguration\nkubeConfigFile: /etc/validating\n")
	for _, test := range []struct {
		name, text string
		want       configuration.Configuration
	}{
		{
			"webhooks", `apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- name: MutatingAdmissionWebhook
  configuration: {apiVersion: apiserver.config.k8s.io/v1, kind: WebhookAdmissionConfiguration, kubeConfigFile: /etc/mutating}
- {name: ValidatingAdmissionWebhook, path: validating.yaml}
- {name: ResourceQuota}
`, configuration.Configuration{KubeConfigFiles: map[string]string{mutating: "/etc/mutating", validating: "/etc/validating"}},
		},
		{
			"the alpha versions", `apiVersion: apiserver.k8s.io/v1alpha1
kind: AdmissionConfiguration
plugins:
- name: MutatingAdmissionWebhook
  configuration: {apiVersion: apiserver.config.k8s.io/v1alpha1, kind: WebhookAdmission, kubeConfigFile: /etc/mutating}
`, configuration.Configuration{KubeConfigFiles: map[string]string{mutating: "/etc/mutating"}},
		},
		{
			"limited resources", `apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- name: ResourceQuota
  configuration:
    apiVersion: apiserver.config.k8s.io/v1
    kind: ResourceQuotaConfiguration
    limitedResources:
    - {resource: pods, matchScopes: [{scopeName: PriorityClass, operator: In, values: [high]}]}
    - {apiGroup: apps, resource: deployments, matchContains: [count/]}
`, configuration.Configuration{KubeConfigFiles: map[string]string{}, LimitedResources: []quota.Limited{
				{Resource: "pods", Scopes: []corev1.ScopedResourceSelectorRequirement{{ScopeName: "PriorityClass", Operator: "In", Values: []string{"high"}}}},
				{Group: "apps", Resource: "deployments", Contains: []string{"count/"}},
			}},
		},
		{
			"limited resources in the beta version", `apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- name: ResourceQuota
  configuration: {apiVersion: resourcequota.admission.k8s.io/v1beta1, kind: Configuration, limitedResources: [{resource: pods, matchContains: [pods]}]}
`, configuration.Configuration{KubeConfigFiles: map[string]string{}, LimitedResources: []quota.Limited{{Resource: "pods", Contains: []string{"pods"}}}},
		},
	} {
		got, err := configuration.Read(write(t, dir, "admission.yaml", test.text))
		if diff := cmp.Diff(test.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", test.name, err, diff)
		}
	}
}

func TestReadSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const head = "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\n"
	quotas := func(text string) string {
		return head + "plugins: [{name: ResourceQuota, configuration: {apiVersion: apiserver.config.k8s.io/v1, kind: ResourceQuotaConfiguration, " + text + "}}]"
	}
	webhooks := func(text string) string {
		return head + "plugins: [{name: MutatingAdmissionWebhook, " + text + "}]"
	}
	for text, want := range map[string]string{
		"{":                                     "yaml",
		"kind: AdmissionConfig":                 `kind is "AdmissionConfig", want AdmissionConfiguration`,
		"apiVersion: v1":                        "kind is missing: write AdmissionConfiguration",
		"kind: AdmissionConfiguration":          `apiVersion is "", want apiserver.config.k8s.io/v1`,
		head + "plugin: []":                     `unknown field "plugin"`,
		head + "plugins: [{name: PodSecurity}]": `plugins[0]: "PodSecurity" cannot be configured`,
		webhooks("path: gone.yaml"):             "gone.yaml: no such file",
		webhooks("configuration: {kind: WebhookAdmissionConfiguration}"):                                                  `plugins[0].configuration: apiVersion is ""`,
		webhooks("configuration: {apiVersion: apiserver.config.k8s.io/v1, kind: WebhookAdmission, kubeConfigFile: here}"): `kubeConfigFile: "here" must be an absolute path`,
		webhooks("configuration: {apiVersion: apiserver.config.k8s.io/v1, kind: ResourceQuotaConfiguration}"):             `kind is "ResourceQuotaConfiguration", want WebhookAdmissionConfiguration`,
		quotas("limited: []"):                              `plugins[0].configuration: error unmarshaling JSON: while decoding JSON: json: unknown field "limited"`,
		quotas("limitedResources: [{matchContains: [a]}]"): "limitedResources[0].resource is missing",
		quotas("limitedResources: [{resource: pods, matchScopes: [{scopeName: PriorityClass, operator: Is}]}]"): `limitedResources[0].matchScopes[0].operator is "Is"`,
	} {
		_, err := configuration.Read(write(t, dir, "bad.yaml", text))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v, want one line with %s", text, err, want)
		}
	}
}
