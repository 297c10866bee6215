// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package core

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/core/kind"
)

// configMaps describes ConfigMaps.
func configMaps() *resource.Resource {
	return kind.Definition[corev1.ConfigMap, *corev1.ConfigMap]{
		Version: "v1", Plural: "configmaps", Short: []string{"cm"}, Unconditional: true,
		Metadata: kind.Metadata{RepeatCreationErrors: true},
		Validate: validateConfigMap,
		Columns:  kind.Columns("Name", "Data", "Age"),
		Row: func(c *corev1.ConfigMap) []any {
			return []any{c.Name, int64(len(c.Data) + len(c.BinaryData)), kind.Age(c)}
		},
	}.Resource()
}

// maxSecretSize bounds the data of a Secret, and of a ConfigMap, in bytes.
const maxSecretSize = 1 << 20

func validateConfigMap(c, old *corev1.ConfigMap) field.ErrorList {
	var errs field.ErrorList
	size := 0
	for key, v := range c.Data {
		errs = append(errs, validKey(field.NewPath("data").Key(key), key)...)
		if _, twice := c.BinaryData[key]; twice {
			errs = append(errs, field.Invalid(field.NewPath("data").Key(key), key, "duplicate of key present in binaryData"))
		}
		size += len(v)
	}
	for key, v := range c.BinaryData {
		errs = append(errs, validKey(field.NewPath("binaryData").Key(key), key)...)
		size += len(v)
	}
	if size > maxSecretSize {
		errs = append(errs, field.TooLong(field.NewPath(""), "", maxSecretSize))
	}
	if old == nil || !kind.Value(old.Immutable) {
		return errs
	}
	if !kind.Value(c.Immutable) {
		errs = append(errs, field.Forbidden(field.NewPath("immutable"), "field is immutable when `immutable` is set"))
	}
	if !equality.Semantic.DeepEqual(c.Data, old.Data) {
		errs = append(errs, field.Forbidden(field.NewPath("data"), "field is immutable when `immutable` is set"))
	}
	if !equality.Semantic.DeepEqual(c.BinaryData, old.BinaryData) {
		errs = append(errs, field.Forbidden(field.NewPath("binaryData"), "field is immutable when `immutable` is set"))
	}
	return errs
}

// validKey checks a key of a ConfigMap or Secret.
func validKey(path *field.Path, key string) field.ErrorList {
	var errs field.ErrorList
	for _, problem := range validation.IsConfigMapKey(key) {
		errs = append(errs, field.Invalid(path, key, problem))
	}
	return errs
}
