// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package service_test

import (
	"testing"

	"github.com/steer-dev/steer/controlplane/component"
	"github.com/steer-dev/steer/controlplane/component/componenttest"
	"github.com/steer-dev/steer/controlplane/core/service"
)

func TestServiceAnswersAreThoseOfKubeAPIServer(t *testing.T) {
	t.Parallel()
	componenttest.Conversations{
		Parts: func(d *component.Deps) component.List {
			return component.List{
				{Name: "kinds", Resources: service.Resources()},
				service.NewServiceAllocator(d.Store, nil, d.Entropy.UID).Component(),
			}
		},
		Names:  []string{"builtins", "kinds-addresses", "kinds-changes", "kinds-found", "kinds-services", "kinds-tables"},
		Except: map[string]string{"kinds-addresses/default-range": "the server that announces itself makes it"},
	}.Run(t)
}
