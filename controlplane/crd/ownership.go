// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"reflect"
	"sync"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/steer-dev/steer/apiserver/apply"
	"github.com/steer-dev/steer/apiserver/openapi/gotypes"
)

// definitionTypes describes definitions for field ownership. They are the same
// in every plane, and described when first asked for.
var definitionTypes = sync.OnceValue(func() *apply.Types {
	return apply.FromOpenAPI(func() map[string]*spec.Schema {
		t := reflect.TypeFor[v1.CustomResourceDefinition]()
		definitions := gotypes.Definitions(gotypes.Kubernetes(), t)
		definitions[gotypes.Name(t)].AddExtension("x-kubernetes-group-version-kind", []any{map[string]any{
			"group": v1.GroupName, "version": "v1", "kind": "CustomResourceDefinition",
		}})
		return definitions
	})
})

// definitionOwnership tracks the fields of definitions, at an endpoint through
// which the field reset cannot be changed.
func definitionOwnership(subresource, reset string) *apply.FieldManager {
	gv := v1.SchemeGroupVersion
	return apply.New(apply.Endpoint{
		Kind: gv.WithKind("CustomResourceDefinition"), Types: definitionTypes(), Subresource: subresource,
		New:    func() apply.Object { return &v1.CustomResourceDefinition{} },
		Resets: map[string]*fieldpath.Set{gv.String(): fieldpath.NewSet(fieldpath.MakePathOrDie(reset))},
	})
}
