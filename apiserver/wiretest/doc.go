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
//	@until ~TEXT             repeat it until the answer contains the text
//	@events N                close a watch after N events (else: read to its end)
//	@raw                     send the body as written
//	@protobuf                send the body as protobuf
//	@compact                 drop the server's history first (see [Target.Compact])
//	@setup                   the answer is of no interest: check only that it is below 400
//
// A line "@admission PLUGIN..." before the first request names admission plugins that
// the conversation needs and that kube-apiserver does not enable by default.
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
