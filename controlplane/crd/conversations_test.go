// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package crd_test

import (
	"testing"

	"github.com/steer-dev/steer/controlplane/part"
	"github.com/steer-dev/steer/controlplane/part/parttest"
)

func TestDefinitionAnswersAreThoseOfKubeAPIServer(t *testing.T) {
	t.Parallel()
	parttest.Conversations{
		Parts: func(d *part.Deps) part.List { return partsOf(d, nil) },
		Names: []string{"conversion", "conversion-faults", "crd-schema", "crd-validation", "crontab", "customs-found", "kinds-found", "kinds-verbs", "watch-tables"},
		Except: map[string]string{
			"kinds-found/definition-condition-only":   "its resourceVersion 1 is that of the definition in a store without other objects",
			"kinds-verbs/definition-of-other-version": "the same",
		},
	}.Run(t)
}
