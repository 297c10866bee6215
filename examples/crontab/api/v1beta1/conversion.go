// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	v1 "github.com/steer-dev/steer/examples/crontab/api/v1"
	"github.com/steer-dev/steer/webhook/conversion"
)

// ConvertTo implements conversion.Convertible.
func (src *CronTab) ConvertTo(hub conversion.Hub) error {
	dst := hub.(*v1.CronTab)
	dst.ObjectMeta = src.ObjectMeta
	dst.Spec = v1.CronTabSpec{CronSpec: src.Spec.Schedule, Image: src.Spec.Image, Replicas: src.Spec.Parallelism}
	dst.Status = src.Status
	return nil
}

// ConvertFrom implements conversion.Convertible.
func (dst *CronTab) ConvertFrom(hub conversion.Hub) error {
	src := hub.(*v1.CronTab)
	dst.ObjectMeta = src.ObjectMeta
	dst.Spec = CronTabSpec{Schedule: src.Spec.CronSpec, Image: src.Spec.Image, Parallelism: src.Spec.Replicas}
	dst.Status = src.Status
	return nil
}
