// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kubelet passes requests for containers on to the kubelets of nodes: logs, and the
// connections of exec, attach and port-forward, whose upgrades to SPDY or WebSocket the kubelet
// answers itself.
//
// A node can state any address, so that a user who may write its status decides where the server
// connects to. [Options.Reach] bounds that; it is checked for the address that a connection is made to,
// after names have been resolved. Requests have the server's client certificate and nothing of
// the credentials of its clients. Redirects are not followed. Every upgrade has a connection of its own, which
// is closed when the upgrade fails.
package kubelet
