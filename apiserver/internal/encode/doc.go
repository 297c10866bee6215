// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package encode encodes stored objects in the representation that a client negotiated:
// whole, as metadata only or as rows of a Table; as JSON or as protobuf. Answers
// (package endpoint) and watches (package watchserver) have it in common.
package encode
