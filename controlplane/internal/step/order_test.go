// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/steer-dev/steer/storage"
)

// waiting returns how many others each of several requests waits for when it is added.
func waiting(requests []Request) []int {
	o := newOrder()
	var out []int
	for i := range requests {
		c := &call{request: requests[i]}
		o.add(c)
		out = append(out, c.waits)
	}
	return out
}

func TestOrderKeepsWhatConcernsOneObjectTogether(t *testing.T) {
	t.Parallel()
	about := func(method, path, subject string) Request {
		return Request{Method: method, Path: path, Subject: Subject{Key: storage.Key{Name: subject}}}
	}
	for name, test := range map[string]struct {
		requests []Request
		want     []int
	}{
		"one subject": {[]Request{about("POST", "/pods", "a"), about("POST", "/pods", "b"), about("POST", "/pods", "a")}, []int{0, 0, 1}},
		"an object and its status": {
			[]Request{about("PUT", "/pods/x/status", "a"), about("PUT", "/pods/y", "b"), about("DELETE", "/pods/x", "c")}, []int{0, 0, 1},
		},
		"a collection and its objects": {
			[]Request{about("PUT", "/pods/x", "a"), about("POST", "/pods", "b"), about("DELETE", "/pods", "c"), about("PUT", "/services/x", "d")}, []int{0, 0, 2, 0},
		},
		"a creation after the deletion of a collection": {
			[]Request{about("DELETE", "/pods", "a"), about("POST", "/pods", "b"), about("POST", "/pods/x/binding", "c")}, []int{0, 1, 1},
		},
		"names that begin alike": {[]Request{about("PUT", "/pods/x", "a"), about("PUT", "/pods/xy", "b")}, []int{0, 0}},
	} {
		if diff := cmp.Diff(test.want, waiting(test.requests)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestOrderHoldsForRandomRequests adds and ends calls in random order, and compares what may be
// under way at once with the rule as it is said.
func TestOrderHoldsForRandomRequests(t *testing.T) {
	t.Parallel()
	related := func(a, b *Request) bool {
		leads := func(a, b *Request) bool {
			return a.Method != http.MethodPost && strings.HasPrefix(b.Path+"/", a.Path+"/")
		}
		return a.Subject.Key == b.Subject.Key || leads(a, b) || leads(b, a)
	}
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 1)) // a test
		o := newOrder()
		var calls, free []*call
		ended := 0
		for n := random.IntN(60); ended < n; {
			if len(calls) < n && random.IntN(2) == 0 {
				c := &call{number: len(calls)}
				c.request.Method = []string{"PUT", "POST", "DELETE"}[random.IntN(3)]
				c.request.Path = fmt.Sprintf("/c%d", random.IntN(5))
				for range random.IntN(3) {
					c.request.Path += fmt.Sprintf("/%d", random.IntN(6))
				}
				c.request.Subject.Key.Name = fmt.Sprint(random.IntN(40))
				calls = append(calls, c)
				if o.add(c); c.waits == 0 {
					free = append(free, c)
				}
				continue
			}
			if len(free) == 0 {
				if len(calls) == n {
					t.Fatalf("seed %d: %d calls have ended, the other %d wait for ever", seed, ended, n-ended)
				}
				continue
			}
			i := random.IntN(len(free))
			c := free[i]
			for _, earlier := range calls[:c.number] {
				if !earlier.begun && related(&earlier.request, &c.request) {
					t.Fatalf("seed %d: call %d does not wait for call %d", seed, c.number, earlier.number)
				}
			}
			for _, later := range calls[c.number+1:] {
				if later.begun && related(&later.request, &c.request) {
					t.Fatalf("seed %d: call %d ended before call %d", seed, later.number, c.number)
				}
			}
			c.begun = true // here: has ended
			free = append(append(free[:i:i], free[i+1:]...), o.end(c)...)
			ended++
		}
		if len(o.subjects)+len(o.exact)+len(o.below) > 0 {
			t.Errorf("seed %d: the order of no calls keeps %d subjects and %d paths", seed, len(o.subjects), len(o.exact)+len(o.below))
		}
	}
}
