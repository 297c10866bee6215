// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"

	"sigs.k8s.io/yaml"
)

// Leftover is the name of the file that an earlier run made, and whether a text is
// what that run can have left there: nothing but webhook configurations with names
// and without any other metadata.
func (g *Generator) Leftover() (name string, left func(text []byte) bool) {
	return outputName, func(text []byte) bool {
		found := false
		for document := range bytes.SplitSeq(append([]byte("\n"), text...), []byte("\n---\n")) {
			var configuration struct {
				APIVersion string `json:"apiVersion"`
				Kind       string `json:"kind"`
				Metadata   struct {
					Name string `json:"name"`
				} `json:"metadata"`
				Webhooks []any `json:"webhooks"`
			}
			if err := yaml.UnmarshalStrict(document, &configuration); err != nil {
				return false
			}
			switch {
			case configuration.APIVersion == "" && configuration.Kind == "": // the header
			case configuration.APIVersion != "admissionregistration.k8s.io/v1":
				return false
			case configuration.Kind == "MutatingWebhookConfiguration", configuration.Kind == "ValidatingWebhookConfiguration":
				found = true
			default:
				return false
			}
		}
		return found
	}
}
