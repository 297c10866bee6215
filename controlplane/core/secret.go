// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package core

import (
	"bytes"
	"encoding/json"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/core/kind"
)

// secrets describes Secrets.
func secrets() *resource.Resource {
	return kind.Definition[corev1.Secret, *corev1.Secret]{
		Version: "v1", Plural: "secrets", Unconditional: true,
		Metadata: kind.Metadata{RepeatCreationErrors: true},
		Defaults: defaultSecret,
		Validate: validateSecret,
		Columns:  kind.Columns("Name", "Type", "Data", "Age"),
		Row: func(s *corev1.Secret) []any {
			return []any{s.Name, string(s.Type), int64(len(s.Data)), kind.Age(s)}
		},
		Selectable: []kind.Selectable[*corev1.Secret]{kind.Leaf("type", func(s *corev1.Secret) string { return string(s.Type) })},
	}.Resource()
}

// defaultSecret moves stringData, which is for writing alone, into data.
func defaultSecret(s *corev1.Secret) {
	kind.OrDefault(&s.Type, corev1.SecretTypeOpaque)
	if len(s.StringData) == 0 {
		return
	}
	if s.Data == nil {
		s.Data = map[string][]byte{}
	}
	for k, v := range s.StringData {
		s.Data[k] = []byte(v)
	}
	s.StringData = nil
}

func validateSecret(s, old *corev1.Secret) field.ErrorList {
	var errs field.ErrorList
	path := field.NewPath("data")
	size := 0
	for key, v := range s.Data {
		errs = append(errs, validKey(path.Key(key), key)...)
		size += len(v)
	}
	if size > maxSecretSize {
		errs = append(errs, field.TooLong(path, "", maxSecretSize))
	}
	required := func(keys ...string) {
		for _, key := range keys {
			if _, ok := s.Data[key]; !ok {
				errs = append(errs, field.Required(path.Key(key), ""))
			}
		}
	}
	switch s.Type {
	case corev1.SecretTypeServiceAccountToken:
		if s.Annotations[corev1.ServiceAccountNameKey] == "" {
			errs = append(errs, field.Required(field.NewPath("metadata", "annotations").Key(corev1.ServiceAccountNameKey), ""))
		}
	case corev1.SecretTypeDockercfg:
		errs = append(errs, validJSON(s, corev1.DockerConfigKey)...)
	case corev1.SecretTypeDockerConfigJson:
		errs = append(errs, validJSON(s, corev1.DockerConfigJsonKey)...)
	case corev1.SecretTypeBasicAuth:
		if _, ok := s.Data[corev1.BasicAuthUsernameKey]; !ok {
			if _, ok := s.Data[corev1.BasicAuthPasswordKey]; !ok {
				required(corev1.BasicAuthUsernameKey, corev1.BasicAuthPasswordKey)
			}
		}
	case corev1.SecretTypeSSHAuth:
		if len(s.Data[corev1.SSHAuthPrivateKey]) == 0 {
			errs = append(errs, field.Required(path.Key(corev1.SSHAuthPrivateKey), ""))
		}
	case corev1.SecretTypeTLS:
		required(corev1.TLSCertKey, corev1.TLSPrivateKeyKey)
	}
	if old == nil {
		return errs
	}
	if s.Type != old.Type {
		errs = append(errs, field.Invalid(field.NewPath("type"), s.Type, "field is immutable"))
	}
	if !kind.Value(old.Immutable) {
		return errs
	}
	if !kind.Value(s.Immutable) {
		errs = append(errs, field.Forbidden(field.NewPath("immutable"), "field is immutable when `immutable` is set"))
	}
	if !sameData(s.Data, old.Data) {
		errs = append(errs, field.Forbidden(path, "field is immutable when `immutable` is set"))
	}
	return errs
}

func sameData(a, b map[string][]byte) bool { return maps.EqualFunc(a, b, bytes.Equal) }

// validJSON checks that a key of a Secret holds JSON.
func validJSON(s *corev1.Secret, key string) field.ErrorList {
	path := field.NewPath("data").Key(key)
	raw, ok := s.Data[key]
	if !ok {
		return field.ErrorList{field.Required(path, "")}
	}
	var parsed map[string]any
	if err := json.Unmarshal(raw, &parsed); err != nil {
		return field.ErrorList{field.Invalid(path, "<secret contents redacted>", err.Error())}
	}
	return nil
}
