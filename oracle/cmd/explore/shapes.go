// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"

	"github.com/steer-dev/steer/apiserver/wiretest"
)

// shape is a schema of OpenAPI v2.
type shape struct {
	Ref        string           `json:"$ref"`
	Type       string           `json:"type"`
	Format     string           `json:"format"`
	Properties map[string]shape `json:"properties"`
	Items      *shape           `json:"items"`
	Values     *shape           `json:"additionalProperties"`
	Kinds      []struct {
		Group   string `json:"group"`
		Version string `json:"version"`
		Kind    string `json:"kind"`
	} `json:"x-kubernetes-group-version-kind"`

	// names are the sorted properties.
	names []string
}

// shapes are the types of kube-apiserver.
type shapes struct {
	definitions map[string]shape
	kinds       map[string]string
}

func loadShapes(ctx context.Context, from *wiretest.Target) (*shapes, error) {
	question, err := http.NewRequestWithContext(ctx, http.MethodGet, from.Base+"/openapi/v2", nil)
	if err != nil {
		return nil, err
	}
	question.Header.Set("Authorization", "Bearer "+from.Token)
	question.Header.Set("Accept", "application/json")
	answer, err := from.Client.Do(question)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, err
	}
	var document struct {
		Definitions map[string]shape `json:"definitions"`
	}
	if err := json.Unmarshal(body, &document); err != nil {
		return nil, fmt.Errorf("read /openapi/v2 (%s): %w", answer.Status, err)
	}
	s := &shapes{definitions: document.Definitions, kinds: map[string]string{}}
	for name, d := range document.Definitions {
		for property := range d.Properties {
			d.names = append(d.names, property)
		}
		slices.Sort(d.names)
		s.definitions[name] = d
		for _, k := range d.Kinds {
			s.kinds[strings.TrimPrefix(k.Group+"/"+k.Version+"/"+k.Kind, "/")] = name
		}
	}
	return s, nil
}

// of returns the shape of a kind, or nothing to go by.
func (s *shapes) of(gvk string) shape { return s.definitions[s.kinds[gvk]] }

// resolve follows references.
func (s *shapes) resolve(x shape) shape {
	for x.Ref != "" {
		x = s.definitions[strings.TrimPrefix(x.Ref, "#/definitions/")]
	}
	return x
}

// field is the shape of a field, an element or a value.
func (s *shapes) field(x shape, name string) shape {
	if p, known := x.Properties[name]; known {
		return s.resolve(p)
	}
	if x.Values != nil {
		return s.resolve(*x.Values)
	}
	return shape{}
}

var (
	words = []string{"", "a", "b", "default", "A", "a_b", "a.b", "x/y", "example.com/x", "-a", "a b", "/abs", "../up", "127.0.0.1", "10.0.0.7", "::1", "10.0.0.0/24",
		"1", "50%", "-5", "http", "TCP", "Always", "None", "kubernetes.io/x", "*", "é", strings.Repeat("a", 64), strings.Repeat("a", 254)}
	numbers  = []any{0, 1, 2, -1, 80, 100, 101, 3600, 65535, 65536, 1 << 31, 1.5}
	times    = []any{"2020-01-01T00:00:00Z", "2040-01-01T00:00:00.5Z", "yesterday", ""}
	amounts  = []any{"1", "500m", "1Gi", "-1", "0", "x", "1.0001", 3}
	pathless = []string{"apiVersion", "kind", "managedFields", "resourceVersion", "uid", "creationTimestamp", "selfLink"}
)

// make returns a value that the shape more or less allows.
func (s *shapes) make(random *rand.Rand, x shape, name string, pool map[string][]any, depth int) any {
	ref := x.Ref
	x = s.resolve(x)
	if values := pool[name]; len(values) > 0 && random.IntN(2) == 0 {
		value := clone(values[random.IntN(len(values))])
		if _, list := value.([]any); x.Type == "array" && !list {
			return []any{value}
		}
		return value
	}
	switch {
	case strings.HasSuffix(ref, "resource.Quantity"):
		return pick(random, amounts)
	case x.Format == "date-time":
		return pick(random, times)
	case x.Format == "int-or-string":
		return pick(random, []any{0, 1, -1, 101, "0%", "50%", "101%", "http", 65536})
	case x.Format == "byte":
		return pick(random, []any{"", "YQ==", "%%", "LS0tLS1CRUdJTiBYLS0tLS0K"})
	}
	switch x.Type {
	case "string":
		return words[random.IntN(len(words))]
	case "integer", "number":
		return pick(random, numbers)
	case "boolean":
		return random.IntN(2) == 0
	case "array":
		list := []any{}
		for range random.IntN(3) {
			if x.Items != nil && depth > 0 {
				list = append(list, s.make(random, *x.Items, name, pool, depth-1))
			}
		}
		return list
	}
	object := map[string]any{}
	if x.Values != nil {
		for range random.IntN(3) {
			object[words[random.IntN(len(words))]] = s.make(random, *x.Values, "", pool, depth-1)
		}
		return object
	}
	for range random.IntN(4) {
		if len(x.names) > 0 && depth > 0 {
			key := x.names[random.IntN(len(x.names))]
			object[key] = s.make(random, x.Properties[key], key, pool, depth-1)
		}
	}
	return object
}

func pick(random *rand.Rand, from []any) any { return from[random.IntN(len(from))] }

func clone(value any) any {
	switch value := value.(type) {
	case map[string]any:
		copied := make(map[string]any, len(value))
		for k, v := range value {
			copied[k] = clone(v)
		}
		return copied
	case []any:
		copied := make([]any, len(value))
		for i, v := range value {
			copied[i] = clone(v)
		}
		return copied
	}
	return value
}
