// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bufio"
	"bytes"
	"fmt"
	"strings"
)

// cpuKind is a kind whose requests are measured.
type cpuKind struct {
	name, collection string
	protobuf         bool
	// object returns object i with a text in it.
	object func(name string, i int, text string) []byte
	// change is a merge patch that sets a number, changed the number as the server writes it.
	change, changed string
	// status is a merge patch of the status that sets a number; empty: the kind has no status.
	status string
	// configuration is what is applied to an object, of a name and a number.
	configuration string
}

// at is the path of object i.
func (k cpuKind) at(i int) string { return k.collection + "/" + name("there", i) }

// applied is a configuration of object i that sets a number.
func (k cpuKind) applied(i, turn int) []byte {
	return fmt.Appendf(nil, k.configuration, name("there", i), turn)
}

// scanLines splits a stream of JSON.
func scanLines(data []byte, atEnd bool) (int, []byte, error) { return bufio.ScanLines(data, atEnd) }

// cpuKinds are a custom kind of 2 KB, and built-in ones.
func cpuKinds() []cpuKind {
	const annotated = `{"metadata":{"annotations":{"bench.example.com/n":"%d"}}}`
	const annotation = `"bench.example.com/n":"%d"`
	// labelled marks the objects that are listed.
	labelled := func(object func(name string, i int, text string) []byte) func(name string, i int, text string) []byte {
		return func(name string, i int, text string) []byte {
			out := object(name, i, text)
			if strings.HasPrefix(name, "there") {
				out = bytes.Replace(out, []byte(`"labels":{`), []byte(`"labels":{"bench.example.com/there":"yes",`), 1)
			}
			return out
		}
	}
	return []cpuKind{
		{
			name: "custom", collection: collection, object: labelled(items().object),
			change: `{"spec":{"replicas":%d}}`, changed: `"replicas":%d`, status: `{"status":{"ready":%d,"phase":"Ready"}}`,
			configuration: `{"apiVersion":"bench.example.com/v1","kind":"Item","metadata":{"name":%q},"spec":{"image":"registry.example.com/app:2.%d","payload":[` + payload + `]}}`,
		},
		{
			name: "pod", collection: "/api/v1/namespaces/default/pods", protobuf: true, object: labelled(pod),
			change: annotated, changed: annotation, status: `{"status":{"phase":"Running","message":"%d"}}`,
			configuration: `{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q,"labels":{"team":"bench"},"annotations":{"bench.example.com/applied":"%d"}},` +
				`"spec":{"containers":[{"name":"app","image":"registry.example.com/team/app:1.2.3"},{"name":"proxy","image":"registry.example.com/mesh/proxy:2.0.1"}]}}`,
		},
		{
			name: "deployment", collection: "/apis/apps/v1/namespaces/default/deployments", protobuf: true, object: labelled(deployment),
			change: `{"spec":{"replicas":%d}}`, changed: `"replicas":%d`, status: `{"status":{"observedGeneration":%d}}`,
			configuration: string(deployment(`%s`, 0, "")),
		},
		{
			name: "configmap", collection: "/api/v1/namespaces/default/configmaps", protobuf: true, object: labelled(configMap),
			change: annotated, changed: annotation,
			configuration: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q},"data":{"setting-00":"` + configValue + `","applied":"%d"}}`,
		},
	}
}

// configValue makes a ConfigMap of eight of them weigh 1 KB.
const configValue = "vvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvv"

// configMap returns a ConfigMap of about 1 KB.
func configMap(name string, _ int, text string) []byte {
	out := fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"namespace":"default","labels":{"app":"bench"}},"data":{"text":%q`, name, text)
	for i := range 8 {
		out = fmt.Appendf(out, `,"setting-%02d":%q`, i, configValue)
	}
	return append(out, `}}`...)
}

// deployment returns a Deployment of two containers, of about 4 KB once it is stored.
func deployment(name string, i int, text string) []byte {
	template := pod("template", i, text)
	spec := template[bytes.Index(template, []byte(`"spec":{`))+len(`"spec":`) : len(template)-1]
	if name == `%s` { // a configuration: the number is the environment's
		name, spec = `%s`, bytes.Replace(spec, []byte(`"value":"info"`), []byte(`"value":"info-%[2]d"`), 1)
	}
	return fmt.Appendf(nil, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"%s","namespace":"default","labels":{"app":"bench"}},`+
		`"spec":{"replicas":3,"selector":{"matchLabels":{"app":"bench"}},"template":{"metadata":{"labels":{"app":"bench"}},"spec":%s}}}`, name, spec)
}
