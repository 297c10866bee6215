// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package steertest_test

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/steer-dev/steer/apiserver"
	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/controller"
	"github.com/steer-dev/steer/controlplane"
	"github.com/steer-dev/steer/manager"
	"github.com/steer-dev/steer/steertest"
)

// turnstile lets requests through one by one, in an order that depends on
// nothing but the requests: it waits until no goroutine of the bubble can go on, and
// then releases the least of those that wait. Answers pass it as well, so that
// what a write makes the watches say is settled before its writer goes on.
type turnstile struct {
	next  http.RoundTripper
	began time.Time

	mu      sync.Mutex
	waiting []*waiting
	came    chan struct{}
	log     []string
}

type waiting struct {
	key    string
	passed chan struct{}
}

func newTurnstile(next http.RoundTripper) *turnstile {
	return &turnstile{next: next, came: make(chan struct{}, 1), began: time.Now()}
}

func digest(data []byte) uint64 {
	h := fnv.New64a()
	_, _ = h.Write(data)
	return h.Sum64()
}

// RoundTrip implements http.RoundTripper.
func (s *turnstile) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
		_ = r.Body.Close()
		r = r.Clone(r.Context())
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	line := fmt.Sprintf("%s %s %x", r.Method, r.URL, digest(body))
	if err := s.pass(r.Context(), line); err != nil {
		return nil, err
	}
	at := time.Since(s.began)
	resp, err := s.next.RoundTrip(r)
	if err != nil || r.URL.Query().Get("watch") != "" {
		return resp, err
	}
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	_ = resp.Body.Close()
	resp.Body = io.NopCloser(bytes.NewReader(answer))
	line = fmt.Sprintf("%s -> %d %x", line, resp.StatusCode, digest(answer))
	if err := s.pass(r.Context(), line); err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.log = append(s.log, fmt.Sprint(at, " ", line))
	s.mu.Unlock()
	return resp, nil
}

// pass waits for its turn.
func (s *turnstile) pass(ctx context.Context, key string) error {
	w := &waiting{key: key, passed: make(chan struct{})}
	s.mu.Lock()
	s.waiting = append(s.waiting, w)
	s.mu.Unlock()
	select {
	case s.came <- struct{}{}:
	default: // told already
	}
	select {
	case <-w.passed:
		return nil
	case <-ctx.Done():
		s.mu.Lock()
		defer s.mu.Unlock()
		s.waiting = slices.DeleteFunc(s.waiting, func(o *waiting) bool { return o == w })
		return ctx.Err()
	}
}

// turn releases until stop. It must be the only one in the bubble that calls
// synctest.Wait.
func (s *turnstile) turn(stop <-chan struct{}) {
	for {
		select {
		case <-s.came:
		case <-stop:
			return
		}
		for s.release() {
		}
	}
}

// release lets one pass when no other goroutine can go on, and reports false when none
// waits.
func (s *turnstile) release() bool {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) == 0 {
		return false
	}
	w := slices.MinFunc(s.waiting, func(a, b *waiting) int { return cmp.Compare(a.key, b.key) })
	s.waiting = slices.DeleteFunc(s.waiting, func(o *waiting) bool { return o == w })
	close(w.passed)
	return true
}

// minute runs an operator of four workers for a virtual minute, with a user who
// changes things, and returns every request with its time and its answer.
func minute(t *testing.T, seed uint64) (requests []string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		const apps, theirs = 5, 3 + 2 + 1 + 3 + 2
		env := steertest.New(t, steertest.Options{
			Scheme: scheme(t), Plane: controlplane.Options{Entropy: apiserver.SeededEntropy(seed)},
		})
		cfg := rest.CopyConfig(env.Config)
		gate := newTurnstile(cfg.Transport)
		cfg.Transport = gate
		// The user's requests pass it as well: else they run beside the operator's.
		user, err := client.New(cfg, client.Options{Scheme: scheme(t)})
		if err != nil {
			t.Fatal(err)
		}
		m, err := manager.New(cfg, manager.Options{
			Name: "operator", Instance: "one", Scheme: scheme(t), Log: slog.New(slog.DiscardHandler), Seed: seed,
			Election: manager.Election{Enabled: true, Namespace: "default"},
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := controller.Add(m, parts{}, controller.Concurrency(4), controller.Owns[*corev1.ConfigMap]()); err != nil {
			t.Fatal(err)
		}
		stopped, turning := make(chan struct{}), sync.WaitGroup{}
		turning.Go(func() { gate.turn(stopped) })
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- m.Start(ctx) }()
		<-m.Elected()
		for i := range apps {
			app := configMap(fmt.Sprint("app-", i))
			app.Labels = map[string]string{"parts": fmt.Sprint(1 + i%3)}
			app.Namespace = env.Namespace
			if err := user.Create(ctx, app); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(20 * time.Second)
		for i := range apps {
			var app corev1.ConfigMap
			if err := user.Get(ctx, steertest.Key(fmt.Sprint("default/app-", i)), &app); err != nil {
				t.Fatal(err)
			}
			app.Labels["parts"] = fmt.Sprint(3 - i%3)
			if err := user.Update(ctx, &app); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(41 * time.Second) // an odd number: the end must not meet a renewal of the lease
		var all corev1.ConfigMapList
		if err := user.List(ctx, &all); err != nil {
			t.Fatal(err)
		}
		if got := len(all.Items); got != apps+theirs {
			t.Errorf("it did not converge: %d ConfigMaps, want %d", got, apps+theirs)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		close(stopped)
		turning.Wait()
		requests = gate.log
	})
	return requests
}

// parts gives every app the parts that it asks for, tells users, and comes back.
type parts struct {
	children controller.Children[*corev1.ConfigMap]
}

// Reconcile implements controller.Reconciler.
func (p parts) Reconcile(ctx context.Context, app *corev1.ConfigMap) (controller.Result, error) {
	if app.Labels["parts"] == "" {
		return controller.Done(), nil // not an app
	}
	n, err := strconv.Atoi(app.Labels["parts"])
	if err != nil {
		return controller.Result{}, err
	}
	var desired []*corev1.ConfigMap
	for i := range n {
		desired = append(desired, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("part-", i, "-of-", app.Name)}})
	}
	if err := p.children.Apply(ctx, app, desired); err != nil {
		return controller.Result{}, err
	}
	controller.Emit(ctx, controller.UserEvent{Reason: "Applied", Note: fmt.Sprint(n, " parts")})
	return controller.After(15 * time.Second), nil
}

// TestSameSeedSameRequests runs the same minute again and again: every request,
// its moment and its answer are the same.
func TestSameSeedSameRequests(t *testing.T) {
	t.Parallel()
	runs := 100
	if testing.Short() || raceDetector {
		runs = 5
	}
	want := minute(t, 1)
	for _, part := range []string{"PUT", "/leases/", "fieldManager=configmap", "/events", "DELETE", "40s"} {
		if !slices.ContainsFunc(want, func(line string) bool { return strings.Contains(line, part) }) {
			t.Errorf("no request with %q: the test proves little", part)
		}
	}
	t.Logf("%d requests", len(want))
	for run := range runs - 1 {
		got := minute(t, 1)
		for i := range max(len(want), len(got)) {
			if i >= len(want) || i >= len(got) || want[i] != got[i] {
				from := max(i-5, 0)
				t.Fatalf("run %d differs at request %d; first:\n\t%s\nthis:\n\t%s", run+2, i,
					strings.Join(want[from:min(i+5, len(want))], "\n\t"), strings.Join(got[from:min(i+5, len(got))], "\n\t"))
			}
		}
	}
	if slices.Equal(want, minute(t, 2)) {
		t.Error("another seed gives the same requests: the test proves nothing")
	}
}
