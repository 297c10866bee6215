// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package resource is the contract between a server and what it serves: what a
// strategy, an admission check and the author of a custom API server write
// against.
//
// A [Resource] says what a resource is: its names, where and in which version
// its objects are kept, the versions it is served in, and how objects go from one
// to another. Each [Version] has a [Strategy], the rules of its kind, and may have
// an [Ownership], a [Printer] and [Subresource] values. What is not kept in the
// store implements the verbs it has, [Getter] to [Connecter], and is given as
// Resource.Backend. [Admission] decides on all writes of a server.
//
// The package holds no behaviour of a server: it knows neither HTTP handlers nor
// a store, and serves nothing. Package apiserver does that.
package resource
