// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"errors"
	"fmt"
	"maps"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/steer-dev/steer/apiserver/resource"
)

// keepsIdentity validates that a conversion has left name, namespace and uid as they were.
func keepsIdentity(sent, converted *resource.Doc) error {
	for _, part := range []struct{ what, was, is string }{
		{"name", sent.GetName(), converted.GetName()},
		{"namespace", sent.GetNamespace(), converted.GetNamespace()},
		{"UID", string(sent.GetUID()), string(converted.GetUID())},
	} {
		if part.was != part.is {
			return fmt.Errorf("must have the same %s: %v != %v", part.what, part.was, part.is)
		}
	}
	return nil
}

// keepMetadata gives a converted object the metadata that it had, with the labels and
// annotations of the conversion, which are validated if they differ.
func keepMetadata(sent, converted *resource.Doc) error {
	converted.SetManagedFields(nil) // they are not decoded to be replaced
	given, has := converted.Content("metadata")["metadata"]
	if !has {
		return errors.New("missing metadata in converted object")
	}
	wished, ok := given.(map[string]any)
	if !ok {
		return fmt.Errorf("invalid metadata of type %T in converted object", given)
	}
	converted.SetMetadata(sent)
	for _, part := range []struct {
		name string
		was  map[string]string
		set  func(map[string]string)
	}{{"labels", sent.GetLabels(), converted.SetLabels}, {"annotations", sent.GetAnnotations(), converted.SetAnnotations}} {
		texts, err := validateTexts(part.name, wished[part.name], part.was)
		if err != nil {
			return err
		}
		part.set(texts)
	}
	return nil
}

// validateTexts validates labels or annotations, by the name of their field, unless they are
// those that the object had, and returns them; nil for none.
func validateTexts(name string, value any, was map[string]string) (map[string]string, error) {
	if value == nil {
		return nil, nil
	}
	texts, ok := value.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("invalid metadata.%s of type %T in converted object", name, value)
	}
	out := make(map[string]string, len(texts))
	for key, value := range texts {
		text, ok := value.(string)
		if !ok {
			return nil, fmt.Errorf("metadata.%s[%s] must be a string, but is %T in converted object", name, key, value)
		}
		out[key] = text
	}
	switch {
	case maps.Equal(out, was):
		return out, nil
	case name == "labels":
		return out, toError(metavalidation.ValidateLabels(out, field.NewPath("metadata", "labels")))
	}
	return out, toError(apivalidation.ValidateAnnotations(out, field.NewPath("metadata", "annotation")))
}

// toError is nil for no errors.
func toError(errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return errs.ToAggregate()
}
