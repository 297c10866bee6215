// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package admission implements the admission plugins of Kubernetes that resolve
// classes and apply limits: LimitRanger, TaintNodesByCondition, PodSecurity, Priority,
// DefaultTolerationSeconds, DefaultStorageClass, StorageObjectInUseProtection,
// PersistentVolumeClaimResize, RuntimeClass, DefaultIngressClass,
// PodTopologyLabels, NodeDeclaredFeatureValidator and PodResizeValidator.
//
// Each is an [resource.Admission] that reads what it needs from the store and
// writes nothing. All of them are safe for concurrent use, and all are
// [resource.Mutator]s: a write of a kind that concerns none of them costs a
// type switch.
//
// The order of a chain matters: a LimitRange is applied before a quota counts.
// [Plugins] are in the order of kube-apiserver.
package admission
