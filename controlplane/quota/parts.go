// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"context"

	"github.com/steer-dev/steer/controlplane/part"
)

// Parts returns the admission plugin ResourceQuota, which is the last of a chain, and the
// controller.
func Parts(d part.Deps) (plugin, controller part.Part) {
	charges := &Ledger{}
	plugin = part.Plugin("ResourceQuota", NewAdmission(d.Store, d.Send, charges))
	plugin.Lead = func(context.Context) error {
		charges.forget()
		return nil
	}
	return plugin, part.Controller(NewController(d.Catalog, charges))
}
