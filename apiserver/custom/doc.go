// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package custom makes resources of CustomResourceDefinitions: their schemas, defaults,
// rules in CEL, columns, selectable fields, status and scale.
//
// A custom API server describes its kinds with it. `steer generate` writes the definition
// from the Go type, as for an operator; rules that a schema cannot express are functions
// on that type:
//
//	notes := custom.Kind[*v1.Note]{
//		Definition: definition, // go:embed of the YAML file
//		Rules:      custom.Rules[*v1.Note]{Validate: validateNote},
//	}
//	r, err := notes.Resource()
//	err = server.Install(r)
//
// A kind in several versions lists the others with [Spoke]. A kind that is not stored by
// the server sets Backend, and [As] returns the objects that a backend is given as the Go
// type.
//
// [Resource] and [Schemas] are for servers that are given definitions at run time, as
// package controlplane/crd is.
//
// Objects are decoded maps inside: defaults, pruning and rules in CEL see what the client
// has sent, also where a Go type cannot tell a zero from an absent field.
package custom
