// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"slices"
	"testing"

	"github.com/steer-dev/steer/controlplane/admission"
	"github.com/steer-dev/steer/controlplane/component"
	"github.com/steer-dev/steer/controlplane/component/componenttest"
	"github.com/steer-dev/steer/controlplane/core"
	"github.com/steer-dev/steer/controlplane/core/node"
	"github.com/steer-dev/steer/controlplane/core/podspec"
	"github.com/steer-dev/steer/controlplane/namespace"
)

// TestPluginAnswersAreThoseOfKubeAPIServer has conversations about what plugins refuse and
// set.
func TestPluginAnswersAreThoseOfKubeAPIServer(t *testing.T) {
	t.Parallel()
	componenttest.Conversations{
		Parts: func(d *component.Deps) component.List {
			return slices.Concat(
				component.List{{Name: "kinds", Resources: core.Resources()}, namespace.SystemComponent(*d), node.SystemPriorityClasses(*d)},
				admission.Plugins(*d),
				component.List{{Name: "profiles of AppArmor", Admission: podspec.AppArmor{}, For: []string{"pods"}}},
			)
		},
		Of: []string{"pods", "persistentvolumeclaims", "namespaces", "priorityclasses.scheduling.k8s.io", "ingresses.networking.k8s.io"},
		Names: []string{
			"kinds-claims", "kinds-found", "kinds-network", "kinds-nodes", "kinds-pod-resize", "kinds-storage", "limits", "pod-security",
		},
		Except: map[string]string{"limits/quota-*": "ResourceQuota is in package quota"},
	}.Run(t)
}
