// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package watchserver serves watches: [Server.Serve] sends the events of one watch to its
// client, over HTTP or a WebSocket, until the watch ends.
//
// It drives the state machine of package watch, which decides what is sent, with the
// store, the clock and the connection. A watch runs in the goroutine of its request.
// Watches share three things: encoded objects (package registry), whole sequences of
// events (chunkCache) and a timer that wakes them together (sharedTimer), the last two
// while they are sent so many events that they gather them.
package watchserver
