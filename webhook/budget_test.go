// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/steer-dev/steer/webhook"
)

// stalled is the body of a review that its client does not finish; read counts the bytes that
// were read of all.
type stalled struct {
	left int
	read *atomic.Int64
	done <-chan struct{}
}

func (s *stalled) Read(p []byte) (int, error) {
	if s.left == 0 {
		<-s.done
		return 0, io.ErrUnexpectedEOF
	}
	n := min(len(p), s.left)
	s.left -= n
	s.read.Add(int64(n))
	return n, nil
}

// flooded has many reviews of 6 MiB under way that stall, from some clients.
type flooded struct {
	read  atomic.Int64
	codes sync.Map
	end   context.CancelFunc
	all   sync.WaitGroup
}

func flood(t *testing.T, h http.Handler, path string, count, clients int) *flooded {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	f := &flooded{end: cancel}
	for i := range count {
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, path, io.NopCloser(&stalled{6 << 20, &f.read, ctx.Done()}))
		r.ContentLength, r.RemoteAddr = 6<<20, fmt.Sprintf("192.0.2.%d:%d", i%clients, 1024+i)
		r.Header.Set("Content-Type", "application/json")
		f.all.Go(func() {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			count, _ := f.codes.LoadOrStore(w.Code, new(atomic.Int64))
			count.(*atomic.Int64).Add(1)
		})
	}
	synctest.Wait()
	return f
}

// count is how many of the flood were answered with a code.
func (f *flooded) count(code int) int64 {
	if count, ok := f.codes.Load(code); ok {
		return count.(*atomic.Int64).Load()
	}
	return 0
}

func TestBytesOfReviewsUnderWayAreBounded(t *testing.T) {
	t.Parallel()
	for path, most := range map[string]int64{"/h": 32 << 20, "/convert": 128 << 20} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWeb(t, nil)
				allow := webhook.HandlerFunc(func(context.Context, *webhook.Request) webhook.Response { return webhook.Allowed() })
				if err := webhook.AddHandler(w, "/h", allow); err != nil {
					t.Fatal(err)
				}
				if err := webhook.AddConversion(w, &widget{}); err != nil {
					t.Fatal(err)
				}
				f := flood(t, w, path, 100, 5)
				if read := f.read.Load(); read > most || read < most/2 {
					t.Errorf("%d bytes are under way, want at most %d", read, most)
				}
				time.Sleep(time.Minute)
				if refused := f.count(http.StatusTooManyRequests); refused < 70 {
					t.Errorf("%d reviews that waited too long were refused", refused)
				}
				f.end()
				f.all.Wait()
			})
		})
	}
}

// TestAFloodOfOneClientLeavesRoomForOthers: the API server is another client.
func TestAFloodOfOneClientLeavesRoomForOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWeb(t, nil)
		allow := webhook.HandlerFunc(func(context.Context, *webhook.Request) webhook.Response { return webhook.Allowed() })
		if err := webhook.AddHandler(w, "/h", allow); err != nil {
			t.Fatal(err)
		}
		f := flood(t, w, "/h", 1000, 1)
		if refused := f.count(http.StatusTooManyRequests); refused < 700 {
			t.Errorf("%d reviews of a client that has others waiting were refused", refused)
		}
		if r := ask(t, w, "/h", request(admissionv1.Create, plain, "")); !r.Allowed {
			t.Errorf("%+v", r)
		}
		f.end()
		f.all.Wait()
		// What is answered makes room.
		for range 100 {
			if r := ask(t, w, "/h", request(admissionv1.Create, plain, "")); !r.Allowed {
				t.Fatalf("%+v", r)
			}
		}
	})
}

func TestReviewsWhoseSizeIsNotSaidTakeTheLargest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWeb(t, nil)
		entered, release := make(chan struct{}, 10), make(chan struct{})
		if err := webhook.AddHandler(w, "/h", blocking(entered, release)); err != nil {
			t.Fatal(err)
		}
		body := reviewOf(t, request(admissionv1.Create, plain, ""))
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				r := httptest.NewRequest(http.MethodPost, "/h", io.MultiReader(bytes.NewReader(body), strings.NewReader(" ")))
				r.ContentLength = -1
				r.Header.Set("Content-Type", "application/json")
				got := httptest.NewRecorder()
				w.ServeHTTP(got, r)
				if got.Code != http.StatusOK {
					t.Errorf("%d %s", got.Code, got.Body)
				}
			})
		}
		synctest.Wait()
		if n := len(entered); n != 2 {
			t.Errorf("%d reviews are under way, want 2 of 7 MiB", n)
		}
		close(release)
		all.Wait()
	})
}

// TestBodiesThatAreNotSentEndAndHandlersMayTakeLonger has a handler that takes longer than a
// body may.
func TestBodiesThatAreNotSentEndAndHandlersMayTakeLonger(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		client := trusting(t, writeCertificate(t, dir, 1))
		w := newWeb(t, func(o *webhook.Options) { o.Drain, o.TLS.Dir = -1, dir })
		slow := webhook.HandlerFunc(func(ctx context.Context, _ *webhook.Request) webhook.Response {
			select {
			case <-ctx.Done():
				return webhook.Denied("its context has ended")
			case <-time.After(20 * time.Second):
				return webhook.Allowed()
			}
		})
		if err := webhook.AddHandler(w, "/h", slow); err != nil {
			t.Fatal(err)
		}
		listener, ended := newPipes(), make(chan error, 1)
		client.Transport.(*http.Transport).DialContext = listener.dial
		ctx, stop := context.WithCancel(t.Context())
		go func() { ended <- w.ServeOn(ctx, listener) }()
		resp, err := client.Post("https://localhost/h?timeout=30s", "application/json", bytes.NewReader(reviewOf(t, request(admissionv1.Create, plain, ""))))
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if !strings.Contains(string(text), `"allowed":true`) {
			t.Errorf("%s", text)
		}
		began := time.Now()
		half, send := io.Pipe()
		defer send.Close()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://localhost/h", half)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		if resp, err = client.Do(r); err == nil {
			_ = resp.Body.Close()
		}
		if took := time.Since(began); took > 11*time.Second {
			t.Errorf("a body that is not sent took %s: %v", took, err)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute) // both ends of a pipe may be writing that they close
	})
}
