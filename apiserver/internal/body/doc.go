// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package body decodes request bodies: within a size limit, from JSON, YAML or
// protobuf, into an object of the version that the path names.
//
// A [Decoder] reports unknown and duplicate fields and returns kube-apiserver's error
// message for each malformed body. Patches are not objects of a kind: package patch
// parses them.
package body
