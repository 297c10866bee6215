// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package storagetest

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/steer-dev/steer/storage"
)

// Servers is how the suite of elections makes stores.
type Servers struct {
	// Open returns n stores on one new, empty database. The suite closes them.
	Open func(t *testing.T, n int) []storage.Elector
	// Expire ends the term of the leader in the database, without the store that has it.
	Expire func(t *testing.T, leader storage.Elector)
}

// Elections runs the conformance suite of [storage.Elector].
func Elections(t *testing.T, servers Servers) {
	for _, c := range []struct {
		sentence string
		prove    func(e *election)
	}{
		{"a store that does not lead refuses writes and serves reads", refusals},
		{"the store that leads writes, and all others read it", onlyLeaders},
		{"one store leads at a time, and another after its term was resigned", successions},
		{"Close of the leader ends its term", closings},
		{"every store knows who leads", announcements},
		{"a campaign ends with its context", abandoned},
		{"when a term begins, the store has all writes of earlier ones", handovers},
		{"a leader whose term has ended is refused whatever it expects", fences},
		{"a term that ran out is done, and can be followed by one of the same store", returns},
		{"no acknowledged write is lost over changes of leader", counting},
	} {
		t.Run(c.sentence, func(t *testing.T) {
			t.Parallel()
			c.prove(&election{T: t, servers: servers})
		})
	}
}

// patience bounds what is expected to happen.
const patience = time.Minute

// election is a test with stores of one database.
type election struct {
	*testing.T
	servers Servers
	stores  []storage.Elector
}

// open opens n stores.
func (e *election) open(n int) {
	e.stores = e.servers.Open(e.T, n)
	for _, s := range e.stores {
		e.Cleanup(func() { s.Close() })
	}
}

// member returns the name of a store in its campaigns.
func member(i int) storage.Member {
	return storage.Member{Identity: fmt.Sprint("server-", i), Address: fmt.Sprintf("10.0.0.%d:6443", i)}
}

// campaign makes a store the leader.
func (e *election) campaign(i int) storage.Term {
	e.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	term, err := e.stores[i].Campaign(ctx, member(i))
	if err != nil {
		e.Fatalf("campaign of store %d: %v", i, err)
	}
	return term
}

// resign ends a term.
func (e *election) resign(term storage.Term) {
	e.Helper()
	if err := term.Resign(context.Background()); err != nil {
		e.Fatalf("resign: %v", err)
	}
}

// put writes with a store.
func (e *election) put(i int, name, value string) *storage.Record {
	e.Helper()
	rec, err := e.stores[i].Commit(context.Background(), storage.Write{Key: key("b", name), Value: []byte(value), Expect: storage.AnyRevision})
	if err != nil {
		e.Fatalf("write with store %d: %v", i, err)
	}
	return rec
}

// refused fails unless a write of a store is refused because it does not lead.
func (e *election) refused(i int, w storage.Write) {
	e.Helper()
	if rec, err := e.stores[i].Commit(context.Background(), w); !errors.Is(err, storage.ErrNotLeader) {
		e.Fatalf("write with store %d: got %v, %v, want ErrNotLeader", i, rec, err)
	}
}

// read returns a value after a Sync of a store; "" if there is none.
func (e *election) read(i int, name string) string {
	e.Helper()
	v, err := e.stores[i].View(context.Background(), 0)
	if err != nil {
		e.Fatalf("read with store %d: %v", i, err)
	}
	if rec := v.Get(key("b", name)); rec != nil {
		return string(rec.Value)
	}
	return ""
}

// done fails unless a term ends.
func (e *election) done(term storage.Term) {
	e.Helper()
	select {
	case <-term.Done():
	case <-time.After(patience):
		e.Fatal("the term does not end")
	}
}

// follows fails unless a store learns that a member leads in a term, or that none does.
func (e *election) follows(i int, want storage.Leader) {
	e.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		got, changed := e.stores[i].Leader()
		if got == want {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			e.Fatalf("store %d has the leader %v, want %v", i, got, want)
		}
	}
}

func refusals(e *election) {
	e.open(2)
	w := storage.Write{Key: key("b", "n"), Value: []byte("1"), Expect: storage.AnyRevision}
	e.refused(0, w)
	e.campaign(0)
	e.refused(1, w)
	if got := e.read(1, "n") + e.read(0, "n"); got != "" {
		e.Errorf("a refused write made %q", got)
	}
	cursor, err := e.stores[1].Watch(storage.Range{Bucket: "b"}, e.stores[1].Latest().Revision())
	if err != nil {
		e.Fatal(err)
	}
	defer cursor.Close()
	rec := e.put(0, "n", "2")
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if batch, err := cursor.Next(ctx); err != nil || len(batch.Events) != 1 || batch.Events[0].Record.Modified != rec.Modified {
		e.Errorf("watch: %v, %v", batch, err)
	}
	if err := e.stores[1].Health(); err != nil {
		e.Errorf("a store that does not lead is unhealthy: %v", err)
	}
}

func onlyLeaders(e *election) {
	e.open(3)
	term := e.campaign(1)
	if rec := e.put(1, "n", "1"); rec.Modified <= term.Revision() {
		e.Errorf("a write of the term %d has revision %d", term.Revision(), rec.Modified)
	}
	for i := range e.stores {
		if got := e.read(i, "n"); got != "1" {
			e.Errorf("store %d reads %q", i, got)
		}
	}
}

func successions(e *election) {
	e.open(2)
	first := e.campaign(0)
	second := make(chan storage.Term)
	go func() {
		defer close(second)
		if term, err := e.stores[1].Campaign(context.Background(), member(1)); err == nil {
			second <- term
		}
	}()
	for i := range 20 {
		e.put(0, "n", fmt.Sprint(i))
	}
	select {
	case <-second:
		e.Fatal("two stores lead, or a campaign failed")
	default:
	}
	last := e.put(0, "n", "last")
	e.resign(first)
	e.resign(first)
	e.done(first)
	term := <-second
	if term == nil {
		e.Fatal("the campaign failed")
	}
	if term.Revision() <= last.Modified {
		e.Errorf("the term begins at %d, the last write of the one before is at %d", term.Revision(), last.Modified)
	}
	e.refused(0, storage.Write{Key: key("b", "n"), Value: []byte("x"), Expect: storage.AnyRevision})
	e.put(1, "n", "next")
}

func closings(e *election) {
	e.open(2)
	term := e.campaign(0)
	e.put(0, "n", "1")
	if err := e.stores[0].Close(); err != nil {
		e.Fatal(err)
	}
	e.done(term)
	e.campaign(1)
	e.put(1, "n", "2")
}

func announcements(e *election) {
	e.open(3)
	for i := range e.stores {
		if got, _ := e.stores[i].Leader(); got != (storage.Leader{}) {
			e.Errorf("before the first term store %d has the leader %v", i, got)
		}
	}
	for _, leader := range []int{2, 0} {
		term := e.campaign(leader)
		for i := range e.stores {
			e.follows(i, storage.Leader{Member: member(leader), Term: term.Revision()})
		}
		e.resign(term)
		for i := range e.stores {
			e.follows(i, storage.Leader{})
		}
	}
	e.campaign(1)
	at := e.put(1, "n", "1").Modified
	if e.read(2, "n") != "1" {
		e.Error("the write is not read")
	}
	if leader, _ := e.stores[2].Leader(); leader.Member != member(1) || leader.Term >= at {
		e.Errorf("a store that shows a write has the leader %v", leader)
	}
}

func abandoned(e *election) {
	e.open(2)
	e.campaign(0)
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if _, err := e.stores[1].Campaign(ctx, member(1)); !errors.Is(err, context.DeadlineExceeded) {
		e.Fatalf("got error %v, want that of the context", err)
	}
	e.put(0, "n", "1")
	e.resign(e.campaignAfter(0, 1))
}

// campaignAfter closes a store and makes another the leader.
func (e *election) campaignAfter(closed, next int) storage.Term {
	e.Helper()
	if err := e.stores[closed].Close(); err != nil {
		e.Fatal(err)
	}
	return e.campaign(next)
}

func handovers(e *election) {
	e.open(2)
	for round := range 10 {
		i := round % 2
		term := e.campaign(i)
		if round > 0 {
			for n := range 20 {
				if rec := e.stores[i].Get(key("b", fmt.Sprint(n))); rec == nil || string(rec.Value) != fmt.Sprint(round-1) {
					e.Fatalf("round %d: the new leader has %v", round, rec)
				}
			}
		}
		for n := range 20 {
			e.put(i, fmt.Sprint(n), fmt.Sprint(round))
		}
		e.resign(term)
	}
}

func fences(e *election) {
	e.open(2)
	e.campaign(0)
	at := e.put(0, "n", "1").Modified
	e.servers.Expire(e.T, e.stores[0])
	e.campaign(1)
	if got := string(e.stores[1].Get(key("b", "n")).Value); got != "1" {
		e.Fatalf("the new leader reads %q", got)
	}
	for _, w := range []storage.Write{
		{Key: key("b", "n"), Value: []byte("x"), Expect: storage.AnyRevision},
		{Key: key("b", "n"), Value: []byte("x"), Expect: at},
		{Key: key("b", "n"), Value: []byte("x"), Expect: storage.Absent},
		{Key: key("b", "n"), Value: nil, Expect: at + 1<<40},
		{Key: key("b", "m"), Value: []byte("x"), Expect: storage.Absent, While: storage.Condition{Key: key("b", "n"), At: at + 1<<40}},
	} {
		e.refused(0, w)
	}
	if got := e.read(1, "n") + e.read(1, "m"); got != "1" {
		e.Errorf("the store that does not lead wrote: %q", got)
	}
	e.put(1, "n", "2")
}

func returns(e *election) {
	e.open(1)
	first := e.campaign(0)
	e.put(0, "n", "1")
	e.servers.Expire(e.T, e.stores[0])
	// Whether by the renewal of the lease or by a write, the store learns of it.
	_, err := e.stores[0].Commit(context.Background(), storage.Write{Key: key("b", "n"), Value: []byte("x"), Expect: storage.AnyRevision})
	if !errors.Is(err, storage.ErrNotLeader) {
		e.Errorf("got error %v, want ErrNotLeader", err)
	}
	e.done(first)
	second := e.campaign(0)
	if second.Revision() <= first.Revision() {
		e.Errorf("the second term begins at %d, the first at %d", second.Revision(), first.Revision())
	}
	e.put(0, "n", "2")
}

// counting has three stores that lead in turn, and count in one key while they do; some
// terms are resigned and some end in the database under the hands of the leader.
func counting(e *election) {
	e.open(3)
	const terms = 12
	var (
		servers      sync.WaitGroup
		mu           sync.Mutex
		acknowledged = map[int]bool{}
	)
	count := func(i int) (failed error) {
		n := 0
		if rec := e.stores[i].Get(key("b", "n")); rec != nil {
			n, _ = strconv.Atoi(string(rec.Value))
		}
		mu.Lock()
		for k := range acknowledged {
			if k > n {
				failed = fmt.Errorf("store %d counts from %d after %d was acknowledged", i, n, k)
			}
		}
		mu.Unlock()
		if failed != nil {
			return failed
		}
		for range 25 {
			if _, err := e.stores[i].Commit(context.Background(), storage.Write{
				Key: key("b", "n"), Value: []byte(strconv.Itoa(n + 1)), Expect: storage.AnyRevision,
			}); err != nil {
				return err
			}
			n++
			mu.Lock()
			acknowledged[n] = true
			mu.Unlock()
		}
		return nil
	}
	for i := range e.stores {
		servers.Go(func() {
			for round := range terms / len(e.stores) {
				ctx, cancel := context.WithTimeout(context.Background(), patience)
				term, err := e.stores[i].Campaign(ctx, member(i))
				cancel()
				if err != nil {
					e.Errorf("campaign of store %d: %v", i, err)
					return
				}
				if err := count(i); err != nil {
					e.Error(err)
				}
				if round%2 == i%2 {
					e.servers.Expire(e.T, e.stores[i])
					// What it reads may be older now than what the next leader has acknowledged.
					e.refused(i, storage.Write{Key: key("b", "n"), Value: []byte("0"), Expect: storage.AnyRevision})
					e.done(term)
					continue
				}
				e.resign(term)
			}
		})
	}
	servers.Wait()
	if got, want := e.read(0, "n"), strconv.Itoa(terms*25); got != want {
		e.Errorf("counted to %s, want %s", got, want)
	}
}
