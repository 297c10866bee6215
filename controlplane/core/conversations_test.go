// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package core_test

import (
	"slices"
	"testing"

	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/controlplane/admission"
	"github.com/steer-dev/steer/controlplane/core"
	"github.com/steer-dev/steer/controlplane/part"
	"github.com/steer-dev/steer/controlplane/part/parttest"
	"github.com/steer-dev/steer/controlplane/rbac"
)

// TestCoreAnswersAreThoseOfKubeAPIServer has the kinds whose rules are in this package, not
// in one for their family.
func TestCoreAnswersAreThoseOfKubeAPIServer(t *testing.T) {
	t.Parallel()
	parttest.Conversations{
		Parts: func(d *part.Deps) part.List {
			roles := rbac.New(d.Store)
			d.Authorizer = auth.Authorizers{auth.AllowMasters{}, roles}
			return slices.Concat(
				part.List{{Name: "kinds", Resources: core.Resources()}, {Name: "reviews", Resources: core.Reviews(d.Authorizer, nil)}},
				admission.Plugins(*d),
				part.List{rbac.EscalationPart(*d, roles), rbac.BootPart(*d, false)},
			)
		},
		Of: []string{
			"configmaps", "secrets", "limitranges", "resourcequotas", "serviceaccounts", "events", "events.events.k8s.io", "leases.coordination.k8s.io",
			"poddisruptionbudgets.policy", "namespaces",
			"roles.rbac.authorization.k8s.io", "clusterroles.rbac.authorization.k8s.io",
			"rolebindings.rbac.authorization.k8s.io", "clusterrolebindings.rbac.authorization.k8s.io",
			"subjectaccessreviews.authorization.k8s.io", "localsubjectaccessreviews.authorization.k8s.io", "selfsubjectaccessreviews.authorization.k8s.io",
			"selfsubjectrulesreviews.authorization.k8s.io", "selfsubjectreviews.authentication.k8s.io",
		},
		Names: []string{
			"builtins", "events", "kinds-changes", "kinds-found", "kinds-leases", "kinds-limits", "kinds-metadata",
			"kinds-policy", "kinds-verbs", "rbac", "reviews-negotiated",
		},
		Except: map[string]string{
			"kinds-verbs/namespace-*": "the deletion of namespaces is in package namespace",
			"kinds-verbs/finalized":   "as above",
		},
	}.Run(t)
}
