// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package parts compares parts of the control plane with those packages of
// kube-apiserver that can be linked: the same input must give the same result.
// The conversations of testdata send a few thousand requests to a whole server;
// these tests call one part millions of times.
package parts
