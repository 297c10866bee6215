// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package typed writes Kubernetes' Go types as JSON and reads them back, by a plan
// per type that reflection is asked for once: a write of a built-in kind goes over
// its object without it.
//
// Both ways accept and never refuse. What is written is what encoding/json writes;
// what is read is what sigs.k8s.io/json reads and has nothing to say about. Whatever
// is out of the usual is left to these: parts that are not planned one by one when
// writing, the whole document when reading.
package typed
