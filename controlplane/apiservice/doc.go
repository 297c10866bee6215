// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apiservice has APIServices: which server serves a version of an API group, and
// passes the requests for the versions of other servers on to them.
//
// The kind is [Aggregation.Resource], the objects of a fresh cluster are those of [Boot].
// Those of what this server has itself are there from the start, those of custom resources
// come and go with their definitions ([Controller]).
//
// An [Aggregation] connects to the API server behind the Service of an APIService, wherever
// webhooks behind that Service would be called: at its endpoints, at the name of an
// ExternalName, or where an option says. It shows a client certificate of the plane's front
// proxy, and names the user in headers. Clients can set none of these headers, and their
// credentials are not passed on. The path is sent as it was authorized. Redirects are not
// passed on; a request for an upgrade has a connection of its own, and if the upgrade fails
// neither that nor the client's is used again. [Availability] asks the servers whether they
// answer: one that does not is unavailable, and requests for its versions are answered with
// 503 at once. [Discovery] asks them what they serve, for the discovery documents and the
// descriptions of OpenAPI of this server: those of version 2 are merged into its own, and stand for those
// of version 3 where a server has none. What a server said last is stale while it does not answer.
package apiservice
