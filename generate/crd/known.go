// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package crd

import "github.com/steer-dev/steer/generate/schema"

// quantity is what the API server accepts as a resource.Quantity.
const quantity = `^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$`

// known returns the schema of a type whose JSON form its Go form does not tell,
// nil for all others.
func known(path, name string, embeddedMetadata bool) *schema.Schema {
	switch path + "." + name {
	case "k8s.io/apimachinery/pkg/apis/meta/v1.Time", "k8s.io/apimachinery/pkg/apis/meta/v1.MicroTime":
		return &schema.Schema{Type: "string", Format: "date-time"}
	case "k8s.io/apimachinery/pkg/apis/meta/v1.Duration":
		return &schema.Schema{Type: "string"}
	case "k8s.io/apimachinery/pkg/apis/meta/v1.Fields":
		return &schema.Schema{Type: "object", AnyAdditional: true}
	case "k8s.io/apimachinery/pkg/apis/meta/v1.ObjectMeta":
		if embeddedMetadata {
			return objectMeta()
		}
		return &schema.Schema{Type: "object"}
	case "k8s.io/apimachinery/pkg/api/resource.Quantity":
		return &schema.Schema{IntOrString: true, AnyOf: intOrString(), Pattern: quantity}
	case "k8s.io/apimachinery/pkg/util/intstr.IntOrString":
		return &schema.Schema{IntOrString: true, AnyOf: intOrString()}
	case "k8s.io/apimachinery/pkg/runtime.RawExtension":
		return &schema.Schema{Type: "object", PreserveUnknown: true}
	case "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured.Unstructured":
		return &schema.Schema{Type: "object"}
	case "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSON",
		"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1.JSON":
		return &schema.Schema{PreserveUnknown: true}
	}
	return nil
}

func intOrString() []*schema.Schema { return []*schema.Schema{{Type: "integer"}, {Type: "string"}} }

// objectMeta holds the metadata that makes sense in a template: what a user sets,
// not what the server keeps.
func objectMeta() *schema.Schema {
	texts := &schema.Schema{Type: "object", Additional: &schema.Schema{Type: "string"}}
	return &schema.Schema{Type: "object", Properties: map[string]*schema.Schema{
		"name":        {Type: "string"},
		"namespace":   {Type: "string"},
		"annotations": texts,
		"labels":      texts,
		"finalizers":  {Type: "array", Items: &schema.Schema{Type: "string"}},
	}}
}
