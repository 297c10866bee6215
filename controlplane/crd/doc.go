// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package crd serves custom resources.
//
// [Definitions] is the resource customresourcedefinitions.apiextensions.k8s.io
// and what follows from its objects: a definition that is stored is served,
// discoverable and described in OpenAPI before the request that stored it is
// answered, and gone again before its deletion is.
//
//	definitions := crd.New(crd.Options{Server: server, Store: store, ...})
//	err := server.Install(definitions.Resource())
//	err = definitions.Load(ctx) // what the store already holds
//
// Names are given first come, first served within a group: a definition whose
// names are taken stays stored with NamesAccepted=False, is not served, and gets
// its names as soon as the other one lets go of them.
//
// A schema is compiled when it is first needed, and once for all control planes
// of a process that use the same one (see [Schemas]).
package crd
