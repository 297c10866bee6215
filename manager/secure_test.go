// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/client/interceptor"
	"github.com/steer-dev/steer/controller"
	"github.com/steer-dev/steer/manager/internal/guard"
	"github.com/steer-dev/steer/trace"
)

// reviewer answers reviews like an API server that lets every token through.
func reviewer(asked *atomic.Int32) client.Client {
	return interceptor.New(nil, interceptor.Funcs{
		Create: func(_ context.Context, _ client.Client, obj client.Object, _ ...client.WriteOption) error {
			asked.Add(1)
			return json.Unmarshal([]byte(`{"status": {"authenticated": true, "allowed": true}}`), obj)
		},
	})
}

func TestAWrongCertificatePathSaysWhatToDo(t *testing.T) {
	t.Parallel()
	_, err := New(&rest.Config{Host: "http://127.0.0.1:1"}, Options{
		Name: "test", Scheme: runtime.NewScheme(), Log: slog.New(slog.DiscardHandler),
		Metrics: Metrics{Address: "127.0.0.1:0", Secure: true, TLS: TLS{Dir: t.TempDir()}},
	})
	if err == nil || !strings.Contains(err.Error(), "--metrics-cert-path") {
		t.Errorf("got %v", err)
	}
}

// startServers serves what the options of a manager ask for.
func startServers(t *testing.T, m *Manager) {
	t.Helper()
	if err := m.servers.start(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.servers.stop)
}

func TestASecureMetricsServerSpeaksTLSAndAsksWhoScrapes(t *testing.T) {
	t.Parallel()
	m := newManager(t, func(o *Options) { o.Metrics = Metrics{Address: "127.0.0.1:0", Secure: true} })
	var asked atomic.Int32
	m.servers.guard = func(next http.Handler) http.Handler { return guard.New(reviewer(&asked), next, m.Log()) }
	startServers(t, m)
	secure := &http.Client{Transport: &http.Transport{
		ForceAttemptHTTP2: true,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, // self-signed, on loopback, in a test
	}}
	defer secure.CloseIdleConnections()
	url := "https://" + m.servers.scraping.String() + "/metrics"
	for token, want := range map[string]int{"": 401, "scraper": 200} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		resp, err := secure.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != want || resp.ProtoMajor != 1 {
			t.Errorf("token %q: %d over HTTP/%d, want %d over HTTP/1", token, resp.StatusCode, resp.ProtoMajor, want)
		}
	}
	if n := asked.Load(); n != 2 {
		t.Errorf("%d reviews, want that of the token and that of the access", n)
	}
}

// TestServersAreNotDelayedByASlowScraper opens more scrapes than may run at once and reads
// none of their answers.
func TestServersAreNotDelayedByASlowScraper(t *testing.T) {
	t.Parallel()
	blocked := make(chan struct{})
	entered := make(chan struct{}, 3*maxScrapes)
	m := newManager(t, func(o *Options) { o.Metrics.Address = "127.0.0.1:0" })
	m.Registry().MustRegister(blockingCollector{entered, blocked})
	startServers(t, m)
	dial := func() net.Conn {
		c, err := net.Dial("tcp", m.servers.scraping.String()) // loopback, in a test
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		if _, err := io.WriteString(c, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		return c
	}
	for range maxScrapes {
		dial()
		<-entered
	}
	resp, err := http.ReadResponse(bufio.NewReader(dial()), nil)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusServiceUnavailable || !strings.Contains(string(body), "try again later") {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
	close(blocked)
	begun := time.Now()
	m.servers.stop()
	if took := time.Since(begun); took > time.Minute {
		t.Errorf("the servers took %s to stop", took)
	}
}

// TestServersEndAnswersThatAreNotRead has a scraper that asks and never reads: the
// handler must not write to it for ever.
func TestServersEndAnswersThatAreNotRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		failed := make(chan time.Duration, 1)
		m := newManager(t, func(o *Options) {
			o.Metrics.Address = "in memory"
			o.Metrics.Handlers = map[string]http.Handler{"/endless": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				begun := time.Now()
				for page := make([]byte, 64<<10); ; {
					if _, err := w.Write(page); err != nil {
						failed <- time.Since(begun)
						return
					}
				}
			})}
		})
		server := m.servers.metricsServer(m)
		scraper, conn := net.Pipe()
		listener := &oneConnection{conn: make(chan net.Conn, 1), closed: make(chan struct{})}
		listener.conn <- conn
		var serving sync.WaitGroup
		serving.Go(func() { _ = server.Serve(listener) }) // ends with Close
		defer serving.Wait()
		defer server.Close()
		defer scraper.Close()
		if _, err := io.WriteString(scraper, "GET /endless HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		select {
		case took := <-failed:
			if took > scrapeTimeout {
				t.Errorf("the answer ended after %s, want %s", took, scrapeTimeout)
			}
		case <-time.After(time.Hour):
			t.Error("an answer that is not read is under way after an hour")
		}
	})
}

// oneConnection is a listener in memory.
type oneConnection struct {
	conn   chan net.Conn
	closed chan struct{}
	once   sync.Once
}

// Accept implements net.Listener.
func (l *oneConnection) Accept() (net.Conn, error) {
	select {
	case c := <-l.conn:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *oneConnection) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr implements net.Listener.
func (l *oneConnection) Addr() net.Addr { return &net.UnixAddr{Name: "memory"} }

func TestDebuggingShowsReconcilesAsJSONLinesAndProfiles(t *testing.T) {
	t.Parallel()
	m := newManager(t, func(o *Options) { o.DebugAddress = "127.0.0.1:0" })
	reconcile := func() {
		var a trace.Active
		m.records.Recorder.Begin(&a, trace.Start{Controller: "crontab"})
		a.End(trace.End{Outcome: trace.Done})
	}
	reconcile()
	startServers(t, m)
	get := func(path string) *http.Response {
		t.Helper()
		resp, err := http.Get("http://" + m.servers.debugging.String() + path) // loopback, in a test
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = resp.Body.Close() })
		if resp.StatusCode != http.StatusOK {
			t.Errorf("%s: %s", path, resp.Status)
		}
		return resp
	}
	get("/debug/pprof/")
	for _, path := range []string{"/debug/reconciles", "/debug/reconciles?follow"} {
		resp := get(path)
		if strings.HasSuffix(path, "follow") {
			reconcile()
		}
		line, err := bufio.NewReader(resp.Body).ReadBytes('\n')
		if err != nil {
			t.Fatal(err)
		}
		var r trace.Record
		if err := json.Unmarshal(line, &r); err != nil || r.Controller != "crontab" || r.Outcome != trace.Done {
			t.Errorf("%s: %v %s", path, err, line)
		}
	}
	var running trace.Active
	m.records.Recorder.Begin(&running, trace.Start{Controller: "crontab", Object: trace.Object{Kind: "CronTab", Name: "a"}, Began: time.Now(), Goroutine: trace.Goroutine()})
	defer running.End(trace.End{})
	var r trace.Record
	if err := json.NewDecoder(get("/debug/reconciles?running").Body).Decode(&r); err != nil || r.Name != "a" || r.Outcome != trace.Running ||
		!strings.Contains(r.Stack, "TestDebuggingShowsReconcilesAsJSONLinesAndProfiles") {
		t.Errorf("what runs: %v, %+v", err, r)
	}
	add := controller.AddRequests(m, "jobs", controller.Func[string](func(context.Context, string) (controller.Result, error) { return controller.Done(), nil }),
		controller.Typed(controller.From(controller.Channel(make(chan string)))))
	var q trace.Queued
	if err := json.NewDecoder(get("/debug/reconciles?queued").Body).Decode(&q); err != nil || add != nil || q.Controller != "jobs" {
		t.Errorf("what waits: %v, %v, %+v", add, err, q)
	}
}

// blockingCollector reports that it is asked and answers when it is let.
type blockingCollector struct {
	entered chan<- struct{}
	blocked <-chan struct{}
}

func (b blockingCollector) Describe(to chan<- *prometheus.Desc) { to <- blockedDesc() }

func (b blockingCollector) Collect(to chan<- prometheus.Metric) {
	b.entered <- struct{}{}
	<-b.blocked
	to <- prometheus.MustNewConstMetric(blockedDesc(), prometheus.GaugeValue, 1)
}

func blockedDesc() *prometheus.Desc { return prometheus.NewDesc("blocked", "x", nil, nil) }
