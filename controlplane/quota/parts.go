// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"context"

	"github.com/steer-dev/steer/controlplane/component"
)

// Parts returns the admission plugin ResourceQuota, which is the last of a chain, and the
// controller. What is limited is refused where no quota is about it.
func Parts(d component.Deps, limited []Limited) (plugin, controller component.Component) {
	charges := &Ledger{}
	plugin = component.Plugin(PluginName, NewAdmission(d.Store, d.Send, charges, limited))
	plugin.Lead = func(context.Context) error {
		charges.forget()
		return nil
	}
	return plugin, component.Controller(NewController(d.Catalog, charges))
}
