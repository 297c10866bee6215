// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/controller"
	"github.com/steer-dev/steer/manager"
	"github.com/steer-dev/steer/trace"
)

// lines is a log that tests read.
type lines struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.String()
}

// gate is a way to the server that can be closed: what is open breaks, what is
// new fails as refuse says.
type gate struct {
	next   http.RoundTripper
	refuse func(*http.Request) (*http.Response, error)

	mu     sync.Mutex
	closed bool
	open   []context.CancelFunc
}

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	for _, end := range g.open {
		end()
	}
}

// RoundTrip implements http.RoundTripper.
func (g *gate) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, end := context.WithCancel(r.Context())
	g.mu.Lock()
	g.open = append(g.open, end)
	closed := g.closed
	g.mu.Unlock()
	if closed {
		return g.refuse(r)
	}
	return g.next.RoundTrip(r.WithContext(ctx))
}

func unauthorized(r *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusUnauthorized, Header: http.Header{"Content-Type": {"application/json"}}, Request: r,
		Body: io.NopCloser(strings.NewReader(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Unauthorized","code":401}`)),
	}, nil
}

func expired(*http.Request) (*http.Response, error) {
	return nil, x509.CertificateInvalidError{Cert: &x509.Certificate{}, Reason: x509.Expired}
}

// TestCredentialsThatFailAreToldWithAdvice lets a leader's requests be refused
// from one moment on: it says why and what to do, is not ready any more, stops
// working within its renew deadline, and ends.
func TestCredentialsThatFailAreToldWithAdvice(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		refuse func(*http.Request) (*http.Response, error)
		advice string
	}{
		"revoked credentials": {unauthorized, "the credentials are not accepted"},
		"expired certificate": {expired, "the certificate of the API server has expired"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				for _, election := range []bool{true, false} {
					refuseAll(t, c.refuse, c.advice, election)
				}
			})
		})
	}
}

func refuseAll(t *testing.T, refuse func(*http.Request) (*http.Response, error), advice string, election bool) {
	t.Helper()
	env := newEnv(t, corev1.AddToScheme)
	way := &gate{next: env.Config.Transport, refuse: refuse}
	cfg := through(env.Config, way)
	var log lines
	m := newOperator(t, cfg, manager.Options{
		Log:      slog.New(slog.NewTextHandler(&log, nil)),
		Election: manager.Election{Enabled: election, Namespace: "default"},
	})
	var stopped atomic.Int64
	err := errors.Join(
		controller.Add(m, controller.Func[*corev1.ConfigMap](func(context.Context, *corev1.ConfigMap) (controller.Result, error) {
			return controller.Done(), nil
		})),
		m.Add(manager.RunnableFunc(func(ctx context.Context) error {
			<-ctx.Done()
			stopped.Store(time.Now().UnixNano())
			return nil
		})))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- m.Start(ctx) }()
	<-m.Elected()
	synctest.Wait()
	if err := m.Ready(t.Context()); err != nil {
		t.Errorf("not ready while all is well: %v", err)
	}
	began := time.Now()
	way.shut()
	if election {
		if err := <-ended; !errors.Is(err, manager.ErrLostLease) {
			t.Errorf("Start: %v, want ErrLostLease", err)
		}
		if held := time.Unix(0, stopped.Load()).Sub(began); held > 10*time.Second {
			t.Errorf("it worked on for %s, past its renew deadline", held)
		}
		if got := log.String(); !strings.Contains(got, "leader lease") || !strings.Contains(got, "the process ends, so that its container is started anew") {
			t.Errorf("the log does not say what a lost lease means:\n%s", got)
		}
	} else {
		time.Sleep(5 * time.Minute)
		if err := m.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), "the watch of ConfigMap has been interrupted for") || !strings.Contains(err.Error(), advice) {
			t.Errorf("ready: %v", err)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	if got := log.String(); !strings.Contains(got, advice) {
		t.Errorf("the log gives no advice:\n%s", got)
	}
}

// TestAWriteIsRefusedWhenItIsRepeatedAfterTheLoss lets the server ask a leader to
// come back with its write later, when it leads no more.
func TestAWriteIsRefusedWhenItIsRepeatedAfterTheLoss(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		env := newEnv(t, corev1.AddToScheme)
		var attempts atomic.Int32
		way := &gate{next: env.Config.Transport}
		way.refuse = func(r *http.Request) (*http.Response, error) {
			if !strings.Contains(r.URL.Path, "/configmaps") {
				return nil, errUnreachable
			}
			attempts.Add(1)
			return &http.Response{StatusCode: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"20"}}, Body: http.NoBody, Request: r}, nil
		}
		cfg := through(env.Config, way)
		m := newOperator(t, cfg, manager.Options{

			Election: manager.Election{Enabled: true, Namespace: "default"},
		})
		ended := make(chan error, 1)
		go func() { ended <- m.Start(t.Context()) }()
		<-m.Elected()
		way.shut()
		err := m.Live().Create(context.Background(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "x"}})
		var wrapped *url.Error
		if !errors.Is(err, manager.ErrNotLeader) || errors.As(err, &wrapped) || attempts.Load() != 1 {
			t.Errorf("%v after %d attempts, want ErrNotLeader after one", err, attempts.Load())
		}
		if err := <-ended; !errors.Is(err, manager.ErrLostLease) {
			t.Error(err)
		}
	})
}

// TestRecorderThatIsFullDelaysNothing fills the smallest recorder many times over
// while a reader of its lines stands still.
func TestRecorderThatIsFullDelaysNothing(t *testing.T) {
	t.Parallel()
	env := newEnv(t, corev1.AddToScheme)
	m := newOperator(t, env.Config, manager.Options{
		Recorder: trace.Options{Budget: 1},
	})
	follow, stopReader := context.WithCancel(t.Context())
	defer stopReader()
	standing, read := make(chan struct{}), make(chan struct{})
	var newest trace.ID // known when the reader goes on
	missed, last := 0, trace.ID{}
	first := make(chan struct{})
	records := m.Recorder().Follow(follow)
	go func() {
		defer close(read)
		for r := range records {
			if last.IsZero() {
				close(first)
				<-standing
			}
			if r.ID.Number <= last.Number {
				t.Errorf("%s after %s", r.ID, last)
			}
			if missed, last = missed+r.Missed, r.ID; last == newest {
				return
			}
		}
	}()
	const rounds = 5000
	done := make(chan struct{})
	n := 0
	err := controller.Add(m, controller.Func[*corev1.ConfigMap](func(context.Context, *corev1.ConfigMap) (controller.Result, error) {
		if n++; n == rounds {
			close(done)
			return controller.Done(), nil
		}
		return controller.After(0), nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- m.Start(ctx) }()
	env.Create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "busy"}})
	<-first
	<-done
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	kept := 0
	for r := range m.Recorder().Records() {
		kept++
		newest = r.ID
	}
	if kept == 0 || kept >= rounds {
		t.Errorf("%d of %d records kept", kept, rounds)
	}
	close(standing)
	<-read
	if missed+kept+1 != rounds {
		t.Errorf("the reader saw one record, missed %d and found %d; %d were written", missed, kept, rounds)
	}
}
