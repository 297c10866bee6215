// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import "github.com/steer-dev/steer/client"

// Held is what the informers hold, as they hold it.
func (c *Cache) Held() (objects []client.Object) {
	for _, s := range c.all() {
		objects = append(objects, s.store.All()...)
	}
	return objects
}
