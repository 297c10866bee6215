// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package exchange parses the paths of requests, limits how many are in flight and how
// long they take, and writes answers: what depends on HTTP but not on resources.
package exchange
