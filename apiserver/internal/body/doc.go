// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package body reads what clients send: within a limit, in JSON, YAML or protobuf,
// as an object of the version that the path names.
//
// A [Decoder] finds unknown and duplicate fields and says of each wrong body what is
// wrong with it, in the words that clients know. Patches are not bodies of a kind:
// package patch reads them.
package body
