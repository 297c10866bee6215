// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1 asks for clients in every way there is.
//
// +groupName=shop.example.com
// +k8s:deepcopy-gen=package
package v1
