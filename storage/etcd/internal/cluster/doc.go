// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cluster runs etcd members and servers of steer up as processes of this machine,
// with a network between them that can be cut, for the programs ha and faults.
//
// Every connection goes through a [Link] of this process: between two members, from a server
// to a member, and from a server to another one. Clients reach the servers through a
// [Balancer].
package cluster
