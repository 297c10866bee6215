// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package workload_test

import (
	"slices"
	"testing"

	"github.com/steer-dev/steer/controlplane/admission"
	"github.com/steer-dev/steer/controlplane/component"
	"github.com/steer-dev/steer/controlplane/component/componenttest"
	"github.com/steer-dev/steer/controlplane/core"
)

func TestWorkloadAnswersAreThoseOfKubeAPIServer(t *testing.T) {
	t.Parallel()
	componenttest.Conversations{
		Parts: func(d *component.Deps) component.List {
			return slices.Concat(component.List{{Name: "kinds", Resources: core.Resources()}}, admission.Plugins(*d))
		},
		Of: []string{
			"replicationcontrollers", "replicasets.apps", "deployments.apps", "statefulsets.apps", "daemonsets.apps",
			"controllerrevisions.apps", "jobs.batch", "cronjobs.batch",
		},
		Names: []string{
			"builtins", "kinds-changes", "kinds-defaults", "kinds-found", "kinds-jobs", "kinds-verbs", "kinds-workloads",
		},
		Except: map[string]string{"kinds-changes/job-status-labels": "UIDs are counted by the name of the object, and other kinds are missing"},
	}.Run(t)
}
