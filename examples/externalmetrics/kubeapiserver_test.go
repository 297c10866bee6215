// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"io"
	"net/http"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/steer-dev/steer/internal/kubeapiserver"
)

// TestMetricsBehindKubeAPIServer reads each metric as the controller of autoscalers does.
func TestMetricsBehindKubeAPIServer(t *testing.T) {
	t.Parallel()
	config := kubeapiserver.Server(t, kubeapiserver.FrontProxyFlags(t)...)
	web, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	c := serve(t, config)
	c.create("{apiVersion: queues.example.com/v1, kind: Queue, metadata: {name: orders}, spec: {length: 8}}")
	for _, name := range []string{"a", "b"} {
		c.create("{apiVersion: v1, kind: Pod, metadata: {name: " + name + ", labels: {app: orders}}, spec: {containers: [{name: c, image: i}]}}")
	}
	const (
		external = "/apis/external.metrics.k8s.io/v1beta1/namespaces/default/queue-length"
		custom   = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/default/"
	)
	for path, want := range map[string][]string{
		external + "?labelSelector=queue%3Dorders":                                                  {"8"},
		external + "?labelSelector=queue%3Dothers":                                                  {},
		custom + "services/orders/queue-length":                                                     {"8"},
		custom + "pods/*/queue-share?labelSelector=app%3Dorders&metricLabelSelector=queue%3Dorders": {"4", "4"},
	} {
		q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, config.Host+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := web.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close() // it was only read
		var list struct{ Items []struct{ Value string } }
		if err != nil || answer.StatusCode != http.StatusOK || json.Unmarshal(text, &list) != nil {
			t.Errorf("%s: %d %s, %v", path, answer.StatusCode, text, err)
			continue
		}
		got := []string{}
		for _, item := range list.Items {
			got = append(got, item.Value)
		}
		if len(got) != len(want) || len(want) > 0 && got[0] != want[0] {
			t.Errorf("%s: the values are %q, want %q", path, got, want)
		}
	}
}
