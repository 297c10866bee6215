// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/apiserver/resource"
)

// definitionPrinter prints definitions.
type definitionPrinter struct{}

// Columns implements [resource.Printer].
func (definitionPrinter) Columns() []metav1.TableColumnDefinition {
	docs := metav1.ObjectMeta{}.SwaggerDoc()
	return []metav1.TableColumnDefinition{
		{Name: "Name", Type: "string", Format: "name", Description: docs["name"]},
		{Name: "Scope", Type: "string", Description: "Cluster/Namespaced"},
		{Name: "Versions", Type: "string", Description: "Served versions"},
		{Name: "Created At", Type: "date", Description: docs["creationTimestamp"]},
		{Name: "Group", Type: "string", Priority: 1, Description: "API group"},
		{Name: "Kind", Type: "string", Priority: 1, Description: "CustomResource kind"},
		{Name: "ShortNames", Type: "string", Priority: 1, Description: "Short names"},
		{Name: "Established", Type: "boolean", Priority: 1, Description: "Established status"},
	}
}

// Cells implements [resource.Printer].
func (definitionPrinter) Cells(obj resource.Object) ([]any, error) {
	crd := obj.(*v1.CustomResourceDefinition)
	var versions []string
	for _, version := range crd.Spec.Versions {
		switch {
		case version.Served && version.Storage:
			versions = append(versions, version.Name+"(storage)")
		case version.Served:
			versions = append(versions, version.Name)
		}
	}
	slices.Sort(versions)
	names := crd.Spec.Names
	return []any{
		crd.Name, string(crd.Spec.Scope), strings.Join(versions, ","), crd.CreationTimestamp.UTC().Format(time.RFC3339),
		crd.Spec.Group, names.Kind, strings.Join(names.ShortNames, ","), apihelpers.IsCRDConditionTrue(crd, v1.Established),
	}, nil
}
