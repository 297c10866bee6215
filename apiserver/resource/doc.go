// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package resource is the contract between a server and the resources it serves: the
// types that the author of a strategy, an admission plugin or a custom API server
// implements.
//
// A [Resource] describes a resource: its names, how its objects are stored, the
// versions it is served in, and how objects are converted between versions. Each
// [Version] has a [Strategy], the rules of its kind, and may have an [FieldManager], a
// [Printer] and [Subresource] values. A resource that is not stored implements its
// verbs, [Getter] to [Connecter], and sets Resource.Backend. [Admission] decides on all
// writes of a server.
//
// The package contains no server: no HTTP handlers and no store. Those are in package
// apiserver.
package resource
