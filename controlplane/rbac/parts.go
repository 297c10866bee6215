// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"time"

	"github.com/steer-dev/steer/controlplane/component"
	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/storage"
)

// BootComponent makes the roles and bindings of a fresh cluster, and gives back to them what has
// been taken from them. nodes is [Beginning.Nodes].
func BootComponent(d component.Deps, nodes bool) component.Component {
	return component.Component{
		Name:   "roles of a fresh cluster",
		Health: component.Hooks(d.Progress.Booted, "rbac/bootstrap-roles"),
		Boot: func(view storage.View, now time.Time) ([]storage.Write, []step.Request, error) {
			writes, restore := Boot(view, Beginning{UID: d.Entropy.UID, Now: now, Nodes: nodes})
			return writes, restore, nil
		},
	}
}

// EscalationComponent keeps users from handing out more than they have. roles are those in
// force.
func EscalationComponent(d component.Deps, roles *Authorizer) component.Component {
	return component.Component{
		Name: "escalation of privileges", Admission: Escalation{Roles: roles, Authorizer: d.Authorizer},
		For: []string{
			"roles.rbac.authorization.k8s.io", "clusterroles.rbac.authorization.k8s.io",
			"rolebindings.rbac.authorization.k8s.io", "clusterrolebindings.rbac.authorization.k8s.io",
		},
	}
}
