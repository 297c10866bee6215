// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"net/http"
	"sort"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/steer-dev/steer/storage"
)

// events are some events of a history, told apart by their number and a sum.
type events struct {
	number int
	sum    uint64
}

// with adds one event: its revision, its object, and whether it is gone.
func (e events) with(revision storage.Revision, name string, deleted bool) events {
	h := fnv.New64a()
	fmt.Fprint(h, revision, name, deleted)
	return events{e.number + 1, e.sum + h.Sum64()}
}

// history is what the store says has happened in the namespace default.
type history struct {
	cursor storage.Cursor
	done   chan struct{}

	mu        sync.Mutex
	revisions []storage.Revision
	up        []events // to each of the revisions
}

func (s *soak) newHistory() *history {
	view, err := s.store.View(s.Context(), 0)
	if err != nil {
		s.Fatal(err)
	}
	h := &history{done: make(chan struct{}), revisions: []storage.Revision{0}, up: []events{{}}}
	if h.cursor, err = s.store.Watch(storage.Range{Bucket: "configmaps", Prefix: "default/"}, view.Revision()); err != nil {
		s.Fatal(err)
	}
	go func() {
		defer close(h.done)
		for {
			batch, err := h.cursor.Next(s.Context())
			if err != nil {
				if !errors.Is(err, storage.ErrClosed) && s.Context().Err() == nil {
					s.Errorf("the history of the store: %v", err)
				}
				return
			}
			h.mu.Lock()
			for _, e := range batch.Events {
				h.revisions = append(h.revisions, e.Record.Modified)
				h.up = append(h.up, h.up[len(h.up)-1].with(e.Record.Modified, e.Record.Key.Name, e.Deleted))
			}
			h.mu.Unlock()
		}
	}()
	return h
}

// until returns when the history goes up to a revision.
func (h *history) until(newest storage.Revision) {
	tick := time.NewTicker(soakEvery)
	defer tick.Stop()
	for {
		h.mu.Lock()
		last := h.revisions[len(h.revisions)-1]
		h.mu.Unlock()
		if last >= newest {
			return
		}
		select {
		case <-h.done: // with an error, which has been reported
			return
		case <-tick.C:
		}
	}
}

func (h *history) close() {
	h.cursor.Close()
	<-h.done
}

func (h *history) total() int { return len(h.up) - 1 }

// between returns the events after one revision, up to another.
func (h *history) between(after, last storage.Revision) events {
	at := func(r storage.Revision) events {
		return h.up[sort.Search(len(h.revisions), func(i int) bool { return h.revisions[i] > r })-1]
	}
	from, to := at(after), at(last)
	return events{to.number - from.number, to.sum - from.sum}
}

// stretch is what a watcher has seen without a list in between.
type stretch struct {
	after, last storage.Revision
	events
}

// soakWatcher watches from where it was, also after its connection has ended.
type soakWatcher struct {
	*soak
	http     *http.Client
	random   *rand.Rand
	slow     bool
	restless bool
	end      atomic.Int64 // the last revision; 0: not known yet
	ended    context.Context
	stop     context.CancelFunc

	seen                 []stretch
	relists, connections int
}

func (s *soak) newWatcher(i int) *soakWatcher {
	transport := &http.Transport{TLSClientConfig: s.tls.Clone(), ForceAttemptHTTP2: i%2 == 0}
	w := &soakWatcher{soak: s, http: &http.Client{Transport: transport}, random: rand.New(rand.NewPCG(uint64(i), 3))}
	w.slow, w.restless = i < soakSlow, i >= soakSlow && i < soakSlow+soakRestless
	w.ended, w.stop = context.WithTimeout(s.Context(), time.Hour)
	w.list()
	return w
}

// until ends the watch once it has seen a revision, within two minutes.
func (w *soakWatcher) until(last storage.Revision) {
	w.end.Store(int64(last))
	time.AfterFunc(2*time.Minute, w.stop)
}

// run watches until the end.
func (w *soakWatcher) run() {
	defer w.http.CloseIdleConnections()
	for w.ended.Err() == nil {
		at := &w.seen[len(w.seen)-1]
		if end := w.end.Load(); end > 0 && int64(at.last) >= end {
			w.stop()
			return
		}
		w.connections++
		if err := w.watch(at); errors.Is(err, errGone) {
			w.relists++
			w.list()
		} else if err != nil && w.ended.Err() == nil {
			w.Errorf("watch: %v", err)
			return
		}
	}
}

var errGone = errors.New("the revision is gone")

func (w *soakWatcher) get(ctx context.Context, query string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, w.config.Host+"/api/v1/namespaces/default/configmaps?"+query, http.NoBody)
	if err != nil {
		return nil, err
	}
	return w.http.Do(r)
}

// list begins a new stretch.
func (w *soakWatcher) list() {
	response, err := w.get(w.ended, "limit=1&resourceVersion=")
	if err != nil {
		w.Errorf("list: %v", err)
		w.stop()
		return
	}
	defer response.Body.Close()
	var list soakObject
	if err := json.NewDecoder(response.Body).Decode(&list); err != nil {
		w.Errorf("list: %v", err)
	}
	_, _ = io.Copy(io.Discard, response.Body)
	at := revisionOf(w.T, list.Metadata.ResourceVersion)
	w.seen = append(w.seen, stretch{after: at, last: at})
}

// soakObject is what a watcher reads of an object.
type soakObject struct {
	Code     int `json:"code"`
	Metadata struct {
		Name            string `json:"name"`
		ResourceVersion string `json:"resourceVersion"`
	} `json:"metadata"`
}

// watch reads events until the connection ends, or the watcher wants another one.
func (w *soakWatcher) watch(at *stretch) error {
	ctx, cancel := context.WithCancel(w.ended)
	defer cancel()
	response, err := w.get(ctx, fmt.Sprintf("watch=1&allowWatchBookmarks=true&timeoutSeconds=600&resourceVersion=%d", at.last))
	if err != nil {
		return err
	}
	defer response.Body.Close()
	switch response.StatusCode {
	case http.StatusOK:
	case http.StatusGone:
		return errGone
	default:
		return fmt.Errorf("status %s", response.Status)
	}
	patience := 20 + w.random.IntN(200)
	lines := bufio.NewReader(response.Body)
	for n := 0; ; n++ {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return nil // the server ends watches that are far behind
		}
		var event struct {
			Type   string     `json:"type"`
			Object soakObject `json:"object"`
		}
		if err := json.Unmarshal(line, &event); err != nil {
			return fmt.Errorf("%w: %.200s", err, line)
		}
		if event.Type == "ERROR" {
			if event.Object.Code == http.StatusGone {
				return errGone
			}
			return fmt.Errorf("%.500s", line)
		}
		revision := revisionOf(w.T, event.Object.Metadata.ResourceVersion)
		if event.Type != "BOOKMARK" {
			if revision <= at.last {
				return fmt.Errorf("revision %d comes after %d", revision, at.last)
			}
			at.events = at.with(revision, "default/"+event.Object.Metadata.Name, event.Type == "DELETED")
		}
		at.last = revision
		end := w.end.Load()
		switch {
		case end > 0 && int64(at.last) >= end:
			return nil
		case end > 0:
		case w.restless && n > patience:
			return nil
		case w.slow:
			select {
			case <-ctx.Done():
			case <-time.After(20 * time.Millisecond):
			}
		}
	}
}

func revisionOf(t *testing.T, text string) storage.Revision {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Errorf("resourceVersion: %v", err)
	}
	return storage.Revision(n)
}
