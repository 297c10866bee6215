// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/steer-dev/steer/bench/report"
)

// collectionOfV2 has the items in the version that a webhook converts to.
var collectionOfV2 = strings.Replace(collection, "/v1/", "/v2/", 1)

func firstConversion(objects int) string {
	return fmt.Sprintf("first list of %d through a conversion webhook", objects)
}

func laterConversion(objects int) string {
	return fmt.Sprintf("another list of %d through a conversion webhook", objects)
}

// convertible is the patch that gives the definition a second version, which a webhook converts.
func convertible(h *hook) []byte {
	begin := strings.Index(definition, `{"name":"v1"`)
	v1 := definition[begin : len(definition)-len("]}}")]
	v2 := strings.Replace(strings.Replace(v1, `"name":"v1"`, `"name":"v2"`, 1), `"storage":true`, `"storage":false`, 1)
	return fmt.Appendf(nil, `{"spec":{"versions":[%s,%s],"conversion":{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1"],"clientConfig":{"url":%q,"caBundle":%q}}}}}`,
		v1, v2, h.url+convertPath, h.bundle)
}

// measureConversion stores objects in one version and lists them in another one, which the
// resource gets afterwards: neither side has converted them before.
func measureConversion(ctx context.Context, add adder, instance *Instance, clients []*Client, h *hook, objects int) error {
	if _, err := drive(ctx, clients, objects, func(ctx context.Context, c *Client, i int) error {
		return send(ctx, c, http.MethodPost, collection, jsonType, object(name("converted", i), i))
	}); err != nil {
		return err
	}
	if err := send(ctx, clients[0], http.MethodPatch, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/items.bench.example.com", mergeType, convertible(h)); err != nil {
		return err
	}
	before := h.calls.Load()
	if err := measureConverted(ctx, add, instance, clients[:1], firstConversion(objects), 1); err != nil {
		return err
	}
	add(firstConversion(objects)+": reviews", "", report.Lower, float64(h.calls.Load()-before))
	return measureConverted(ctx, add, instance, clients[:1], laterConversion(objects), 5)
}

// measureConverted lists all items in the other version.
func measureConverted(ctx context.Context, add adder, instance *Instance, clients []*Client, what string, lists int) error {
	before := use(instance.PIDs)
	result, err := drive(ctx, clients, lists, func(ctx context.Context, c *Client, _ int) error {
		return listed(ctx, c, collectionOfV2)
	})
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	add(what+": wall", "ms", report.Lower, result.percentile(0.5))
	add(what+": server CPU", "ms", report.Lower, float64((use(instance.PIDs).cpu-before.cpu).Microseconds())/1000/float64(lists))
	return nil
}

// listed lists a collection, again until it is there: kube-apiserver answers 404 while it learns
// of a version, and 429 while it reads the objects of one.
func listed(ctx context.Context, c *Client, collection string) error {
	limit := time.Now().Add(2 * exchangeTimeout)
	for {
		_, err := c.Drain(ctx, collection)
		if err == nil || time.Now().After(limit) {
			return err
		}
		if err := leave(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}
