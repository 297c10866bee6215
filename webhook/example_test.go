// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/manager"
	"github.com/steer-dev/steer/webhook"
)

// images completes and validates the images of Pods.
type images struct{}

func (images) Default(_ context.Context, pod *corev1.Pod) error {
	for i := range pod.Spec.Containers {
		if c := &pod.Spec.Containers[i]; c.ImagePullPolicy == "" {
			c.ImagePullPolicy = corev1.PullIfNotPresent
		}
	}
	return nil
}

func (images) ValidateCreate(_ context.Context, pod *corev1.Pod) (webhook.Warnings, error) {
	for _, c := range pod.Spec.Containers {
		if c.Image == "" {
			return nil, errors.New("every container needs an image")
		}
	}
	return nil, nil
}

func (i images) ValidateUpdate(ctx context.Context, _, pod *corev1.Pod) (webhook.Warnings, error) {
	return i.ValidateCreate(ctx, pod)
}

func (images) ValidateDelete(context.Context, *corev1.Pod) (webhook.Warnings, error) { return nil, nil }

// The paths are those that kubebuilder projects have in their manifests.
func ExampleAddValidator() {
	scheme, err := client.NewScheme(corev1.AddToScheme)
	if err != nil {
		panic(err)
	}
	m, err := manager.New(&rest.Config{Host: "https://cluster"}, manager.Options{Name: "images", Scheme: scheme})
	if err != nil {
		panic(err)
	}
	if err := errors.Join(webhook.AddDefaulter(m, images{}), webhook.AddValidator(m, images{})); err != nil {
		panic(err)
	}
	fmt.Println(m.Webhooks().Paths())
	// Output: [/mutate--v1-pod /validate--v1-pod]
}
