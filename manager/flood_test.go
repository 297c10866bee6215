// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/steer-dev/steer/manager"
	"github.com/steer-dev/steer/webhook"
)

// burdened passes requests on. Reviews of tokens take two seconds, and it counts the renewals
// of leases.
type burdened struct {
	next     http.RoundTripper
	renewals atomic.Int64
}

func (b *burdened) RoundTrip(r *http.Request) (*http.Response, error) {
	switch {
	case strings.HasSuffix(r.URL.Path, "/tokenreviews"):
		select {
		case <-time.After(2 * time.Second):
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	case strings.Contains(r.URL.Path, "/leases/") && r.Method != http.MethodGet:
		defer b.renewals.Add(1)
	}
	return b.next.RoundTrip(r)
}

// endless is the body of a review of which the end never comes.
type endless struct {
	left int
	done <-chan struct{}
}

func (e *endless) Read(p []byte) (int, error) {
	if e.left == 0 {
		<-e.done
		return 0, io.ErrUnexpectedEOF
	}
	n := min(len(p), e.left)
	e.left -= n
	return n, nil
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestFloodsOfAnOperatorsPortsLeaveItsLeaseAndItsMemory floods the metrics with invented
// tokens and the webhooks with reviews, for a minute. The client of the manager may send one
// request a second. The test is not parallel, so that it measures nothing else.
func TestFloodsOfAnOperatorsPortsLeaveItsLeaseAndItsMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := newEnv(t, corev1.AddToScheme, coordinationv1.AddToScheme)
		cfg := rest.CopyConfig(env.Config)
		line := &burdened{next: cfg.Transport}
		cfg.Transport, cfg.QPS, cfg.Burst = line, 1, 1
		m := newOperator(t, cfg, manager.Options{
			Metrics:  manager.Metrics{Address: "127.0.0.1:0", Secure: true},
			Webhooks: webhook.Options{Address: "0"},
			Election: manager.Election{Enabled: true, Namespace: "default", Timing: quick},
		})
		allow := webhook.HandlerFunc(func(context.Context, *webhook.Request) webhook.Response { return webhook.Allowed() })
		if err := webhook.AddHandler(m, "/h", allow); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		elected, ended := make(chan struct{}), make(chan error, 1)
		go func() { ended <- manager.Elect(ctx, m, func() { close(elected) }) }()
		<-elected
		before, renewed := heap(), line.renewals.Load()

		scraped := manager.Scraped(m)
		flooding, calm := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for i := range 100 {
			all.Go(func() {
				for n := 0; flooding.Err() == nil; n++ {
					r := httptest.NewRequestWithContext(flooding, http.MethodGet, "/metrics", nil)
					r.Header.Set("Authorization", fmt.Sprint("Bearer invented-", i, "-", n))
					w := httptest.NewRecorder()
					if scraped.ServeHTTP(w, r); w.Code == http.StatusOK {
						t.Error("an invented token is let through")
					}
					time.Sleep(100 * time.Millisecond)
				}
			})
		}
		for i := range 40 {
			all.Go(func() {
				for flooding.Err() == nil {
					r := httptest.NewRequestWithContext(flooding, http.MethodPost, "/h", io.NopCloser(&endless{6 << 20, flooding.Done()}))
					r.ContentLength, r.RemoteAddr = 6<<20, fmt.Sprintf("192.0.2.%d:1024", i)
					r.Header.Set("Content-Type", "application/json")
					m.Webhooks().ServeHTTP(httptest.NewRecorder(), r)
					time.Sleep(100 * time.Millisecond)
				}
			})
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		grown := heap() - before
		select {
		case err := <-ended:
			t.Fatalf("the election has ended: %v", err)
		default:
		}
		if n := line.renewals.Load() - renewed; n < 100 {
			t.Errorf("the lease was renewed %d times in a minute, want each half second", n)
		}
		if grown > 96<<20 {
			t.Errorf("the heap has grown by %d bytes", grown)
		}
		calm()
		all.Wait()
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
