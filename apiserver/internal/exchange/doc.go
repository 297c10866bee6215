// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package exchange is the part of serving that depends on HTTP but not on resources:
// parsing paths, limiting the requests in flight, and writing answers.
package exchange
