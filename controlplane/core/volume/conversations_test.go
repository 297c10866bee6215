// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package volume_test

import (
	"slices"
	"testing"

	"github.com/steer-dev/steer/controlplane/admission"
	"github.com/steer-dev/steer/controlplane/component"
	"github.com/steer-dev/steer/controlplane/component/componenttest"
	"github.com/steer-dev/steer/controlplane/core"
)

// TestVolumeAnswersAreThoseOfKubeAPIServer has conversations about volumes, claims and
// classes, and about Pods, most of whose kinds of volumes have rules in this package.
func TestVolumeAnswersAreThoseOfKubeAPIServer(t *testing.T) {
	t.Parallel()
	componenttest.Conversations{
		Parts: func(d *component.Deps) component.List {
			return slices.Concat(component.List{{Name: "kinds", Resources: core.Resources()}}, admission.Plugins(*d))
		},
		Of: []string{
			"persistentvolumes", "persistentvolumeclaims", "storageclasses.storage.k8s.io", "volumeattachments.storage.k8s.io",
			"csidrivers.storage.k8s.io", "csinodes.storage.k8s.io", "csistoragecapacities.storage.k8s.io",
			"volumeattributesclasses.storage.k8s.io", "pods", "deployments.apps",
		},
		Names:  []string{"kinds-csinodes", "kinds-projected", "kinds-storage", "kinds-found", "kinds-verbs", "kinds-changes", "kinds-metadata", "kinds-pods"},
		Except: map[string]string{"kinds-pods/evicted": "evictions are a part of package pod"},
	}.Run(t)
}
