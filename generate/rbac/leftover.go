// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"bytes"
	"cmp"

	"sigs.k8s.io/yaml"
)

// Leftover is the name of the file that an earlier run made, and whether a text is
// what that run can have left there: nothing but roles, all of the name that the
// options give or of a marker's namespace and name.
func (g *Generator) Leftover() (name string, left func(text []byte) bool) {
	return cmp.Or(g.Options.FileName, "role.yaml"), func(text []byte) bool {
		named := false
		for document := range bytes.SplitSeq(append([]byte("\n"), text...), []byte("\n---\n")) {
			var role struct {
				APIVersion string `json:"apiVersion"`
				Kind       string `json:"kind"`
				Metadata   struct {
					Name      string `json:"name"`
					Namespace string `json:"namespace"`
				} `json:"metadata"`
				Rules []any `json:"rules"`
			}
			if err := yaml.UnmarshalStrict(document, &role); err != nil {
				return false
			}
			if role.APIVersion == "" && role.Kind == "" { // the header
				continue
			}
			if role.APIVersion != "rbac.authorization.k8s.io/v1" || role.Kind != "ClusterRole" && role.Kind != "Role" {
				return false
			}
			named = named || role.Metadata.Name == g.Options.RoleName
		}
		return named
	}
}
