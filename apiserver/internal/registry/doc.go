// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package registry keeps the objects of resources in a store: what a resource
// has that brings no Backend of its own.
//
// A [Registry] reads and writes records. It finds those that a [Selection] names,
// at the revision that was asked for; shows them in any served version, in JSON
// and protobuf, and remembers what that took; and runs each [Write] through the
// rules of its kind: system fields, ownership, admission, strategy, preconditions,
// finalizers and graceful deletion, again whenever somebody else was faster.
//
// It knows no HTTP: requests come parsed, records go out as they are, and refusals
// are Status errors. What answers a verb is package endpoint.
package registry
