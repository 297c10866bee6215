// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v2 is a version whose kinds are those of another.
//
// +groupName=shop.example.com
// +k8s:deepcopy-gen=package
package v2
