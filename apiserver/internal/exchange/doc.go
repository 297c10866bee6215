// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package exchange is the part of serving that knows HTTP and nothing of
// resources: what a path names, who may come in while others are under way, and
// how an answer is written.
package exchange
