// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// sight is what a watcher has seen.
type sight struct {
	events  []event
	watches int
	// gaps is how often the history that it needed was gone, so that it began anew.
	gaps int
	err  error
}

type event struct {
	kind, name, value string
	revision          int64
}

// watch notes events over as many watches as it takes, until the object that ends the run.
func (r *Run) watch(number int, from string) {
	s := &r.seen[number]
	for {
		c := r.client()
		end, err := r.follow(c, s, &from)
		c.transport.CloseIdleConnections()
		if end {
			return
		}
		if status := (*statusError)(nil); errors.As(err, &status) && status.code == http.StatusGone {
			s.gaps++
			var now list
			if c.do(context.Background(), http.MethodGet, r.selector(), nil, &now) == nil {
				from = now.Metadata.ResourceVersion
				for _, o := range now.Items {
					if strings.HasPrefix(o.Metadata.Name, r.Name+"-end") {
						return
					}
				}
			}
		}
		if s.err != nil {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// follow is one watch. It reports whether the run has ended.
func (r *Run) follow(c *client, s *sight, from *string) (end bool, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	slow := time.AfterFunc(r.Timeout, cancel) // an answer has to begin
	resp, err := c.send(ctx, http.MethodGet, r.selector()+"&watch=true&resourceVersion="+*from, nil)
	slow.Stop()
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return false, &statusError{resp.StatusCode, "watch"}
	}
	s.watches++
	for in := json.NewDecoder(resp.Body); ; {
		var e struct {
			Type   string `json:"type"`
			Object object `json:"object"`
		}
		if err := in.Decode(&e); err != nil {
			return false, err
		}
		if e.Type == "ERROR" {
			return false, &statusError{e.Object.Code, "ERROR event"}
		}
		rev, err := strconv.ParseInt(e.Object.Metadata.ResourceVersion, 10, 64)
		if err != nil {
			s.err = err
			return false, err
		}
		*from = e.Object.Metadata.ResourceVersion
		if strings.HasPrefix(e.Object.Metadata.Name, r.Name+"-end") {
			return true, nil
		}
		if n := len(s.events); n > 0 && s.gaps == 0 && s.events[n-1].revision >= rev {
			s.err = fmt.Errorf("revision %d follows %d", rev, s.events[n-1].revision)
			return false, s.err
		}
		s.events = append(s.events, event{e.Type, e.Object.Metadata.Name, e.Object.Data["v"], rev})
	}
}

// Report is what a run has done.
type Report struct {
	Succeeded, Failed, Events, Watches, Gaps int
	// Failures are the requests that failed.
	Failures []error
}

// Finish ends the run, checks it, and removes its objects. It returns what was wrong; that
// requests failed is not. Where gaps are expected, as after a restore, watchers may have
// begun anew.
func (r *Run) Finish(ctx context.Context, gaps bool) (Report, error) {
	r.stop()
	r.clients.Wait()
	c := r.client()
	defer c.transport.CloseIdleConnections()
	c.timeout = max(c.timeout, time.Minute) // there may be thousands of objects
	ending := untilDone(ctx, func(i int) error {
		return c.do(ctx, http.MethodPost, "", r.configMap(fmt.Sprintf("%s-end%d", r.Name, i), ""), nil)
	})
	if ending != nil {
		return r.report(), fmt.Errorf("no write succeeds any more: %w", ending)
	}
	ended := make(chan struct{})
	go func() {
		r.watchers.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-ctx.Done():
		return r.report(), errors.New("a watcher does not see the end of the run")
	}
	var stored list
	if err := c.do(ctx, http.MethodGet, r.selector(), nil, &stored); err != nil {
		return r.report(), err
	}
	err := errors.Join(r.linearizable(), r.revoked(), r.kept(stored), r.complete(stored, gaps))
	// Of a deletion it may be unknown whether it was made; the next one removes what is left.
	removed := untilDone(ctx, func(int) error { return c.do(ctx, http.MethodDelete, r.selector(), nil, nil) })
	return r.report(), errors.Join(err, removed)
}

// untilDone repeats a request that fails for a while, as a client does.
func untilDone(ctx context.Context, request func(i int) error) (err error) {
	for i := range 1000 {
		if err = request(i); err == nil || ctx.Err() != nil {
			return err
		}
		time.Sleep(100 * time.Millisecond)
	}
	return err
}

func (r *Run) report() Report {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := Report{Succeeded: int(r.done.Load()), Failed: len(r.failed), Failures: r.failed}
	for i := range r.seen {
		out.Events += len(r.seen[i].events)
		out.Watches += r.seen[i].watches
		out.Gaps += r.seen[i].gaps
	}
	return out
}

// linearizable checks the operations of each object.
func (r *Run) linearizable() error {
	model := porcupine.Model{
		Partition: func(history []porcupine.Operation) (parts [][]porcupine.Operation) {
			byName := map[string][]porcupine.Operation{}
			for _, op := range history {
				name := op.Input.(register).name
				byName[name] = append(byName[name], op)
			}
			for _, ops := range byName {
				parts = append(parts, ops)
			}
			return parts
		},
		Init: func() any { return "" },
		Step: func(state, input, output any) (bool, any) {
			if in := input.(register); in.write {
				return true, in.value
			}
			return output == state, state
		},
	}
	switch porcupine.CheckOperationsTimeout(model, r.history, time.Minute) {
	case porcupine.Illegal:
		return errors.New("the operations are not linearizable")
	case porcupine.Unknown:
		return errors.New("the operations were not checked within a minute")
	}
	return nil
}

// kept checks that what was acknowledged is stored.
func (r *Run) kept(stored list) error {
	there := map[string]bool{}
	for _, o := range stored.Items {
		there[o.Metadata.Name] = true
	}
	var errs []error
	for name, acknowledged := range r.created {
		if acknowledged && !there[name] {
			errs = append(errs, fmt.Errorf("%s was acknowledged and is lost", name))
		}
	}
	return errors.Join(errs...)
}

// complete checks what the watchers have seen.
func (r *Run) complete(stored list, gaps bool) error {
	var errs []error
	var first *sight
	for i := range r.seen {
		s := &r.seen[i]
		switch {
		case s.err != nil:
			errs = append(errs, fmt.Errorf("watcher %d: %w", i, s.err))
		case s.gaps > 0 && !gaps:
			errs = append(errs, fmt.Errorf("watcher %d: the history was gone %d times", i, s.gaps))
		case s.gaps > 0:
		case first == nil:
			first = s
			errs = append(errs, r.whole(s, stored))
		default:
			for n := range max(len(s.events), len(first.events)) {
				if n >= len(s.events) || n >= len(first.events) || s.events[n] != first.events[n] {
					errs = append(errs, fmt.Errorf("watcher %d has seen another history from event %d on", i, n))
					break
				}
			}
		}
	}
	return errors.Join(errs...)
}

// whole checks that a watcher has seen every acknowledged change once, and the state.
func (r *Run) whole(s *sight, stored list) error {
	added, written, last := map[string]int{}, map[string]int{}, map[string]event{}
	for _, e := range s.events {
		last[e.name] = e
		if e.kind == "ADDED" {
			added[e.name]++
		} else {
			written[e.value]++
		}
	}
	var errs []error
	for name, acknowledged := range r.created {
		if n := added[name]; n > 1 || acknowledged && n == 0 {
			errs = append(errs, fmt.Errorf("%s was seen %d times", name, n))
		}
	}
	for _, op := range r.history {
		in := op.Input.(register)
		if n := written[in.value]; in.write && (n > 1 || n == 0 && op.Return < 1<<62) {
			errs = append(errs, fmt.Errorf("the value %s of %s was seen %d times", in.value, in.name, n))
		}
	}
	for _, o := range stored.Items {
		e, ok := last[o.Metadata.Name]
		if ok && (e.value != o.Data["v"] || strconv.FormatInt(e.revision, 10) != o.Metadata.ResourceVersion) {
			errs = append(errs, fmt.Errorf("%s is stored at %s, and was last seen at %d", o.Metadata.Name, o.Metadata.ResourceVersion, e.revision))
		}
	}
	return errors.Join(errs...)
}
