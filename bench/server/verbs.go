// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
)

// verb is one kind of request on object i of a load.
type verb struct {
	name string
	// share of the objects that are touched: slow verbs touch fewer.
	share float64
	work  func(ctx context.Context, c *Client, prefix string, i int) error
}

// verbs in the order in which they run: each finds what those before it left.
func verbs() []verb {
	return []verb{
		{"create", 1, func(ctx context.Context, c *Client, prefix string, i int) error {
			return send(ctx, c, http.MethodPost, collection, jsonType, object(name(prefix, i), i))
		}},
		{"get", 1, func(ctx context.Context, c *Client, prefix string, i int) error {
			return send(ctx, c, http.MethodGet, path(prefix, i), "", nil)
		}},
		{"update", 0.5, update},
		{"patch", 0.5, func(ctx context.Context, c *Client, prefix string, i int) error {
			return send(ctx, c, http.MethodPatch, path(prefix, i), mergeType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, i+2000))
		}},
		{"status", 0.5, func(ctx context.Context, c *Client, prefix string, i int) error {
			return send(ctx, c, http.MethodPatch, path(prefix, i)+"/status", mergeType, fmt.Appendf(nil, `{"status":{"ready":%d,"phase":"Ready"}}`, i))
		}},
		{"apply", 0.5, func(ctx context.Context, c *Client, prefix string, i int) error {
			body := fmt.Appendf(nil, `{"apiVersion":"bench.example.com/v1","kind":"Item","metadata":{"name":%q},"spec":{"image":"registry.example.com/app:2.%d"}}`, name(prefix, i), i)
			return send(ctx, c, http.MethodPatch, path(prefix, i)+"?fieldManager=bench&force=true", applyType, body)
		}},
		{"delete", 1, func(ctx context.Context, c *Client, prefix string, i int) error {
			return send(ctx, c, http.MethodDelete, path(prefix, i), "", nil)
		}},
	}
}

func name(prefix string, i int) string { return fmt.Sprintf("%s-%06d", prefix, i) }

func path(prefix string, i int) string { return collection + "/" + name(prefix, i) }

func send(ctx context.Context, c *Client, method, path, kind string, body []byte) error {
	_, err := c.Do(ctx, method, path, kind, body)
	return err
}

// update reads an object and writes it back changed, with its version: two
// requests, of which the second is the one that clients wait for.
func update(ctx context.Context, c *Client, prefix string, i int) error {
	data, err := c.Do(ctx, http.MethodGet, path(prefix, i), "", nil)
	if err != nil {
		return err
	}
	changed := bytes.Replace(data, fmt.Appendf(nil, `"replicas":%d`, i), fmt.Appendf(nil, `"replicas":%d`, i+1000), 1)
	return send(ctx, c, http.MethodPut, path(prefix, i), jsonType, changed)
}
