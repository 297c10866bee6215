// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
)

// audit compares what a restarted process has with what is known, and makes that
// the new knowledge.
func (k *killed) audit(p *upProcess) {
	k.Helper()
	list := k.read(p, http.MethodGet, p.url, "", http.StatusOK)
	if revision := k.number(list.Metadata.ResourceVersion); revision < k.revision {
		k.failf("the revision is %d after %d was shown", revision, k.revision)
	}
	// The history is read up to an object that is made for the purpose.
	marker := fmt.Sprint("kill-audit-", k.life)
	end := k.read(p, http.MethodPost, p.url, fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q},"data":{"n":"0"}}`, marker), http.StatusCreated)
	compacted := false
	if k.audited > 0 {
		var history []killedEvent
		ctx, cancel := context.WithCancel(k.Context())
		defer cancel()
		err := p.watch(ctx, k.audited, func(e killedEvent) bool {
			if e.name == marker {
				return false
			}
			history = append(history, e)
			return true
		})
		switch {
		case errors.Is(err, errCompacted):
			compacted = true
			k.compacted++
		case err != nil:
			k.failf("the history after %d: %v", k.audited, err)
		default:
			k.auditHistory(history)
		}
	}
	for i := range k.keys {
		k.auditKey(&k.keys[i], list.Items, compacted)
	}
	clear(k.watched[:])
	k.audited = k.number(end.Metadata.ResourceVersion)
	k.revision = k.audited
}

// read sends a request that succeeds.
func (k *killed) read(p *upProcess, method, url, body string, want int) (object killedObject) {
	k.Helper()
	status, answer, err := p.do(k.Context(), method, url, body)
	if err == nil && status == want {
		err = json.Unmarshal(answer, &object)
	}
	if err != nil || status != want {
		k.failf("%s %s: %d, %v: %s", method, url, status, err, answer)
	}
	return object
}

func (k *killed) number(text string) int {
	k.Helper()
	n, err := strconv.Atoi(text)
	if err != nil {
		k.failf("%v", err)
	}
	return n
}

// auditHistory checks that every write that was acknowledged has its event, that
// there is none that was not sent, and that the watchers were shown what is
// there, from the beginning and without gaps.
func (k *killed) auditHistory(history []killedEvent) {
	k.Helper()
	revision := k.audited
	for _, e := range history {
		if e.revision <= revision {
			k.failf("revision %d follows revision %d", e.revision, revision)
		}
		revision = e.revision
		i := slices.IndexFunc(k.keys[:], func(key killedKey) bool { return key.name == e.name })
		if i < 0 {
			k.failf("%+v is an event of an object that was not made", e)
		}
		key := &k.keys[i]
		key.applied++
		if n, kind := key.event(key.applied); e.n != n || e.kind != kind || key.applied > key.tried {
			k.failf("%+v is the event of write %d of %d, want %s of %d", e, key.applied, key.tried, kind, n)
		}
	}
	for _, key := range k.keys {
		if key.applied < key.acked {
			k.failf("%s: write %d was acknowledged, and the history ends with write %d", key.name, key.acked, key.applied)
		}
	}
	for _, shown := range k.watched {
		if len(shown) > len(history) || !slices.Equal(shown, history[:len(shown)]) {
			k.failf("a watcher was shown %+v, the history is %+v", shown, history)
		}
	}
}

// event returns what the event of a write looks like: the number that is in the
// object and the type.
func (key *killedKey) event(write int) (n int, kind string) {
	switch {
	case key.deletes(write):
		return write - 1, "DELETED"
	case write == 1 || key.deletes(write-1):
		return write, "ADDED"
	}
	return write, "MODIFIED"
}

func (key *killedKey) deletes(write int) bool { return write%7 == 0 }

// auditKey checks that the object is as the last write has left it, which without
// a history is the last one that was acknowledged or the one that was under way.
func (k *killed) auditKey(key *killedKey, found []killedObject, compacted bool) {
	k.Helper()
	i := slices.IndexFunc(found, func(o killedObject) bool { return o.Metadata.Name == key.name })
	matches := func(write int) bool {
		if i < 0 {
			return key.deletes(write)
		}
		return found[i].Data.N == strconv.Itoa(write)
	}
	candidates := []int{key.applied}
	if compacted {
		candidates = []int{key.acked, key.tried}
	}
	j := slices.IndexFunc(candidates, matches)
	if j < 0 {
		k.failf("%s: found %+v, want that of write %v", key.name, found, candidates)
	}
	key.applied, key.acked, key.tried, key.version = candidates[j], candidates[j], candidates[j], ""
	if i >= 0 {
		key.version = found[i].Metadata.ResourceVersion
	}
}
