// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/storage"
)

// Creation is a new object in the form in which the server stores what a request
// has created. It is for the objects that every cluster begins with: as requests
// they would be most of what a new plane costs.
type Creation struct {
	Key storage.Key
	// APIVersion and Kind of the object.
	APIVersion, Kind string
	// Namespace is empty for a cluster-scoped object.
	Namespace, Name string
	UID             types.UID
	At              time.Time
	// Generation is 0 for kinds that do not count it.
	Generation int
	// Labels and Annotations are JSON objects, Finalizers are a JSON array, or empty.
	Labels, Annotations, Finalizers string
	// Manager owns Fields, a JSON object; empty if none are owned.
	Manager, Fields string
	// Entries are further members of managedFields, each after a comma, or empty.
	Entries string
	// Content are the members after the metadata, or empty.
	Content string
}

// Write returns the write that creates the object.
func (c Creation) Write() storage.Write {
	at := strconv.Quote(c.At.UTC().Format(time.RFC3339))
	var b strings.Builder
	member := func(name, value string) { // value is JSON; "" leaves the member out
		if value != "" {
			b.WriteString(`"` + name + `":` + value + ",")
		}
	}
	text := func(s string) string {
		if s == "" {
			return ""
		}
		return strconv.Quote(s) // names and versions need no other escapes than Go's
	}
	b.WriteString(`{"kind":"` + c.Kind + `","apiVersion":"` + c.APIVersion + `","metadata":{`)
	member("name", text(c.Name))
	member("namespace", text(c.Namespace))
	member("uid", text(string(c.UID)))
	b.WriteString(`"resourceVersion":"`)
	stamp := b.Len()
	b.WriteString(`",`)
	if c.Generation > 0 {
		member("generation", strconv.Itoa(c.Generation))
	}
	b.WriteString(`"creationTimestamp":` + at)
	if c.Labels != "" {
		b.WriteString(`,"labels":` + c.Labels)
	}
	if c.Annotations != "" {
		b.WriteString(`,"annotations":` + c.Annotations)
	}
	if c.Finalizers != "" {
		b.WriteString(`,"finalizers":` + c.Finalizers)
	}
	if c.Fields != "" {
		b.WriteString(`,"managedFields":[{"manager":"` + c.Manager + `","operation":"Update","apiVersion":"` + c.APIVersion +
			`","time":` + at + `,"fieldsType":"FieldsV1","fieldsV1":` + c.Fields + `}` + c.Entries + `]`)
	}
	b.WriteString("}")
	if c.Content != "" {
		b.WriteString("," + c.Content)
	}
	b.WriteString("}")
	return storage.Write{Key: c.Key, Value: []byte(b.String()), Stamp: stamp, Expect: storage.Absent}
}
