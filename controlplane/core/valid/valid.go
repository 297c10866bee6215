// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package valid validates fields that many kinds have in common. A rule of a kind makes a
// [Field] with [Root] or [At] and calls its methods, which add errors with the paths and
// messages of Kubernetes.
package valid
