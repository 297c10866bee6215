// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package crd_test

import (
	"testing"

	"github.com/steer-dev/steer/controlplane/component"
	"github.com/steer-dev/steer/controlplane/component/componenttest"
)

func TestDefinitionAnswersAreThoseOfKubeAPIServer(t *testing.T) {
	t.Parallel()
	componenttest.Conversations{
		Parts: func(d *component.Deps) component.List { return partsOf(d, nil) },
		Names: []string{"conversion", "conversion-faults", "crd-schema", "crd-validation", "crontab", "customs-found", "kinds-found", "kinds-verbs", "watch-tables"},
		Except: map[string]string{
			"kinds-found/definition-condition-only":   "its resourceVersion 1 is that of the definition in a store without other objects",
			"kinds-verbs/definition-of-other-version": "the same",
		},
	}.Run(t)
}
