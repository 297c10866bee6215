// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package core

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/core/kind"
	"github.com/steer-dev/steer/controlplane/core/valid"
)

// maxSecretSize bounds the data of a Secret, and of a ConfigMap, in bytes.
const maxSecretSize = 1 << 20

func namespaceKinds() []*resource.Resource {
	k := kind.Of[corev1.Namespace, *corev1.Namespace]{
		Version: "v1", Plural: "namespaces", Short: []string{"ns"}, Cluster: true,
		Metadata: kind.Metadata{Again: true},
		NameRule: apivalidation.ValidateNamespaceName,
		Status:   true, Unconditional: true,
		InitialStatus:  func(ns *corev1.Namespace) { ns.Status.Phase = corev1.NamespaceActive },
		ValidateStatus: validateNamespaceStatus,
		Defaults:       defaultNamespace,
		Prepare: func(_ context.Context, ns, old *corev1.Namespace) {
			defaultNamespace(ns) // by now a generated name is known
			if old != nil {
				ns.Spec.Finalizers = old.Spec.Finalizers
			} else if !hasFinalizer(ns, corev1.FinalizerKubernetes) {
				ns.Spec.Finalizers = append(ns.Spec.Finalizers, corev1.FinalizerKubernetes)
			}
		},
		Validate: func(ns, old *corev1.Namespace) field.ErrorList {
			var errs field.ErrorList
			for _, f := range ns.Spec.Finalizers {
				errs = append(errs, validFinalizer(field.NewPath("spec", "finalizers"), string(f))...)
			}
			return errs
		},
		Columns: kind.Columns("Name", "Status", "Age"),
		Row: func(ns *corev1.Namespace) []any {
			return []any{ns.Name, string(ns.Status.Phase), kind.Age(ns)}
		},
		Selectable: []kind.Selectable[*corev1.Namespace]{
			kind.Leaf("status.phase", func(ns *corev1.Namespace) string { return string(ns.Status.Phase) }),
		},
		Deletion: resource.DeletionRules{
			OneByOne: true, ReturnsObject: true,
			Holds: func(obj resource.Object) bool { return len(obj.(*corev1.Namespace).Spec.Finalizers) > 0 },
			Mark:  func(obj resource.Object) { obj.(*corev1.Namespace).Status.Phase = corev1.NamespaceTerminating },
		},
	}
	k.Family = kind.NewFamily()
	k.Subresources = []resource.Subresource{{
		Name: "finalize", Strategy: namespaceFinalize{}, Ownership: k.Ownership("finalize"), Verbs: []string{"update"},
	}}
	return []*resource.Resource{k.Resource()}
}

// defaultNamespace sees to the phase, and to the label by which selectors find a namespace.
// A generated name that is wrong is no label either, and said to be wrong once.
func defaultNamespace(ns *corev1.Namespace) {
	kind.OrDefault(&ns.Status.Phase, corev1.NamespaceActive)
	if ns.GenerateName != "" && len(validation.IsValidLabelValue(ns.Name)) > 0 {
		return
	}
	if ns.Name != "" && ns.Labels[corev1.LabelMetadataName] != ns.Name {
		ns.Labels = maps.Clone(ns.Labels)
		if ns.Labels == nil {
			ns.Labels = map[string]string{}
		}
		ns.Labels[corev1.LabelMetadataName] = ns.Name
	}
}

// validateNamespaceStatus lets nobody say that a namespace goes which stays, or the reverse.
func validateNamespaceStatus(ns, _ *corev1.Namespace) field.ErrorList {
	path := field.NewPath("status", "Phase")
	switch {
	case ns.DeletionTimestamp == nil && ns.Status.Phase != corev1.NamespaceActive:
		return field.ErrorList{field.Invalid(path, ns.Status.Phase, "may only be 'Active' if `deletionTimestamp` is empty")}
	case ns.DeletionTimestamp != nil && ns.Status.Phase != corev1.NamespaceTerminating:
		return field.ErrorList{field.Invalid(path, ns.Status.Phase, "may only be 'Terminating' if `deletionTimestamp` is not empty")}
	}
	return nil
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

// Normalize implements resource.Strategy.
func (namespaceFinalize) Normalize(resource.Object) ([]string, error) { return nil, nil }

// Prepare keeps the status: the subresource is about spec.finalizers.
func (namespaceFinalize) Prepare(_ context.Context, obj, old resource.Object) {
	obj.(*corev1.Namespace).Status = old.(*corev1.Namespace).Status
}

// Validate implements resource.Strategy.
func (namespaceFinalize) Validate(context.Context, resource.Object, resource.Object) field.ErrorList {
	return nil
}

// Warnings implements resource.Strategy.
func (namespaceFinalize) Warnings(context.Context, resource.Object, resource.Object) []string {
	return nil
}

func configKinds() []*resource.Resource {
	return []*resource.Resource{
		kind.Of[corev1.ConfigMap, *corev1.ConfigMap]{
			Version: "v1", Plural: "configmaps", Short: []string{"cm"}, Unconditional: true,
			Metadata: kind.Metadata{Again: true},
			Validate: validateConfigMap,
			Columns:  kind.Columns("Name", "Data", "Age"),
			Row: func(c *corev1.ConfigMap) []any {
				return []any{c.Name, int64(len(c.Data) + len(c.BinaryData)), kind.Age(c)}
			},
		}.Resource(),
		kind.Of[corev1.Secret, *corev1.Secret]{
			Version: "v1", Plural: "secrets", Unconditional: true,
			Metadata: kind.Metadata{Again: true},
			Defaults: defaultSecret,
			Validate: validateSecret,
			Columns:  kind.Columns("Name", "Type", "Data", "Age"),
			Row: func(s *corev1.Secret) []any {
				return []any{s.Name, string(s.Type), int64(len(s.Data)), kind.Age(s)}
			},
			Selectable: []kind.Selectable[*corev1.Secret]{kind.Leaf("type", func(s *corev1.Secret) string { return string(s.Type) })},
		}.Resource(),
		kind.Of[corev1.ServiceAccount, *corev1.ServiceAccount]{
			Version: "v1", Plural: "serviceaccounts", Short: []string{"sa"}, Unconditional: true,
			Metadata: kind.Metadata{Again: true},
			Deletion: resource.DeletionRules{ReturnsObject: true},
			Prepare:  func(_ context.Context, s, _ *corev1.ServiceAccount) { nameSecrets(s) },
			Warnings: accountWarnings,
			Columns:  kind.Columns("Name", "Age"),
			Row:      func(s *corev1.ServiceAccount) []any { return []any{s.Name, kind.Age(s)} },
		}.Resource(),
		kind.Of[coordinationv1.Lease, *coordinationv1.Lease]{
			Group: "coordination.k8s.io", Version: "v1", Plural: "leases", Creates: true,
			Metadata: kind.Metadata{AnyFinalizer: true},
			Prepare:  dropLeaseCoordination,
			Validate: validateLease,
			Columns:  kind.Columns("Name", "Holder", "Age"),
			Row: func(l *coordinationv1.Lease) []any {
				return []any{l.Name, kind.Value(l.Spec.HolderIdentity), kind.Age(l)}
			},
		}.Resource(),
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

// dropLeaseCoordination drops what belongs to coordinated leader election, which
// is off by default.
func dropLeaseCoordination(_ context.Context, l, _ *coordinationv1.Lease) {
	l.Spec.Strategy, l.Spec.PreferredHolder = nil, nil
}

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

// validKey checks a key of a ConfigMap or Secret.
func validKey(path *field.Path, key string) field.ErrorList {
	var errs field.ErrorList
	for _, problem := range validation.IsConfigMapKey(key) {
		errs = append(errs, field.Invalid(path, key, problem))
	}
	return errs
}

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

// validFinalizer checks the name of one of a namespace's own finalizers.
func validFinalizer(path *field.Path, name string) field.ErrorList {
	var errs field.ErrorList
	for _, problem := range validation.IsQualifiedName(name) {
		errs = append(errs, field.Invalid(path, name, problem))
	}
	return append(errs, valid.Finalizer(name, path)...)
}

// onlyListedSecrets is the annotation by which an account has its Pods mount the Secrets that it
// lists alone.
const onlyListedSecrets = "kubernetes.io/enforce-mountable-secrets"

// nameSecrets leaves nothing but the names of an account's Secrets.
func nameSecrets(s *corev1.ServiceAccount) {
	for i := range s.Secrets {
		s.Secrets[i] = corev1.ObjectReference{Name: s.Secrets[i].Name}
	}
}

func accountWarnings(s, old *corev1.ServiceAccount) []string {
	if _, is := s.Annotations[onlyListedSecrets]; !is {
		return nil
	}
	if old != nil {
		if _, was := old.Annotations[onlyListedSecrets]; was {
			return nil
		}
	}
	return []string{"metadata.annotations[" + onlyListedSecrets + "]: deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets"}
}
