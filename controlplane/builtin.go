// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"github.com/steer-dev/steer/apiserver"
	"github.com/steer-dev/steer/controlplane/certificates"
	"github.com/steer-dev/steer/controlplane/core"
)

// builtinResources returns the built-in kinds.
func builtinResources() []*apiserver.Resource {
	return append(core.Resources(), certificates.Resource())
}
