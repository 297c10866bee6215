// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package quota

import "github.com/steer-dev/steer/controlplane/part"

// Parts returns the admission plugin ResourceQuota, which is the last of a chain, and the
// controller.
func Parts(d part.Deps) (plugin, controller part.Part) {
	charges := &Ledger{}
	return part.Plugin("ResourceQuota", NewAdmission(d.Store, d.Send, charges)), part.Controller(NewController(d.Catalog, charges))
}
