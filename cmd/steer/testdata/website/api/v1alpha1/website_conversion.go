// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"sigs.k8s.io/controller-runtime/pkg/conversion"

	v1 "example.com/website/api/v1"
)

// ConvertTo converts this Website to the hub version.
func (src *Website) ConvertTo(hub conversion.Hub) error {
	dst := hub.(*v1.Website)
	dst.ObjectMeta = src.ObjectMeta
	dst.Spec = v1.WebsiteSpec{Image: src.Spec.Picture, Replicas: src.Spec.Replicas}
	dst.Status = v1.WebsiteStatus(src.Status)
	return nil
}

// ConvertFrom converts from the hub version to this one.
func (dst *Website) ConvertFrom(hub conversion.Hub) error {
	src := hub.(*v1.Website)
	dst.ObjectMeta = src.ObjectMeta
	dst.Spec = WebsiteSpec{Picture: src.Spec.Image, Replicas: src.Spec.Replicas}
	dst.Status = WebsiteStatus(src.Status)
	return nil
}
