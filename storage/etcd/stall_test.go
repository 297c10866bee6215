// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/steer-dev/steer/storage"
	"github.com/steer-dev/steer/storage/etcd"
)

// A connection that nothing answers on is one to a member that is paused or cut off.
func TestStoreLeavesConnectionsThatNothingAnswersOn(t *testing.T) {
	t.Parallel()
	m := ownMember(t, "--unsafe-no-fsync")
	o := m.options()
	writer := lead(t, o)
	first, second := newProxy(t, m, "first"), newProxy(t, m, "second")
	o.Endpoints = []string{"unix://" + first.socket, "unix://" + second.socket}
	s := open(t, o.WithoutKeepAlive())
	for i, network := range []*proxy{first, second} {
		mustPut(t, writer, "n", fmt.Sprint(i))
		network.freeze()
		eventually(t, func(ctx context.Context) error { return s.Sync(ctx, 0) })
		want := mustPut(t, writer, "n", "frozen").Modified
		eventually(t, func(ctx context.Context) error { return s.Sync(ctx, 0) })
		if got := s.Get(storage.Key{Bucket: "b", Name: "n"}).Modified; got != want {
			t.Errorf("revision %d after a Sync, want %d", got, want)
		}
		network.cut()
		network.heal(t)
	}
}

func TestCommitEndsWhileEtcdIsPaused(t *testing.T) {
	t.Parallel()
	m := ownMember(t, "--unsafe-no-fsync")
	s := lead(t, m.options().WithoutKeepAlive())
	mustPut(t, s, "n", "1")
	m.pause(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := s.Commit(ctx, put("n", "2")); err == nil || ctx.Err() != nil || !strings.Contains(err.Error(), "whether it was made is unknown") {
		t.Errorf("got error %v", err)
	}
	m.resume(t)
	putLeading(t, s, "n", "3")
}

// Half of the first attempts are made, and their answers lost.
func TestCommitSucceedsWhereTheFirstAnswerIsLost(t *testing.T) {
	t.Parallel()
	m := ownMember(t, "--unsafe-no-fsync")
	o := m.options()
	first, second := newProxy(t, m, "first"), newProxy(t, m, "second")
	o.Endpoints = []string{"unix://" + first.socket, "unix://" + second.socket}
	s := lead(t, o.WithoutKeepAlive())
	from := s.Latest().Revision()
	first.silence()
	eventually(t, func(ctx context.Context) error { return s.Sync(ctx, 0) })
	// The connections take turns: without a repetition every second write fails.
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	writes, succeeded := 0, 0
	for row := 0; row < 4; writes++ {
		w := put(fmt.Sprint(writes), "1")
		w.Expect = storage.Absent
		_, err := s.Commit(ctx, w)
		switch {
		case err == nil:
			succeeded++
			row++
		case ctx.Err() == nil && strings.Contains(err.Error(), "unknown"): // the machine is slow
			row = 0
		default:
			t.Fatal(err)
		}
	}
	cursor, err := s.Watch(storage.Range{Bucket: "b"}, from)
	if err != nil {
		t.Fatal(err)
	}
	defer cursor.Close()
	batch, err := cursor.Poll()
	if err != nil || len(batch.Events) < succeeded || len(batch.Events) > writes {
		t.Errorf("there are %d events of %d writes, %v", len(batch.Events), succeeded, err)
	}
}

// awaitSeen waits until a file says that a revision was seen, and a store has it too.
func awaitSeen(t *testing.T, file string, at storage.Revision, too *etcd.Store) {
	t.Helper()
	eventually(t, func(ctx context.Context) error {
		if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), fmt.Sprintf(`"revision":%d}`, at)) {
			return fmt.Errorf("the file has %s, %w", text, err)
		}
		return too.Sync(ctx, 0)
	})
}

// wantRestored expects that a store which was closed, and one that was cut off, find that etcd
// was restored.
func wantRestored(t *testing.T, closed etcd.Options, network *proxy, cutOff *etcd.Store) {
	t.Helper()
	if s, err := etcd.Open(t.Context(), closed); !errors.Is(err, etcd.ErrRestored) {
		t.Errorf("the store that was closed: got error %v, want ErrRestored", err)
		if err == nil {
			_ = s.Close()
		}
	}
	network.heal(t)
	eventually(t, func(ctx context.Context) error {
		if err := cutOff.Sync(ctx, 0); !errors.Is(err, etcd.ErrRestored) {
			return fmt.Errorf("the store that was cut off: got error %w, want ErrRestored", err)
		}
		return nil
	})
}

// One store is closed, another one cut off while etcd is restored and grows past what they
// have seen.
func TestStoreRefusesAnEtcdThatWentBackAndGrew(t *testing.T) {
	t.Parallel()
	m := ownMember(t, "--unsafe-no-fsync")
	o := m.options()
	o.LeaseTime = 2e9 // of the leader in the backup
	closed, cutOff := o, o
	closed.RevisionFile = filepath.Join(t.TempDir(), "revision")
	network := newProxy(t, m, "proxy")
	cutOff.Endpoints = []string{"unix://" + network.socket}
	first, second := lead(t, closed), open(t, cutOff)
	mustPut(t, first, "n", "1")
	m.kill()
	data, backup := filepath.Join(m.dir, "data"), filepath.Join(m.dir, "backup")
	copyDir(t, data, backup)
	if err := m.start(); err != nil {
		t.Fatal(err)
	}
	var at storage.Revision
	for range 10 {
		at = putLeading(t, first, "n", "2").Modified
	}
	awaitSeen(t, closed.RevisionFile, at, second)
	network.cut()
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	m.kill()
	copyDir(t, backup, data)
	if err := m.start(); err != nil {
		t.Fatal(err)
	}
	other := lead(t, o)
	for range 20 {
		putLeading(t, other, "n", "3")
	}
	if now := other.Latest().Revision(); now <= at {
		t.Fatalf("etcd has only grown to %d, not past %d", now, at)
	}
	wantRestored(t, closed, network, second)
}

func TestStoreKnowsThatTheLeaderHasResignedAfterAGap(t *testing.T) {
	t.Parallel()
	m := ownMember(t, "--unsafe-no-fsync")
	o := m.options()
	writer := open(t, o)
	term, err := writer.Campaign(t.Context(), storage.Member{Identity: "one"})
	if err != nil {
		t.Fatal(err)
	}
	network := newProxy(t, m, "proxy")
	o.Endpoints = []string{"unix://" + network.socket}
	s := open(t, o)
	if leader, _ := s.Leader(); leader.Identity != "one" {
		t.Fatalf("the leader is %v", leader)
	}
	network.cut()
	mustPut(t, writer, "n", "1")
	if err := term.Resign(t.Context()); err != nil {
		t.Fatal(err)
	}
	resp, err := writer.Client().Get(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := writer.Client().Compact(t.Context(), resp.Header.Revision); err != nil {
		t.Fatal(err)
	}
	network.heal(t)
	eventually(t, func(ctx context.Context) error { return s.Sync(ctx, 0) })
	if leader, _ := s.Leader(); leader.Term != 0 {
		t.Errorf("the leader is %v, want none", leader)
	}
}
