// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package typed encodes Kubernetes' Go types as JSON and decodes them, by a plan per
// type that is compiled once by reflection.
//
// Neither direction reports errors for unusual input. Encoding gives the bytes of
// encoding/json; decoding gives what sigs.k8s.io/json decodes without strict errors.
// Everything else is left to these libraries: single values when encoding, the whole
// document when decoding.
package typed
