// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apiserver serves Kubernetes resources over HTTP, as a library.
//
// A [Server] is given a store and [resource.Resource] values and implements the API
// that kubectl, client-go and other clients expect of a Kubernetes API server: all
// verbs, watches, discovery, OpenAPI, health. Resources can be installed and removed at
// run time.
//
//	server, err := apiserver.New(apiserver.Options{Store: storage.NewMemory(storage.MemoryOptions{})})
//	err = server.Install(&resource.Resource{...})
//	http.Serve(listener, server.Handler())                                  // over the network, or
//	config := &rest.Config{Host: "https://steer.invalid", Transport: server.RoundTripper(user)} // in process
//
// Package resource defines what the author of a resource implements; the examples show
// one that is stored and one with a backend of its own. The verbs, the decoding of
// bodies and the storage are in internal packages.
//
// Objects are stored as the JSON that is sent, so that reads and watches in the storage
// version copy bytes and decode nothing. Other encodings are computed for the first
// reader and cached.
package apiserver
