// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package http2 serves HTTP/2 for an [http.Server]: frames are written by the
// handler that has something to say.
//
// The server of net/http hands every piece of an answer from the handler to the
// connection's goroutine, from there to a goroutine that writes, and back. For an
// event of a watch that costs more than encrypting and sending it. Here a
// connection has one goroutine, which reads; every stream has the goroutine of
// its handler; and whoever has frames writes them, together with those that
// others have left meanwhile, in one system call where they fit.
//
// Frames and header compression are those of golang.org/x/net, but for what usual
// requests consist of: headers that a client has sent before are not decoded again,
// and pieces of a body are taken out of the buffer that they came in. HTTP/1.1,
// listening, TLS and the life of the server stay with net/http:
//
//	server := &http.Server{...}
//	http2.Configure(server)
//	server.ServeTLS(http2.Listener(l), "", "")
//
// Server push, priorities and extended CONNECT are not there, nor are the
// deadlines of [http.ResponseController]; its Flush is.
package http2
