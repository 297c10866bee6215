// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/certificates"
	"github.com/steer-dev/steer/controlplane/core"
)

// builtinResources returns the built-in kinds.
func builtinResources() []*resource.Resource {
	return append(core.Resources(), certificates.Resource())
}
