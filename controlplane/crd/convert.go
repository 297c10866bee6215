// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"context"
	"fmt"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/steer-dev/steer/apiserver/resource"
)

// refuseConversion fails requests that need the conversion webhook of a definition:
// none is called yet.
func refuseConversion(crd *v1.CustomResourceDefinition) func(context.Context, []resource.Object, string) ([]resource.Object, error) {
	name := crd.Name
	stored, _ := storageVersion(crd)
	return func(_ context.Context, objects []resource.Object, to string) ([]resource.Object, error) {
		for _, obj := range objects {
			if from := obj.GetObjectKind().GroupVersionKind().Version; from != to {
				return nil, fmt.Errorf("conversion of %s from %s to %s: %w; use version %s", name, from, to, errWebhookConversion, stored)
			}
		}
		return objects, nil
	}
}
