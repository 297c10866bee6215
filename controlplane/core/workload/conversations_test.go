// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package workload_test

import (
	"slices"
	"testing"

	"github.com/steer-dev/steer/controlplane/admission"
	"github.com/steer-dev/steer/controlplane/core"
	"github.com/steer-dev/steer/controlplane/part"
	"github.com/steer-dev/steer/controlplane/part/parttest"
)

func TestWorkloadAnswersAreThoseOfKubeAPIServer(t *testing.T) {
	t.Parallel()
	parttest.Conversations{
		Parts: func(d *part.Deps) part.List {
			return slices.Concat(part.List{{Name: "kinds", Resources: core.Resources()}}, admission.Plugins(*d))
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
