// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package core

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/core/kind"
)

// serviceAccounts describes ServiceAccounts.
func serviceAccounts() *resource.Resource {
	return kind.Definition[corev1.ServiceAccount, *corev1.ServiceAccount]{
		Version: "v1", Plural: "serviceaccounts", Short: []string{"sa"}, Unconditional: true,
		Metadata: kind.Metadata{RepeatCreationErrors: true},
		Deletion: resource.DeletionRules{ReturnsObject: true},
		Prepare:  func(_ context.Context, s, _ *corev1.ServiceAccount) { nameSecrets(s) },
		Warnings: accountWarnings,
		Columns:  kind.Columns("Name", "Age"),
		Row:      func(s *corev1.ServiceAccount) []any { return []any{s.Name, kind.Age(s)} },
	}.Resource()
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
