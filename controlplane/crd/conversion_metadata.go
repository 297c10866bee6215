// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"errors"
	"fmt"
	"maps"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// keepsIdentity validates that a conversion has left name, namespace and uid as they were.
func keepsIdentity(sent, converted *unstructured.Unstructured) error {
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
func keepMetadata(sent, converted *unstructured.Unstructured) error {
	given, has := converted.Object["metadata"]
	if !has {
		return errors.New("missing metadata in converted object")
	}
	wished, ok := given.(map[string]any)
	if !ok {
		return fmt.Errorf("invalid metadata of type %T in converted object", given)
	}
	before, _ := sent.Object["metadata"].(map[string]any) // stored objects have one
	metadata := make(map[string]any, len(before)+1)
	maps.Copy(metadata, before)
	converted.Object["metadata"] = metadata
	for _, name := range []string{"labels", "annotations"} {
		value, has := wished[name]
		if !has || value == nil {
			delete(metadata, name)
			continue
		}
		texts, ok := value.(map[string]any)
		if !ok {
			return fmt.Errorf("invalid metadata.%s of type %T in converted object", name, value)
		}
		was, _ := before[name].(map[string]any)
		if err := validateTexts(name, texts, was); err != nil {
			return err
		}
		metadata[name] = texts
	}
	return nil
}

// validateTexts validates labels or annotations, by the name of their field, unless they are
// those that the object had.
func validateTexts(name string, texts, was map[string]any) error {
	changed := len(texts) != len(was)
	strings := make(map[string]string, len(texts))
	for key, value := range texts {
		text, ok := value.(string)
		if !ok {
			return fmt.Errorf("metadata.%s[%s] must be a string, but is %T in converted object", name, key, value)
		}
		if before, has := was[key]; !has || before != value {
			changed = true
		}
		strings[key] = text
	}
	if !changed {
		return nil
	}
	if name == "labels" {
		return toError(metavalidation.ValidateLabels(strings, field.NewPath("metadata", "labels")))
	}
	return toError(apivalidation.ValidateAnnotations(strings, field.NewPath("metadata", "annotation")))
}

// toError is nil for no errors.
func toError(errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return errs.ToAggregate()
}
