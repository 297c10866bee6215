// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package custom

import (
	"context"
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateEmbedded validates the objects inside content that the schema marks
// with x-kubernetes-embedded-resource. The function of the library takes a
// context from v0.37 on; both forms are supported, so that a module that depends
// on Steer is free to choose its version of k8s.io/*.
func validateEmbedded(ctx context.Context, content map[string]any, s *schema.Structural) field.ErrorList {
	switch validate := any(objectmeta.Validate).(type) {
	case func(*field.Path, any, *schema.Structural, bool) field.ErrorList:
		return validate(nil, content, s, false)
	case func(context.Context, *field.Path, any, *schema.Structural, bool) field.ErrorList:
		return validate(ctx, nil, content, s, false)
	default:
		return field.ErrorList{field.InternalError(nil, fmt.Errorf("objectmeta.Validate of k8s.io/apiextensions-apiserver has the form %T, which Steer does not know: use a version that Steer is tested with", validate))}
	}
}
