// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kubernetesservice writes the objects in which an API server describes itself:
// the Service "kubernetes" in the namespace "default", with its Endpoints and its
// EndpointSlice, by which Pods find the server; and in kube-system the ConfigMaps that
// hold the authorities by which other API servers authenticate its users, and the day
// since which the use of tokens in Secrets is noted.
//
// The objects are written past the server: their addresses may be ones of this
// machine alone, which validation refuses to others, and some are there before the
// server is. ComponentStatuses are not stored: they are computed.
package kubernetesservice
