// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package transcode makes the protobuf of Kubernetes' types from JSON that was
// encoded from them, in one pass and without the Go value in between: the bytes
// are those that decoding the JSON and marshalling the value would give.
//
// It accepts and never refuses: what it does not know exactly, be it a type or a
// way to write a value, is left to who decodes.
package transcode
