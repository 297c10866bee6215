// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package etcdcluster

// Addresses says where members are found.
type Addresses interface {
	// Peer is the URL on which the others reach a member.
	Peer(namespace, member string) string
	// Client is the URL on which clients reach it.
	Client(namespace, member string) string
}

// ClusterDNS are the names of the Services that the operator makes, one per
// member.
type ClusterDNS struct{}

// Peer implements Addresses.
func (ClusterDNS) Peer(namespace, member string) string {
	return "http://" + member + "." + namespace + ".svc:2380"
}

// Client implements Addresses.
func (ClusterDNS) Client(namespace, member string) string {
	return "http://" + member + "." + namespace + ".svc:2379"
}
