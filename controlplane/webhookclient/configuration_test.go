// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package webhookclient_test

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/steer-dev/steer/controlplane/webhookclient"
)

func TestReadAdmissionConfigurationFindsTheKubeconfigs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	write("validating.yaml", "apiVersion: apiserver.config.k8s.io/v1\nkind: WebhookAdmissionConfiguration\nkubeConfigFile: /etc/validating\n")
	file := write("admission.yaml", `apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- name: Mutating
  configuration: {apiVersion: apiserver.config.k8s.io/v1, kind: WebhookAdmissionConfiguration, kubeConfigFile: /etc/mutating}
- {name: Validating, path: validating.yaml}
- {name: Other}
`)
	got, err := webhookclient.ReadAdmissionConfiguration(file, "Mutating", "Validating", "Other")
	if want := map[string]string{"Mutating": "/etc/mutating", "Validating": "/etc/validating"}; err != nil || !maps.Equal(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	alpha := write("alpha.yaml", "apiVersion: apiserver.k8s.io/v1alpha1\nkind: AdmissionConfiguration\nplugins:\n- name: Mutating\n"+
		"  configuration: {apiVersion: apiserver.config.k8s.io/v1alpha1, kind: WebhookAdmission, kubeConfigFile: /etc/mutating}\n")
	got, err = webhookclient.ReadAdmissionConfiguration(alpha, "Mutating")
	if want := map[string]string{"Mutating": "/etc/mutating"}; err != nil || !maps.Equal(got, want) {
		t.Errorf("the alpha versions: got %v, %v, want %v", got, err, want)
	}
	for text, want := range map[string]string{
		"{":                            "yaml",
		"kind: AdmissionConfig":        `kind is "AdmissionConfig", want AdmissionConfiguration`,
		"apiVersion: v1":               "kind is missing: write AdmissionConfiguration",
		"kind: AdmissionConfiguration": `apiVersion is "", want apiserver.config.k8s.io/v1`,
		"apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugin: []":                                                                                                                                      `unknown field "plugin"`,
		"apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins: [{name: PodSecurity}]":                                                                                                                  `plugins[0]: "PodSecurity" cannot be configured`,
		"apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins: [{name: Mutating, path: gone.yaml}]":                                                                                                    "gone.yaml: no such file",
		"apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins: [{name: Mutating, configuration: {kind: WebhookAdmissionConfiguration}}]":                                                               `plugins[0].configuration: apiVersion is ""`,
		"apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins: [{name: Mutating, configuration: {apiVersion: apiserver.config.k8s.io/v1, kind: WebhookAdmissionConfiguration, kubeConfigFile: here}}]": `kubeConfigFile: "here" must be an absolute path`,
	} {
		_, err := webhookclient.ReadAdmissionConfiguration(write("bad.yaml", text), "Mutating")
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v, want one line with %s", text, err, want)
		}
	}
}
