// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	v1 "github.com/steer-dev/steer/examples/crontab/api/v1"
	"github.com/steer-dev/steer/webhook/conversion"
)

// ConvertTo implements conversion.Convertible.
func (c *CronTab) ConvertTo(hub conversion.Hub) error {
	out := hub.(*v1.CronTab)
	out.ObjectMeta = c.ObjectMeta
	out.Spec = v1.CronTabSpec{CronSpec: c.Spec.Schedule, Image: c.Spec.Image, Replicas: c.Spec.Parallelism}
	out.Status = c.Status
	return nil
}

// ConvertFrom implements conversion.Convertible.
func (c *CronTab) ConvertFrom(hub conversion.Hub) error {
	in := hub.(*v1.CronTab)
	c.ObjectMeta = in.ObjectMeta
	c.Spec = CronTabSpec{Schedule: in.Spec.CronSpec, Image: in.Spec.Image, Parallelism: in.Spec.Replicas}
	c.Status = in.Status
	return nil
}
