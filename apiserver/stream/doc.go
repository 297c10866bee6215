// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package stream serves the subresources of a custom API server that carry streams: logs,
// commands, forwarded ports and HTTP.
//
// [Log], [Command], [PortForward] and [Proxy] implement [resource.Connecter]; each has one
// function of the author and handles the protocol, so that clients of Pods work with them.
// Their methods Subresource return the subresource with its verbs:
//
//	stream.Command{
//		Run: func(ctx context.Context, r *resource.Request, o stream.Options, s *stream.Session) error {
//			return s.Run(exec.CommandContext(ctx, o.Command[0], o.Command[1:]...))
//		},
//	}.Subresource("exec")
//
// The context ends the process of the command and not the processes that it has started: to end
// them, too, make it the leader of a process group (cmd.SysProcAttr with Setpgid on Unix) and let
// cmd.Cancel signal the group. [Session.Run] waits for none of them when the client is gone.
//
// Commands are served over WebSockets (v5.channel.k8s.io, v4.channel.k8s.io) and SPDY
// (v4.channel.k8s.io), forwarded ports over SPDY, directly or in a WebSocket, as kubectl
// does. The context of a function ends when its client is gone and when the server stops.
package stream
