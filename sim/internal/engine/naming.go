// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/steer-dev/steer/sim/internal/plan"
)

// target is what a request is about.
type target struct {
	group, resource, subresource string
	namespace, name              string
	verb                         string // empty for reads
}

// targetOf reads the path and the method of a request; it reports false for what is not
// about objects.
func targetOf(r *http.Request) (t target, ok bool) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case len(parts) > 2 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		t.group, parts = parts[1], parts[3:]
	default:
		return t, false
	}
	if len(parts) > 2 && parts[0] == "namespaces" && (t.group != "" || parts[2] != "status" && parts[2] != "finalize") {
		t.namespace, parts = parts[1], parts[2:]
	}
	t.resource = parts[0]
	if len(parts) > 1 {
		t.name = parts[1]
	}
	if len(parts) > 2 {
		t.subresource = strings.Join(parts[2:], "/")
	}
	if r.URL.Query().Get("dryRun") == "" {
		t.verb = verbOf(r, t.name)
	}
	return t, true
}

func verbOf(r *http.Request, name string) string {
	switch r.Method {
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		if strings.HasPrefix(r.Header.Get("Content-Type"), "application/apply-patch") {
			return "apply"
		}
		return "patch"
	case http.MethodDelete:
		if name == "" {
			return "deletecollection"
		}
		return "delete"
	}
	return ""
}

// breaks reports whether faults are put at a write. They are not at what an operator does
// beside its work: leases, events, questions about rights and tokens. A crash at one of
// those is one at the write of its work before it.
func (t target) breaks() bool {
	switch {
	case t.verb == "", t.resource == "events", t.resource == "leases":
		return false
	case t.group == "authorization.k8s.io", t.group == "authentication.k8s.io":
		return false
	}
	return true
}

// named is the metadata that a body says of its object.
type named struct {
	Name         string `json:"name"`
	Namespace    string `json:"namespace"`
	GenerateName string `json:"generateName"`
}

// protobufPrefix begins a body in protobuf.
const protobufPrefix = "k8s\x00"

// namedIn reads it from JSON, or from the protobuf of a built-in kind, whose first field is
// the metadata.
func namedIn(body []byte) named {
	if rest, ok := strings.CutPrefix(string(body), protobufPrefix); ok {
		var envelope runtime.Unknown
		var object metav1.PartialObjectMetadata
		if envelope.Unmarshal([]byte(rest)) != nil || object.Unmarshal(envelope.Raw) != nil {
			return named{}
		}
		return named{object.Name, object.Namespace, object.GenerateName}
	}
	var object struct {
		Metadata named `json:"metadata"`
	}
	if json.Unmarshal(body, &object) != nil {
		return named{}
	}
	return object.Metadata
}

// namer names the writes of one run. It is for one goroutine at a time.
type namer struct {
	names     plan.Names
	generated map[string]int // how many names were made, by generateName
	counter   plan.Counter
	kind      func(group, resource string) string
}

// write returns the name of a write before it is done. The body is that of the request.
func (n *namer) write(actor string, t target, body []byte) plan.Write {
	w := plan.Write{
		Actor: actor, Verb: t.verb, Group: t.group, Kind: n.kind(t.group, t.resource),
		Namespace: n.names.Canonical(t.namespace), Name: n.names.Canonical(t.name), SubResource: t.subresource,
	}
	if w.Kind == "" {
		w.Kind = t.resource // the request fails
	}
	if t.verb == "create" && t.name == "" {
		switch said := namedIn(body); {
		case said.Name != "":
			w.Name = n.names.Canonical(said.Name)
		case said.GenerateName != "":
			// The name that the server's will have once it is known.
			w.Name = generatedName(n.names.Canonical(said.GenerateName), n.generated[said.GenerateName]+1)
		default:
			w.Name = "?"
		}
	}
	return n.counter.Next(w)
}

// done notes the name that the server made.
func (n *namer) done(t target, body, answer []byte) {
	said := namedIn(body)
	if t.verb != "create" || t.name != "" || said.Name != "" || said.GenerateName == "" {
		return
	}
	if made := namedIn(answer); made.Name != "" {
		n.generated[said.GenerateName]++
		n.names.Generated(said.GenerateName, made.Name)
	}
}

func generatedName(generateName string, n int) string {
	return generateName + "~" + strconv.Itoa(n)
}
