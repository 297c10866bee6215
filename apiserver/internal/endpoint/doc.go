// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package endpoint answers the verbs of resources over HTTP.
//
// A [Handler] takes a request that was let in and whose resource is known, and
// answers it: it negotiates media types, reads bodies and options, patches, and
// writes objects, lists, tables and watch events in the form that was asked for.
// Objects come from the registry, or from the Backend of a resource or subresource;
// the bytes on the wire do not tell which.
//
// It decides neither who may ask nor what a stored object must be like: the chain
// before it and the registry below do.
package endpoint
