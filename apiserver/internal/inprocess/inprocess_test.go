// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package inprocess_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/steer-dev/steer/apiserver/internal/inprocess"
)

func client(h http.HandlerFunc, streams bool) *http.Client {
	return &http.Client{Transport: &inprocess.Transport{Handler: h, Streams: func(*http.Request) bool { return streams }}}
}

func TestAnswersWholeResponses(t *testing.T) {
	t.Parallel()
	c := client(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("X-Path", r.URL.Path)
		w.WriteHeader(http.StatusTeapot)
		w.Header().Set("X-Late", "lost")
		_, _ = w.Write(append(body, '!'))
	}, false)
	resp, err := c.Post("http://steer.invalid/a/b", "text/plain", strings.NewReader("hello"))
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(resp.Body)
	if string(body) != "hello!" || resp.StatusCode != http.StatusTeapot || resp.Header.Get("X-Path") != "/a/b" || resp.Header.Get("X-Late") != "" {
		t.Errorf("got %q, %v", body, resp)
	}
}

func TestStreamsUntilTheClientCloses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		returned := false
		c := client(func(w http.ResponseWriter, r *http.Request) {
			defer func() { returned = true }()
			ticks := time.NewTicker(time.Minute)
			defer ticks.Stop()
			for {
				_, _ = io.WriteString(w, time.Now().UTC().Format("15:04\n"))
				w.(http.Flusher).Flush()
				select {
				case <-ticks.C:
				case <-r.Context().Done():
					return
				}
			}
		}, true)
		resp, err := c.Get("http://steer.invalid/")
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(resp.Body)
		for _, want := range []string{"00:00", "00:01", "00:02"} {
			if !lines.Scan() || lines.Text() != want {
				t.Fatalf("got %q, want %q", lines.Text(), want)
			}
		}
		_ = resp.Body.Close()
		if !returned {
			t.Error("the handler still runs after Close")
		}
	})
}

func TestAStreamThatHasEndedAlreadyIsAnswered(t *testing.T) {
	t.Parallel()
	c := client(func(http.ResponseWriter, *http.Request) {}, true)
	for range 5000 { // the handler may return before its caller looks
		resp, err := c.Get("http://steer.invalid/")
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
	}
}

func TestSlowReadersHoldTheWriterBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		written := 0
		c := client(func(w http.ResponseWriter, r *http.Request) {
			for range 100 {
				n, err := w.Write(make([]byte, 64<<10))
				if err != nil {
					return
				}
				written += n
			}
		}, true)
		resp, err := c.Get("http://steer.invalid/")
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if written > 1<<20 {
			t.Errorf("%d bytes were buffered for a client that does not read", written)
		}
		n, err := io.Copy(io.Discard, resp.Body)
		if n != 100*64<<10 || err != nil {
			t.Errorf("read %d bytes, %v", n, err)
		}
	})
}

func TestCancellationEndsTheStream(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		c := client(func(w http.ResponseWriter, r *http.Request) {
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}, true)
		r, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://steer.invalid/", nil)
		resp, err := c.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		if _, err := resp.Body.Read(make([]byte, 1)); !errors.Is(err, context.Canceled) {
			t.Errorf("read after cancel: %v", err)
		}
		_ = resp.Body.Close()
	})
}

func TestAbortedResponsesAreErrors(t *testing.T) {
	t.Parallel()
	for _, streams := range []bool{false, true} {
		c := client(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, "half")
			panic(http.ErrAbortHandler)
		}, streams)
		resp, err := c.Get("http://steer.invalid/")
		if err == nil {
			_, err = io.ReadAll(resp.Body)
			_ = resp.Body.Close()
		}
		if !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("streams %v: %v", streams, err)
		}
	}
}
