// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/steer-dev/steer/cache"
	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/client/wire"
	"github.com/steer-dev/steer/manager/internal/metrics"
)

func TestAttemptsAreMeasured(t *testing.T) {
	t.Parallel()
	m := metrics.New()
	for _, a := range []wire.Attempt{
		{Verb: "get", Method: "GET", Host: "a", Code: "200", Took: time.Second, RequestBytes: 1, ResponseBytes: 300},
		{Verb: "get", Method: "GET", Host: "a", Code: "200", Took: 2 * time.Second, ResponseBytes: -1},
		{Verb: "create", Method: "POST", Host: "a", Code: "429", Waited: time.Minute, RequestBytes: 70, ResponseBytes: 0},
		{Verb: "create", Method: "POST", Host: "a", Code: "201", Retry: 1, RequestBytes: 70, ResponseBytes: 80},
	} {
		m.Attempt(a)
	}
	expect(t, m, "rest_client_requests_total", "code=200,host=a,method=GET 2", "code=201,host=a,method=POST 1", "code=429,host=a,method=POST 1")
	expect(t, m, "rest_client_request_duration_seconds", "host=a,verb=create 2 0", "host=a,verb=get 2 3")
	expect(t, m, "rest_client_rate_limiter_duration_seconds", "host=a,verb=create 1 60")
	expect(t, m, "rest_client_request_size_bytes", "host=a,verb=create 2 140", "host=a,verb=get 2 1")
	expect(t, m, "rest_client_response_size_bytes", "host=a,verb=create 2 80", "host=a,verb=get 1 300")
	expect(t, m, "rest_client_request_retries_total", "code=201,host=a,verb=create 1")
}

func TestInformersAreMeasuredByResourceAndForm(t *testing.T) {
	t.Parallel()
	m := metrics.New()
	pods := cache.MetricKind{Version: "v1", Resource: "pods"}
	metadata := pods
	metadata.Informer = "metadata"
	m.QueuedItems(pods, 3)
	m.QueuedItems(pods, 2)
	m.QueuedItems(metadata, 7)
	m.StoreResourceVersion(pods, 5_123_456_789_012_345)
	m.Processed(pods, 10, time.Second)
	m.UndeclaredRead(pods)
	m.UndeclaredRead(pods)
	expect(t, m, "informer_queued_items",
		"group=,name=pods,resource=pods,version=v1 2", "group=,name=pods-metadata,resource=pods,version=v1 7")
	expect(t, m, "informer_store_resource_version", "group=,name=pods,resource=pods,version=v1 1.23456789012345e+14")
	expect(t, m, "informer_processing_latency_seconds", "group=,name=pods,resource=pods,version=v1 1 1")
	expect(t, m, "steer_cache_undeclared_reads_total", "group=,resource=pods,version=v1 2")
}

func TestConsistentReadsAreMeasuredByResult(t *testing.T) {
	t.Parallel()
	m := metrics.New()
	m.ConsistentRead(client.VerbGet, time.Second, nil)
	m.ConsistentRead(client.VerbList, 2*time.Second, errors.New("too late"))
	expect(t, m, "controller_runtime_client_consistency_wait_duration_seconds", "operation=get,result=success 1 1", "operation=list,result=error 1 2")
}

func TestLeadershipIsOneOrZero(t *testing.T) {
	t.Parallel()
	m := metrics.New()
	m.Leads("lease", true)
	m.SlowPath.WithLabelValues("lease").Inc()
	expect(t, m, "leader_election_master_status", "name=lease 1")
	expect(t, m, "leader_election_slowpath_total", "name=lease 1")
	m.Leads("lease", false)
	expect(t, m, "leader_election_master_status")
}

func TestManagersHaveMetricsOfTheirOwn(t *testing.T) {
	t.Parallel()
	one, other := metrics.New(), metrics.New()
	one.CertificateRead(nil)
	expect(t, one, "certwatcher_read_certificate_total", "1")
	expect(t, other, "certwatcher_read_certificate_total")
}

func TestHTTPClientNamesItsProgramAndMeasuresNameResolution(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.UserAgent()) }))
	defer server.Close()
	m := metrics.New()
	cfg := &rest.Config{Host: server.URL}
	c, err := m.HTTPClient(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseIdleConnections()
	if cfg.UserAgent != "" || cfg.Dial != nil {
		t.Error("the config of the caller is changed")
	}
	get := func(url string) string {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := c.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(body)
	}
	if got := get(server.URL); got != rest.DefaultKubernetesUserAgent() {
		t.Errorf("the user agent is %q", got)
	}
	if n := resolutions(t, m); n != 0 {
		t.Errorf("an address is resolved %d times", n)
	}
	get(strings.Replace(server.URL, "127.0.0.1", "localhost", 1))
	if n := resolutions(t, m); n != 1 {
		t.Errorf("a name is resolved %d times for one connection", n)
	}
}

// resolutions counts the measured resolutions of names.
func resolutions(t *testing.T, m *metrics.Metrics) (n uint64) {
	t.Helper()
	families, err := m.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "rest_client_dns_resolution_duration_seconds" {
			for _, s := range f.GetMetric() {
				n += s.GetHistogram().GetSampleCount()
			}
		}
	}
	return n
}
