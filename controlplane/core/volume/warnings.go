// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"fmt"
	"maps"
	"slices"

	storagev1 "k8s.io/api/storage/v1"

	"github.com/steer-dev/steer/controlplane/core/valid"
)

// classWarnings and capacityWarnings are about labels of nodes that are out of use.
func classWarnings(c, _ *storagev1.StorageClass) []string {
	var out []string
	for i, term := range c.AllowedTopologies {
		for j, e := range term.MatchLabelExpressions {
			if text, renamed := valid.RenamedLabel(e.Key); renamed {
				out = append(out, fmt.Sprintf("allowedTopologies[%d].matchLabelExpressions[%d].key: %s", i, j, text))
			}
		}
	}
	return out
}

func capacityWarnings(c, _ *storagev1.CSIStorageCapacity) []string {
	if c.NodeTopology == nil {
		return nil
	}
	var out []string
	for i, e := range c.NodeTopology.MatchExpressions {
		if text, renamed := valid.RenamedLabel(e.Key); renamed {
			out = append(out, fmt.Sprintf("nodeTopology.matchExpressions[%d].key: %s is %s", i, e.Key, text))
		}
	}
	for _, label := range slices.Sorted(maps.Keys(c.NodeTopology.MatchLabels)) {
		if text, renamed := valid.RenamedLabel(label); renamed {
			out = append(out, fmt.Sprintf("nodeTopology.matchLabels.%s: %s", label, text))
		}
	}
	return out
}
