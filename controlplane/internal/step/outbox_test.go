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

func TestLanesKeepWhatConcernsOneObjectTogether(t *testing.T) {
	t.Parallel()
	about := func(method, path, subject string) Request {
		return Request{Method: method, Path: path, Subject: Subject{Key: storage.Key{Name: subject}}}
	}
	for name, test := range map[string]struct {
		requests []Request
		from     int
		want     [][]int
	}{
		"one subject": {[]Request{about("POST", "/pods", "a"), about("POST", "/pods", "b"), about("POST", "/pods", "a")}, 0, [][]int{{0, 2}, {1}}},
		"an object and its status": {
			[]Request{about("PUT", "/pods/x/status", "a"), about("PUT", "/pods/y", "b"), about("DELETE", "/pods/x", "c")}, 0, [][]int{{0, 2}, {1}},
		},
		"a collection and its objects": {
			[]Request{about("PUT", "/pods/x", "a"), about("POST", "/pods", "b"), about("DELETE", "/pods", "c"), about("PUT", "/services/x", "d")}, 0, [][]int{{0, 1, 2}, {3}},
		},
		"lanes that turn out to be one": {
			[]Request{about("PUT", "/x", "a"), about("PUT", "/y", "b"), about("PUT", "/z", "c"), about("PUT", "/x", "b")}, 0, [][]int{{0, 1, 3}, {2}},
		},
		"what is taken does not count": {[]Request{about("PUT", "/x", "a"), about("PUT", "/x", "b"), about("PUT", "/y", "a")}, 1, [][]int{{1}, {2}}},
		"names that begin alike":       {[]Request{about("PUT", "/pods/x", "a"), about("PUT", "/pods/xy", "b")}, 0, [][]int{{0}, {1}}},
	} {
		if diff := cmp.Diff(test.want, lanesOf(test.requests, test.from)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestOutboxKeepsTheOrderPerObject lets senders take and end in random order, and holds
// what is under way at once to the rule as it is said.
func TestOutboxKeepsTheOrderPerObject(t *testing.T) {
	t.Parallel()
	related := func(a, b *Request) bool {
		leads := func(a, b *Request) bool {
			return a.Method != http.MethodPost && strings.HasPrefix(b.Path+"/", a.Path+"/")
		}
		return a.Subject.Key == b.Subject.Key || leads(a, b) || leads(b, a)
	}
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // a test
		requests := make([]Request, random.IntN(30))
		for i := range requests {
			r := &requests[i]
			r.Method = []string{"PUT", "POST", "DELETE"}[random.IntN(3)]
			r.Path = fmt.Sprintf("/c%d", random.IntN(5))
			for range random.IntN(3) {
				r.Path += fmt.Sprintf("/%d", random.IntN(6))
			}
			r.Subject.Key.Name = fmt.Sprint(random.IntN(40))
		}
		box := outbox{requests: requests}
		spreadAt := random.IntN(len(requests) + 2)
		sent, steps := make([]bool, len(requests)), 0
		working := [][]int{append([]int(nil), box.take(true)...)} // by sender, what it has still to send
		for {
			if steps == spreadAt {
				for range min(4, box.spread()) {
					working = append(working, append([]int(nil), box.take(false)...))
				}
			}
			steps++
			var busy []int
			for s := range working {
				if len(working[s]) > 0 {
					busy = append(busy, s)
				}
			}
			if len(busy) == 0 {
				break
			}
			s := busy[random.IntN(len(busy))]
			i := working[s][0]
			for before := range i {
				if !sent[before] && related(&requests[before], &requests[i]) {
					t.Fatalf("seed %d: request %d ends before request %d", seed, i, before)
				}
			}
			sent[i] = true
			if working[s] = working[s][1:]; len(working[s]) == 0 {
				working[s] = append([]int(nil), box.take(s == 0)...)
			}
		}
		for i := range sent {
			if !sent[i] {
				t.Fatalf("seed %d: request %d was never handed out", seed, i)
			}
		}
	}
}
