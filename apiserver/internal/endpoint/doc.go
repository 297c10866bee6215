// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package endpoint answers the verbs of resources over HTTP.
//
// A [Handler] answers a request that was authenticated and authorized and whose
// resource is known: it negotiates media types, decodes bodies and options, applies
// patches, and writes objects, lists, tables and watch events in the negotiated
// representation. Objects come from the registry, or from the Backend of a resource or
// subresource; clients cannot tell the two apart.
//
// Authorization happens before this package (package apiserver), and validation of
// stored objects below it (package registry).
package endpoint
