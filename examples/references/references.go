// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package references rolls a Deployment out anew when a Secret changes that its
// Pods name: the commonest need that children do not cover, an object that names
// others which it does not own.
package references

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/steer-dev/steer"
	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/controller"
	"github.com/steer-dev/steer/manager"
)

// Annotation of the Pod template: a hash of what the Secrets hold.
const Annotation = "references.example.com/secrets"

// Operator watches Deployments, and the Secrets that they name.
func Operator() steer.Operator {
	return steer.Operator{
		Name:   "references",
		Scheme: steer.Scheme{appsv1.AddToScheme, corev1.AddToScheme},
		Setup: func(_ context.Context, m *manager.Manager) error {
			r := &Reconciler{client: m.Client()}
			return controller.Add(m, r,
				controller.References[*corev1.Secret](Secrets),
				controller.Where(controller.GenerationChanged[*appsv1.Deployment]))
		},
	}
}

// Secrets are those that the Pods of a Deployment name.
func Secrets(d *appsv1.Deployment) (keys []client.ObjectKey) {
	name := func(name string) { keys = append(keys, client.ObjectKey{Namespace: d.Namespace, Name: name}) }
	for _, v := range d.Spec.Template.Spec.Volumes {
		if v.Secret != nil {
			name(v.Secret.SecretName)
		}
	}
	for _, c := range d.Spec.Template.Spec.Containers {
		for _, from := range c.EnvFrom {
			if from.SecretRef != nil {
				name(from.SecretRef.Name)
			}
		}
		for _, env := range c.Env {
			if env.ValueFrom != nil && env.ValueFrom.SecretKeyRef != nil {
				name(env.ValueFrom.SecretKeyRef.Name)
			}
		}
	}
	return keys
}

// Reconciler keeps the annotation.
type Reconciler struct{ client client.Client }

// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch

// Reconcile writes the hash of the Secrets into the template when it differs.
func (r *Reconciler) Reconcile(ctx context.Context, d *appsv1.Deployment) (controller.Result, error) {
	keys := Secrets(d)
	if len(keys) == 0 {
		return controller.Done(), nil
	}
	var contents []map[string][]byte
	for _, key := range keys {
		var secret corev1.Secret
		if err := r.client.Get(ctx, key, &secret); client.IgnoreNotFound(err) != nil {
			return controller.Result{}, err
		}
		contents = append(contents, secret.Data)
	}
	data, err := json.Marshal(contents)
	if err != nil {
		return controller.Result{}, err
	}
	h := fnv.New64a()
	_, _ = h.Write(data)
	want := fmt.Sprintf("%016x", h.Sum64())
	if d.Spec.Template.Annotations[Annotation] == want {
		return controller.Done(), nil
	}
	after := d.DeepCopy()
	if after.Spec.Template.Annotations == nil {
		after.Spec.Template.Annotations = map[string]string{}
	}
	after.Spec.Template.Annotations[Annotation] = want
	return controller.Done(), r.client.Patch(ctx, after, client.MergeFrom(d))
}
