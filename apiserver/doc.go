// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apiserver serves Kubernetes resources over HTTP, as a library.
//
// A [Server] is given a store and [resource.Resource] values and answers what
// kubectl, client-go and every other client ask of a Kubernetes API server: all
// verbs, watches, discovery, OpenAPI, health. Resources come and go at run time.
//
//	server, err := apiserver.New(apiserver.Options{Store: storage.NewMemory(storage.MemoryOptions{})})
//	err = server.Install(&resource.Resource{...})
//	http.Serve(listener, server.Handler())                                  // over the network, or
//	config := &rest.Config{Host: "https://steer.invalid", Transport: server.RoundTripper(user)} // in process
//
// Package resource is what the author of a resource writes against; the examples
// show one that is kept in a store and one that answers for itself. The verbs, the
// bodies and the store side are in internal packages of their own.
//
// Objects are stored as the JSON that goes over the wire, so that reads and
// watches in the storage version copy bytes and decode nothing. Every other
// form is computed for the first reader and remembered for the next.
package apiserver
