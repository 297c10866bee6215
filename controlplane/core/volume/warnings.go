// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
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

// volumeWarnings are about what no longer works, or will not.
func volumeWarnings(v, _ *corev1.PersistentVolume) []string {
	var out []string
	for _, old := range []struct{ annotation, text string }{
		{corev1.BetaStorageClassAnnotation, `deprecated since v1.8; use "storageClassName" attribute instead`},
		{corev1.MountOptionAnnotation, `deprecated since v1.31; use "mountOptions" attribute instead`},
	} {
		if _, used := v.Annotations[old.annotation]; used {
			out = append(out, "metadata.annotations["+old.annotation+"]: "+old.text)
		}
	}
	s := &v.Spec
	if s.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRecycle {
		out = append(out, "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic provisioning.")
	}
	if s.NodeAffinity != nil && s.NodeAffinity.Required != nil {
		for i, term := range s.NodeAffinity.Required.NodeSelectorTerms {
			for j, e := range term.MatchExpressions {
				if text, renamed := valid.RenamedLabel(e.Key); renamed {
					out = append(out, fmt.Sprintf("spec.nodeAffinity.required.nodeSelectorTerms[%d].matchExpressions[%d].key: %s is %s", i, j, e.Key, text))
				}
			}
		}
	}
	for _, source := range []struct {
		used       bool
		name, text string
	}{
		{s.CephFS != nil, "cephfs", "deprecated in v1.28, non-functional in v1.31+"},
		{s.PhotonPersistentDisk != nil, "photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"},
		{s.ScaleIO != nil, "scaleIO", "deprecated in v1.16, non-functional in v1.22+"},
		{s.StorageOS != nil, "storageOS", "deprecated in v1.22, non-functional in v1.25+"},
		{s.Glusterfs != nil, "glusterfs", "deprecated in v1.25, non-functional in v1.26+"},
		{s.RBD != nil, "rbd", "deprecated in v1.28, non-functional in v1.31+"},
	} {
		if source.used {
			out = append(out, "spec."+source.name+": "+source.text)
		}
	}
	return out
}
