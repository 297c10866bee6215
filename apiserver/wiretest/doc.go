// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package wiretest replays written HTTP conversations with an API server and compares
// the answers with recorded ones.
//
// A conversation is a txtar archive. Every section without a suffix is a
// request; the section of the same name with the suffix ".answer" holds the
// answer, normalised so that two servers that behave alike give the same text:
//
//	-- create --
//	POST /apis/stable.example.com/v1/namespaces/default/crontabs?fieldManager=me
//	@capture rv = metadata.resourceVersion
//
//	apiVersion: stable.example.com/v1
//	kind: CronTab
//	metadata: {name: my-cron}
//	spec: {cronSpec: "* * * * *"}
//	-- create.answer --
//	201 Created
//	Content-Type: application/json
//
//	apiVersion: stable.example.com/v1
//	...
//
// A request is a line with method and target, then headers and directives in any order,
// then an empty line and the body. A body is written in YAML and sent as JSON, unless
// its Content-Type is another. ${name} is replaced by a captured value everywhere in a
// request, ${N times |TEXT|} by N copies of TEXT. Directives:
//
//	@capture NAME = PATH     remember a field of the answer
//	@header NAME...          show these response headers too
//	@keep PATH...            show only these fields of the answer
//	@where LIST PATH=VALUE   show only the matching elements of a list
//	@until CODE              repeat the request until it answers with CODE
//	@until PATH=VALUE        repeat it until the field has the value
//	@until ~TEXT             repeat it until the answer, or what @where shows of it, contains the text
//	@events N                close a watch after N events (else: read to its end)
//	@raw                     send the body as written
//	@protobuf                send the body as protobuf
//	@compact                 drop the server's history first (see [Target.Compact])
//	@setup                   the answer is of no interest: check only that it is below 400
//	@settle                  wait until what the request changed is in force (see [Target.Settle])
//	@sent PATH...            show only these fields of what webhooks were sent (nothing: show none of it)
//
// A line "@admission PLUGIN..." before the first request names admission plugins that
// the conversation needs and that kube-apiserver does not enable by default. A line
// "@controllers NAME..." names controllers that run during it, which others have without any. A line
// "@alone" says that it needs a server of its own, a line "@unordered" that the order of
// warnings is of no interest: they are sorted.
//
// A section with the suffix ".webhook" describes one path of a webhook server, which
// listens on loopback, with TLS, while the conversation lasts. In requests ${webhook_url} is
// its URL, ${webhook_ca} the certificate that signed its own, as caBundle, ${webhook_port} its
// port; ${webhook_expired_url} is the URL of the same server with an expired certificate and
// ${webhook_other_ca} a certificate that signed neither. They are valid for 127.0.0.1
// and webhook.default.svc. The section is the review that the server answers, in YAML; apiVersion,
// kind and uid are those of the request unless written, allowed is true, and a patch is
// written as a list. The objects of a ConversionReview are converted by the directives below:
//
//	-- add-label.webhook --
//	response:
//	  patch:
//	  - {op: add, path: /metadata/labels, value: {a: b}}
//	-- slow-and-wrong.webhook --
//	@wait 2s
//	@status 500
//	@raw
//
//	this is not JSON
//
// Directives of a webhook, before an empty line:
//
//	@status CODE             answer with this code
//	@header NAME: VALUE      and this header
//	@raw                     send the body as written
//	@wait DURATION           answer late
//	@hangup                  close the connection without an answer
//	@concurrent              the server calls it beside others: sort the calls
//	@rename V FIELD W FIELD  a field of version V is another one of version W
//	@overwrite FIELD=VALUE   set a field of each converted object (null: remove it)
//	@lose N                  leave out the last N objects
//
// A section with the suffix ".backend" describes one path of an aggregated API server, which is
// the webhook server: ${webhook_port} is its port, ${expired_port} that of the same server with an
// expired certificate. The section is the body that it answers, in YAML, with the directives
// @status, @header, @raw, @wait and @hangup of webhooks, and @upgrade: it switches to the protocol
// that the request asks for, writes the body and closes the connection. Other paths are answered
// with 404. The server with the expired certificate has the paths below expired/. It shows the requests that it received but those of the aggregator itself.
//
// What the server was sent is part of the answer of the request that caused it. A line
// "@sent PATH..." before the first request holds for all requests without that directive.
//
// A PATH is a dotted path of field names; it passes through lists, and [K=V]
// after a name picks elements. A backslash before a dot makes it part of a
// name.
//
// What is normalised: uids, generated names, recent timestamps, ages, ports, continue
// tokens and resource versions; of a JSON Web Token the claims are shown. The versions
// of one object become "<rv 1>", "<rv 2>", ... in the order in which they occurred, so
// that a write without a change is visible; a version that decreases is marked. Managed
// fields are written one line per entry.
package wiretest
