// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/steer-dev/steer/controlplane/core/kind"
	"github.com/steer-dev/steer/controlplane/core/valid"
)

// checkMounts has the rules of the directories of a container.
func (s *surroundings) checkMounts(f *valid.Field, c *corev1.Container) {
	paths := sets.New[string]()
	for i := range c.VolumeMounts {
		m, at := &c.VolumeMounts[i], f.Index(i)
		at.NonEmpty("name", m.Name)
		if s.volumes[m.Name] == nil {
			at.NotFound("name", m.Name)
		}
		at.NonEmpty("mountPath", m.MountPath)
		if paths.Has(m.MountPath) {
			at.Invalid("mountPath", m.MountPath, "must be unique")
		}
		paths.Insert(m.MountPath)
		if slices.ContainsFunc(c.VolumeDevices, func(d corev1.VolumeDevice) bool { return d.Name == m.Name }) {
			at.Invalid("name", m.Name, "must not already exist in volumeDevices")
		}
		if slices.ContainsFunc(c.VolumeDevices, func(d corev1.VolumeDevice) bool { return d.DevicePath == m.MountPath }) {
			at.Invalid("mountPath", m.MountPath, "must not already exist as a path in volumeDevices")
		}
		if m.SubPath != "" {
			f.Descending("subPath", m.SubPath)
		}
		if m.SubPathExpr != "" {
			if m.SubPath != "" {
				at.Invalid("subPathExpr", m.SubPathExpr, "subPathExpr and subPath are mutually exclusive")
			}
			f.Descending("subPathExpr", m.SubPathExpr)
		}
		checkPropagation(f, m, c)
		checkReadOnly(f, m)
	}
}

// checkPropagation reports whether a mount may be seen outside its container.
func checkPropagation(f *valid.Field, m *corev1.VolumeMount, c *corev1.Container) {
	if m.MountPropagation == nil {
		return
	}
	valid.Supported(f, "mountPropagation", *m.MountPropagation,
		corev1.MountPropagationBidirectional, corev1.MountPropagationHostToContainer, corev1.MountPropagationNone)
	privileged := c.SecurityContext != nil && kind.Value(c.SecurityContext.Privileged)
	if *m.MountPropagation == corev1.MountPropagationBidirectional && !privileged {
		f.Forbidden("mountPropagation", "Bidirectional mount propagation is available only to privileged containers")
	}
}

func checkReadOnly(f *valid.Field, m *corev1.VolumeMount) {
	const name = "recursiveReadOnly"
	switch kind.Value(m.RecursiveReadOnly) {
	case corev1.RecursiveReadOnlyEnabled, corev1.RecursiveReadOnlyIfPossible:
		if !m.ReadOnly {
			f.Forbidden(name, "may only be specified when readOnly is true")
		}
		if p := m.MountPropagation; p != nil && *p != corev1.MountPropagationNone {
			f.Forbidden(name, "may only be specified when mountPropagation is None or not specified")
		}
	default:
		if m.RecursiveReadOnly != nil {
			valid.Supported(f, name, *m.RecursiveReadOnly,
				corev1.RecursiveReadOnlyDisabled, corev1.RecursiveReadOnlyEnabled, corev1.RecursiveReadOnlyIfPossible)
		}
	}
}

// checkDevices has the rules of the block devices of a container.
func (s *surroundings) checkDevices(f *valid.Field, c *corev1.Container) {
	names, paths := sets.New[string](), sets.New[string]()
	for i := range c.VolumeDevices {
		d, at := &c.VolumeDevices[i], f.Index(i)
		source := s.volumes[d.Name]
		at.NonEmpty("name", d.Name)
		if names.Has(d.Name) {
			at.Invalid("name", d.Name, "must be unique")
		}
		switch {
		case source == nil:
			at.NotFound("name", d.Name)
		case source.PersistentVolumeClaim == nil && source.Ephemeral == nil:
			at.Invalid("name", d.Name, "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode")
		}
		at.NonEmpty("devicePath", d.DevicePath)
		if paths.Has(d.DevicePath) {
			at.Invalid("devicePath", d.DevicePath, "must be unique")
		}
		if slices.Contains(strings.Split(d.DevicePath, "/"), "..") {
			at.Invalid("devicePath", d.DevicePath, "can not contain backsteps ('..')")
		} else {
			paths.Insert(d.DevicePath)
		}
		if slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == d.Name }) {
			at.Invalid("name", d.Name, "must not already exist in volumeMounts")
		}
		if slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == d.DevicePath }) {
			at.Invalid("devicePath", d.DevicePath, "must not already exist as a path in volumeMounts")
		}
		if d.Name != "" {
			names.Insert(d.Name)
		}
	}
}
