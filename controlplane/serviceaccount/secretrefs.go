// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package serviceaccount

import (
	"fmt"
	"iter"

	corev1 "k8s.io/api/core/v1"
)

// secretRef is one place of a Pod that names a Secret.
type secretRef struct {
	secret string
	// why begins the sentence by which the place is refused; empty for places
	// that accounts do not restrict.
	why string
	// pull reports that images are pulled with it.
	pull bool
}

// secretsOf yields the places of a Pod that name Secrets: volumes, then
// containers, then what images are pulled with.
func secretsOf(pod *corev1.Pod) iter.Seq[secretRef] {
	return func(yield func(secretRef) bool) {
		for _, v := range pod.Spec.Volumes {
			if v.Secret != nil && !yield(secretRef{secret: v.Secret.SecretName, why: fmt.Sprintf("volume with secret.secretName=%q", v.Secret.SecretName)}) {
				return
			}
			if v.Projected == nil {
				continue
			}
			for _, s := range v.Projected.Sources {
				if s.Secret != nil && !yield(secretRef{secret: s.Secret.Name}) {
					return
				}
			}
		}
		for _, group := range []struct {
			what string
			all  []corev1.Container
		}{{"init container", pod.Spec.InitContainers}, {"container", pod.Spec.Containers}} {
			for _, c := range group.all {
				if !environment(group.what, c, yield) {
					return
				}
			}
		}
		for i, s := range pod.Spec.ImagePullSecrets {
			if !yield(secretRef{secret: s.Name, why: fmt.Sprintf("imagePullSecrets[%d].name=%q", i, s.Name), pull: true}) {
				return
			}
		}
	}
}

// environment yields the Secrets in the environment of a container; it returns
// false when the reader has had enough.
func environment(what string, c corev1.Container, yield func(secretRef) bool) bool {
	for _, from := range c.EnvFrom {
		if from.SecretRef != nil && !yield(secretRef{secret: from.SecretRef.Name,
			why: fmt.Sprintf("%s %s with envFrom referencing secret.secretName=%q", what, c.Name, from.SecretRef.Name)}) {
			return false
		}
	}
	for _, e := range c.Env {
		if e.ValueFrom != nil && e.ValueFrom.SecretKeyRef != nil && !yield(secretRef{secret: e.ValueFrom.SecretKeyRef.Name,
			why: fmt.Sprintf("%s %s with envVar %s referencing secret.secretName=%q", what, c.Name, e.Name, e.ValueFrom.SecretKeyRef.Name)}) {
			return false
		}
	}
	return true
}

// onlyListed refuses a Pod that names a Secret which its account does not list.
func onlyListed(account *corev1.ServiceAccount, pod *corev1.Pod) error {
	mountable, pullable := map[string]bool{}, map[string]bool{}
	for _, s := range account.Secrets {
		mountable[s.Name] = true
	}
	for _, s := range account.ImagePullSecrets {
		pullable[s.Name] = true
	}
	for ref := range secretsOf(pod) {
		listed, what := mountable, "secret"
		if ref.pull {
			listed, what = pullable, "imagePullSecret"
		}
		if ref.why != "" && !listed[ref.secret] {
			return fmt.Errorf("%s is not allowed because service account %s does not reference that %s", ref.why, account.Name, what)
		}
	}
	return nil
}
