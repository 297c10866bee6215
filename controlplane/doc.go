// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controlplane is a whole Kubernetes control plane as one value:
// custom resources, the built-in kinds that operators lean on, namespaces with
// their lifecycle, garbage collection, the expiry of events.
//
//	plane, err := controlplane.New(controlplane.Options{})
//	defer plane.Stop(ctx)
//	err = plane.Start(ctx)
//	client, err := client.New(plane.RESTConfig(), ...)
//
// The zero [Options] give a plane in memory, without a socket: clients reach it
// through [Plane.RESTConfig], whose transport calls the server directly. With a
// data directory it keeps what it acknowledged; with an address it also serves
// kubectl and other clients over TLS.
//
// A plane serves as soon as [New] returns. [Plane.Start] adds what acts by
// itself: the listener and the built-in controllers. A test or a simulation that
// wants to decide when those act calls [Plane.Settle] or [Plane.Step] instead.
//
// No Pod runs unless [Options.Workloads] asks for a simulated cluster, in which
// Deployments roll out, Pods become ready and Jobs complete; see package
// workloads.
//
// Planes share nothing that changes, so a process can have thousands.
package controlplane
