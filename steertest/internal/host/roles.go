// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/steer-dev/steer/client/manifest"
	"github.com/steer-dev/steer/internal/userroles"
)

// WithUserRoles adds to definitions the roles for people who use their kinds, with the names
// that the project's packages give them. Outside of a project there are none.
func WithUserRoles(manifests []manifest.Object) ([]manifest.Object, error) {
	file, err := Find("PROJECT")
	if errors.Is(err, fs.ErrNotExist) {
		return manifests, nil
	}
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var project struct {
		ProjectName string `json:"projectName"`
		MultiGroup  bool   `json:"multigroup"`
	}
	if err := yaml.Unmarshal(text, &project); err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	all := slices.Clip(manifests) // the caller's stay as they are
	for _, m := range manifests {
		if m.GetKind() != "CustomResourceDefinition" || project.ProjectName == "" {
			continue
		}
		for _, role := range userroles.Of(project.ProjectName, project.MultiGroup, m.Object) {
			all = append(all, manifest.Object{File: m.File, Unstructured: &unstructured.Unstructured{Object: role}})
		}
	}
	return all, nil
}
