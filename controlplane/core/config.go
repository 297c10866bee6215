// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package core

import (
	"bytes"
	"context"
	"maps"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/steer-dev/steer/apiserver"
)

// maxSecretSize bounds the data of a Secret, and of a ConfigMap, in bytes.
const maxSecretSize = 1 << 20

func namespaceKinds() []*apiserver.Resource {
	k := kind[corev1.Namespace, *corev1.Namespace]{
		version: "v1", plural: "namespaces", short: []string{"ns"}, cluster: true,
		status: true, unconditional: true,
		initialStatus: func(ns *corev1.Namespace) { ns.Status.Phase = corev1.NamespaceActive },
		defaults:      defaultNamespace,
		prepare: func(_ context.Context, ns, old *corev1.Namespace) {
			defaultNamespace(ns) // by now a generated name is known
			if old != nil {
				ns.Spec.Finalizers = old.Spec.Finalizers
			} else if !hasFinalizer(ns, corev1.FinalizerKubernetes) {
				ns.Spec.Finalizers = append(ns.Spec.Finalizers, corev1.FinalizerKubernetes)
			}
		},
		validate: func(ns, old *corev1.Namespace) field.ErrorList {
			errs := validName(ns, old, validation.ValidateNamespaceName)
			for _, f := range ns.Spec.Finalizers {
				errs = append(errs, validFinalizer(field.NewPath("spec", "finalizers"), string(f))...)
			}
			return errs
		},
		columns: columns("Name", "Status", "Age"),
		row: func(ns *corev1.Namespace) []any {
			return []any{ns.Name, string(ns.Status.Phase), age(ns)}
		},
		selectable: []selectable[*corev1.Namespace]{
			leaf("status.phase", func(ns *corev1.Namespace) string { return string(ns.Status.Phase) }),
		},
		subresources: []apiserver.Subresource{{Name: "finalize", Strategy: namespaceFinalize{}, Verbs: []string{"update"}}},
		deletion: apiserver.DeletionRules{
			OneByOne: true, ReturnsObject: true,
			Holds: func(obj apiserver.Object) bool { return len(obj.(*corev1.Namespace).Spec.Finalizers) > 0 },
			Mark:  func(obj apiserver.Object) { obj.(*corev1.Namespace).Status.Phase = corev1.NamespaceTerminating },
		},
	}
	return []*apiserver.Resource{k.resource()}
}

// defaultNamespace sees to the label by which selectors find a namespace.
func defaultNamespace(ns *corev1.Namespace) {
	if ns.Name != "" && ns.Labels[corev1.LabelMetadataName] != ns.Name {
		ns.Labels = maps.Clone(ns.Labels)
		if ns.Labels == nil {
			ns.Labels = map[string]string{}
		}
		ns.Labels[corev1.LabelMetadataName] = ns.Name
	}
}

func hasFinalizer(ns *corev1.Namespace, name corev1.FinalizerName) bool {
	for _, f := range ns.Spec.Finalizers {
		if f == name {
			return true
		}
	}
	return false
}

// namespaceFinalize holds the rules of the subresource that releases a namespace.
type namespaceFinalize struct{}

// Normalize implements apiserver.Strategy.
func (namespaceFinalize) Normalize(apiserver.Object) ([]string, error) { return nil, nil }

// Prepare keeps the status: the subresource is about spec.finalizers.
func (namespaceFinalize) Prepare(_ context.Context, obj, old apiserver.Object) {
	obj.(*corev1.Namespace).Status = old.(*corev1.Namespace).Status
}

// Validate implements apiserver.Strategy.
func (namespaceFinalize) Validate(context.Context, apiserver.Object, apiserver.Object) field.ErrorList {
	return nil
}

// Warnings implements apiserver.Strategy.
func (namespaceFinalize) Warnings(context.Context, apiserver.Object, apiserver.Object) []string {
	return nil
}

func configKinds() []*apiserver.Resource {
	return []*apiserver.Resource{
		kind[corev1.ConfigMap, *corev1.ConfigMap]{
			version: "v1", plural: "configmaps", short: []string{"cm"}, unconditional: true,
			validate: validateConfigMap,
			columns:  columns("Name", "Data", "Age"),
			row: func(c *corev1.ConfigMap) []any {
				return []any{c.Name, int64(len(c.Data) + len(c.BinaryData)), age(c)}
			},
		}.resource(),
		kind[corev1.Secret, *corev1.Secret]{
			version: "v1", plural: "secrets", unconditional: true,
			defaults: defaultSecret,
			validate: validateSecret,
			columns:  columns("Name", "Type", "Data", "Age"),
			row: func(s *corev1.Secret) []any {
				return []any{s.Name, string(s.Type), int64(len(s.Data)), age(s)}
			},
			selectable: []selectable[*corev1.Secret]{leaf("type", func(s *corev1.Secret) string { return string(s.Type) })},
		}.resource(),
		kind[corev1.ServiceAccount, *corev1.ServiceAccount]{
			version: "v1", plural: "serviceaccounts", short: []string{"sa"}, unconditional: true,
			deletion: apiserver.DeletionRules{ReturnsObject: true},
			columns:  columns("Name", "Age"),
			row:      func(s *corev1.ServiceAccount) []any { return []any{s.Name, age(s)} },
		}.resource(),
		kind[coordinationv1.Lease, *coordinationv1.Lease]{
			group: "coordination.k8s.io", version: "v1", plural: "leases", creates: true,
			validate: validateLease,
			columns:  columns("Name", "Holder", "Age"),
			row: func(l *coordinationv1.Lease) []any {
				return []any{l.Name, value(l.Spec.HolderIdentity), age(l)}
			},
		}.resource(),
	}
}

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
	if old == nil || !value(old.Immutable) {
		return errs
	}
	if !value(c.Immutable) {
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

// defaultSecret moves stringData, which is for writing alone, into data.
func defaultSecret(s *corev1.Secret) {
	orDefault(&s.Type, corev1.SecretTypeOpaque)
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
	if !value(old.Immutable) {
		return errs
	}
	if !value(s.Immutable) {
		errs = append(errs, field.Forbidden(field.NewPath("immutable"), "field is immutable when `immutable` is set"))
	}
	if !sameData(s.Data, old.Data) {
		errs = append(errs, field.Forbidden(path, "field is immutable when `immutable` is set"))
	}
	return errs
}

func sameData(a, b map[string][]byte) bool { return maps.EqualFunc(a, b, bytes.Equal) }

func validateLease(l, _ *coordinationv1.Lease) field.ErrorList {
	var errs field.ErrorList
	path := field.NewPath("spec")
	if d := l.Spec.LeaseDurationSeconds; d != nil && *d <= 0 {
		errs = append(errs, field.Invalid(path.Child("leaseDurationSeconds"), *d, "must be greater than 0"))
	}
	if n := l.Spec.LeaseTransitions; n != nil && *n < 0 {
		errs = append(errs, field.Invalid(path.Child("leaseTransitions"), *n, "must be greater than or equal to 0"))
	}
	return errs
}
