// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package podspec_test

import (
	"slices"
	"testing"

	"github.com/steer-dev/steer/controlplane/admission"
	"github.com/steer-dev/steer/controlplane/core"
	"github.com/steer-dev/steer/controlplane/core/podspec"
	"github.com/steer-dev/steer/controlplane/part"
	"github.com/steer-dev/steer/controlplane/part/parttest"
)

// TestPodSpecAnswersAreThoseOfKubeAPIServer has the rules of specifications in Pods, and
// in the templates of workloads.
func TestPodSpecAnswersAreThoseOfKubeAPIServer(t *testing.T) {
	t.Parallel()
	parttest.Conversations{
		Parts: func(d *part.Deps) part.List {
			return slices.Concat(
				part.List{{Name: "kinds", Resources: core.Resources()}},
				admission.Plugins(*d),
				part.List{{Name: "profiles of AppArmor", Admission: podspec.AppArmor{}, For: []string{"pods"}}},
			)
		},
		Of:     []string{"pods", "podtemplates", "deployments.apps", "jobs.batch"},
		Names:  []string{"kinds-pods", "kinds-pod-resize", "kinds-workloads"},
		Except: map[string]string{"kinds-pods/evicted": "evictions are a part of package pod"},
	}.Run(t)
}
