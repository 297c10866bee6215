// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package registry stores the objects of resources that have no Backend of their own.
//
// A [Registry] reads and writes records. It lists the records of a [Selection] at a
// revision, encodes them in any served version as JSON and protobuf, and caches the
// encodings. Each [Operation] follows the rules of its kind: system metadata,
// managedFields, admission, strategy, preconditions, finalizers and graceful deletion.
// It is evaluated again after a conflicting write.
//
// The package does not depend on HTTP: requests are parsed, records are returned as
// they are stored, and errors are API statuses. Package endpoint answers the verbs.
package registry
