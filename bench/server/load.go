// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

const (
	collection = "/apis/bench.example.com/v1/namespaces/default/items"
	jsonType   = "application/json"
	mergeType  = "application/merge-patch+json"
	applyType  = "application/apply-patch+yaml"
)

// definition is the resource of all loads: status, a few typed fields, room
// for a payload.
const definition = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
"metadata":{"name":"items.bench.example.com"},"spec":{"group":"bench.example.com","scope":"Namespaced",
"names":{"plural":"items","singular":"item","kind":"Item"},"versions":[{"name":"v1","served":true,"storage":true,
"subresources":{"status":{}},"schema":{"openAPIV3Schema":{"type":"object","properties":{
"spec":{"type":"object","properties":{"replicas":{"type":"integer"},"image":{"type":"string"},
"payload":{"type":"array","items":{"type":"object","properties":{"name":{"type":"string"},"value":{"type":"string"}}}}}},
"status":{"type":"object","properties":{"ready":{"type":"integer"},"phase":{"type":"string"}}}}}}}]}}`

// value is one value of the payload.
const value = `","value":"vvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvv"}`

// payload makes an object weigh 2 KB. It is spelt out so that the load generator
// spends no time on it.
const payload = `{"name":"setting-00` + value + `,{"name":"setting-01` + value + `,{"name":"setting-02` + value + `,{"name":"setting-03` + value +
	`,{"name":"setting-04` + value + `,{"name":"setting-05` + value + `,{"name":"setting-06` + value + `,{"name":"setting-07` + value +
	`,{"name":"setting-08` + value + `,{"name":"setting-09` + value + `,{"name":"setting-10` + value + `,{"name":"setting-11` + value +
	`,{"name":"setting-12` + value + `,{"name":"setting-13` + value + `,{"name":"setting-14` + value + `,{"name":"setting-15` + value

// smallPayload makes an object weigh 1 KB once the server has completed it.
const smallPayload = `{"name":"setting-00` + value + `,{"name":"setting-01` + value + `,{"name":"setting-02` + value

// object returns an item of about 2 KB.
func object(name string, replicas int) []byte {
	out := make([]byte, 0, 2560)
	out = append(out, `{"apiVersion":"bench.example.com/v1","kind":"Item","metadata":{"name":"`...)
	out = append(out, name...)
	out = append(out, `","namespace":"default","labels":{"app":"bench","shard":"s`...)
	out = strconv.AppendInt(out, int64(replicas%10), 10)
	out = append(out, `"}},"spec":{"replicas":`...)
	out = strconv.AppendInt(out, int64(replicas), 10)
	return append(out, `,"image":"registry.example.com/app:1.2.3","payload":[`+payload+`]}}`...)
}

// load is what a crowd writes and reads.
type load struct {
	collection string
	// accept is the media type that is asked for, split what parts a watch in it.
	accept string
	split  bufio.SplitFunc
	// object returns object i with a text in it.
	object func(name string, i int, text string) []byte
}

// items is the load of custom resources.
func items() load {
	return load{collection, jsonType, bufio.ScanLines, func(name string, i int, text string) []byte {
		return bytes.Replace(object(name, i), []byte(`"image":"`), []byte(`"image":"`+text), 1)
	}}
}

// smallItems is the load of custom resources of 1 KB as they are stored.
func smallItems() load {
	l := items()
	large := l.object
	l.object = func(name string, i int, text string) []byte {
		return bytes.Replace(large(name, i, text), []byte(payload), []byte(smallPayload), 1)
	}
	return l
}

// outcome is what a load did.
type outcome struct {
	rate float64
	// latencies are sorted.
	latencies []time.Duration
}

func (o outcome) sort() { slices.Sort(o.latencies) }

func (o outcome) percentile(p float64) float64 {
	if len(o.latencies) == 0 {
		return 0
	}
	return o.latencies[min(int(p*float64(len(o.latencies))), len(o.latencies)-1)].Seconds() * 1000
}

// drive spreads n calls of work over the clients and waits for all of them.
func drive(ctx context.Context, clients []*Client, n int, work func(ctx context.Context, c *Client, i int) error) (outcome, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	latencies := make([]time.Duration, n)
	var next atomic.Int64
	var group sync.WaitGroup
	begin := time.Now()
	for _, client := range clients {
		group.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				start := time.Now()
				if err := work(ctx, client, i); err != nil {
					cancel(err)
					return
				}
				latencies[i] = time.Since(start)
			}
		})
	}
	group.Wait()
	if err := context.Cause(ctx); err != nil {
		return outcome{}, err
	}
	rate := float64(n) / time.Since(begin).Seconds()
	slices.Sort(latencies)
	return outcome{rate, latencies}, nil
}

// prepare defines the resource and returns how long it took until the first
// object was created.
func prepare(ctx context.Context, c *Client) (time.Duration, error) {
	begin := time.Now()
	if _, err := c.Do(ctx, http.MethodPost, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", jsonType, []byte(definition)); err != nil {
		return 0, err
	}
	for {
		_, err := c.Do(ctx, http.MethodPost, collection, jsonType, object("first", 1))
		if err == nil {
			return time.Since(begin), nil
		}
		if time.Since(begin) > 30*time.Second {
			return 0, fmt.Errorf("the custom resource is not served: %w", err)
		}
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// version returns the resource version of an object or list.
func version(data []byte) (string, error) {
	var head struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
	}
	err := json.Unmarshal(data, &head)
	return head.Metadata.ResourceVersion, err
}

// Seed defines the resource of the loads and creates so many objects, named
// item-000000 and so on.
func Seed(ctx context.Context, instance *Instance, objects int) error {
	clients, done := instance.NewClients(8)
	defer done()
	if _, err := prepare(ctx, clients[0]); err != nil {
		return err
	}
	_, err := drive(ctx, clients, objects, func(ctx context.Context, c *Client, i int) error {
		return send(ctx, c, http.MethodPost, collection, jsonType, object(name("item", i), i))
	})
	if err != nil {
		return err
	}
	return send(ctx, clients[0], http.MethodDelete, collection+"/first", "", nil)
}
