// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/apiserver"
	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/apiserver/resource"
)

// crowd is a resource that takes its time and counts concurrent calls.
type crowd struct {
	mu            sync.Mutex
	reads, writes int
	mostR, mostW  int
	answered      int
}

func (c *crowd) serve(count, most *int) {
	c.mu.Lock()
	*count++
	*most = max(*most, *count)
	c.answered++
	c.mu.Unlock()
	time.Sleep(10 * time.Millisecond) // on the clock of the bubble
	c.mu.Lock()
	*count--
	c.mu.Unlock()
}

// ServeHTTP answers reads, by which it is mounted at a path.
func (c *crowd) ServeHTTP(http.ResponseWriter, *http.Request) { c.serve(&c.reads, &c.mostR) }

// Admit implements [resource.Admission] for writes.
func (c *crowd) Admit(context.Context, *resource.AdmissionRequest) error {
	c.serve(&c.writes, &c.mostW)
	return nil
}

// Validate implements [resource.Admission].
func (c *crowd) Validate(context.Context, *resource.AdmissionRequest) error { return nil }

// TestInFlightLimitsHoldAgainstUnthrottledClients lets 64 clients that only respect
// Retry-After send as fast as they can, like clients that found API priority and
// fairness on the server.
func TestInFlightLimitsHoldAgainstUnthrottledClients(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const clients, each, reads, writes = 64, 10, 8, 4
		crowd := &crowd{}
		s := newServer(t, func(o *apiserver.Options) {
			o.Authorizer, o.Admission, o.Limits.Reads, o.Limits.Writes = auth.AllowAll{}, crowd, reads, writes
			o.Classify = func(context.Context, *auth.Attributes) (schema, level types.UID) { return "schema", "level" }
		})
		s.Handle("/crowd", crowd)
		var mu sync.Mutex
		answers := map[int]int{}
		var all sync.WaitGroup
		for i := range clients {
			rt := s.RoundTripper(&auth.User{Name: fmt.Sprint("client-", i), Groups: []string{auth.Authenticated}})
			all.Go(func() {
				for n := range each {
					method, path, body := http.MethodGet, "/crowd", ""
					if n%2 == 1 {
						method, path, body = http.MethodPost, widgetsPath, fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w-%d-%d"}}`, i, n)
					}
					for done := false; !done; {
						got := send(t, rt, method, path, body)
						mu.Lock()
						answers[got.code]++
						mu.Unlock()
						if got.header.Get("X-Kubernetes-PF-FlowSchema-UID") != "schema" || got.header.Get("X-Kubernetes-PF-PriorityLevel-UID") != "level" {
							t.Errorf("%d does not say where it belongs: %v", got.code, got.header)
						}
						if done = got.code != http.StatusTooManyRequests; !done {
							seconds, err := strconv.Atoi(got.header.Get("Retry-After"))
							if err != nil || seconds < 1 {
								t.Errorf("429 with Retry-After %q", got.header.Get("Retry-After"))
								return
							}
							time.Sleep(time.Duration(seconds) * time.Second)
						}
					}
				}
			})
		}
		all.Wait()
		if crowd.mostR != reads || crowd.mostW != writes {
			t.Errorf("%d reads and %d writes at once, want %d and %d", crowd.mostR, crowd.mostW, reads, writes)
		}
		if answers[200] != clients*each/2 || answers[201] != clients*each/2 || answers[429] == 0 || len(answers) != 3 {
			t.Errorf("answers by code: %v", answers)
		}
		if crowd.answered != clients*each {
			t.Errorf("%d requests came in, want %d", crowd.answered, clients*each)
		}
	})
}
