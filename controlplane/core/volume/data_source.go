// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/steer-dev/steer/controlplane/core/kind"
)

// prepareClaim lets the two fields that say what a volume begins with say the same, unless
// both are there. That of old is for claims and snapshots alone: others are dropped from
// it where nothing has been asked for before.
func prepareClaim(_ context.Context, c, old *corev1.PersistentVolumeClaim) {
	s := &c.Spec
	had := old != nil && (old.Spec.DataSource != nil || old.Spec.DataSourceRef != nil)
	if r := s.DataSourceRef; r != nil && kind.Value(r.Namespace) != "" && (old == nil || old.Spec.DataSourceRef == nil) {
		s.DataSourceRef = nil // a feature that is off by default
	}
	if !had && s.DataSourceRef == nil && s.DataSource != nil && !isVolumeOrSnapshot(s.DataSource) {
		s.DataSource = nil
	}
	alignSources(s)
	if had {
		alignSources(&old.Spec)
	}
}

func isVolumeOrSnapshot(d *corev1.TypedLocalObjectReference) bool {
	switch kind.Value(d.APIGroup) {
	case "":
		return d.Kind == "PersistentVolumeClaim"
	case "snapshot.storage.k8s.io":
		return d.Kind == "VolumeSnapshot"
	default:
		return false
	}
}

func alignSources(s *corev1.PersistentVolumeClaimSpec) {
	d, r := s.DataSource, s.DataSourceRef
	switch {
	case d != nil && r == nil:
		s.DataSourceRef = &corev1.TypedObjectReference{APIGroup: d.APIGroup, Kind: d.Kind, Name: d.Name}
	case d == nil && r != nil && kind.Value(r.Namespace) == "":
		s.DataSource = &corev1.TypedLocalObjectReference{APIGroup: r.APIGroup, Kind: r.Kind, Name: r.Name}
	}
}
