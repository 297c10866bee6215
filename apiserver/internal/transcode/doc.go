// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package transcode converts the JSON of Kubernetes' Go types to their protobuf, in one
// pass and without a Go value in between: the bytes are those that decoding the JSON
// and marshalling the value would give.
//
// It never reports an error: for types or notations that it does not support it returns
// false, and the caller decodes.
package transcode
