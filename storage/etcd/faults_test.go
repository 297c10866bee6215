// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/steer-dev/steer/storage"
	"github.com/steer-dev/steer/storage/etcd"
)

// patience bounds what is expected to happen.
const patience = time.Minute

// ownMember returns an etcd that the test may break.
func ownMember(t *testing.T, flags ...string) *member {
	t.Helper()
	needsEtcd(t)
	dir, err := os.MkdirTemp("", "steer-etcd-") //nolint:usetesting // the path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	m, err := newMember(dir, flags...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		m.kill()
		if t.Failed() {
			text, err := os.ReadFile(filepath.Join(dir, "log"))
			t.Logf("etcd: %s, %v", text, err)
		}
		_ = os.RemoveAll(dir)
	})
	return m
}

// put returns a write that no state of the key refuses.
func put(name, value string) storage.Write {
	return storage.Write{Key: storage.Key{Bucket: "b", Name: name}, Value: []byte(value), Expect: storage.AnyRevision}
}

// mustPut writes within patience.
func mustPut(t *testing.T, s storage.Store, name, value string) *storage.Record {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	rec, err := s.Commit(ctx, put(name, value))
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

// putLeading is mustPut for a store whose term may have ended.
func putLeading(t *testing.T, s *etcd.Store, name, value string) *storage.Record {
	t.Helper()
	var rec *storage.Record
	eventually(t, func(ctx context.Context) (err error) {
		rec, err = s.Commit(ctx, put(name, value))
		if errors.Is(err, storage.ErrNotLeader) {
			_, again := s.Campaign(ctx, storage.Member{Identity: "again"})
			err = errors.Join(err, again)
		}
		return err
	})
	return rec
}

// eventually calls f until it returns nil.
func eventually(t *testing.T, f func(ctx context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		err := f(ctx)
		if err == nil {
			return
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			t.Fatal(err)
		}
	}
}

func TestStoreKeepsAcknowledgedWritesWhenEtcdIsKilled(t *testing.T) {
	t.Parallel()
	m := ownMember(t)
	o := m.options()
	s := lead(t, o)
	cursor, err := s.Watch(storage.Range{Bucket: "b"}, s.Latest().Revision())
	if err != nil {
		t.Fatal(err)
	}
	defer cursor.Close()
	written := []*storage.Record{}
	write := func(n int) {
		for range n {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			rec, err := s.Commit(ctx, put(fmt.Sprint(len(written)%7), fmt.Sprint(len(written))))
			cancel()
			switch {
			case err == nil:
				written = append(written, rec)
			case errors.Is(err, storage.ErrNotLeader):
				if _, err := s.Campaign(t.Context(), storage.Member{Identity: "one"}); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	for range 3 {
		write(50)
		killed := make(chan error)
		go func() {
			m.kill()
			killed <- m.start()
		}()
		write(20)
		if err := <-killed; err != nil {
			t.Fatal(err)
		}
		eventually(t, func(ctx context.Context) error { return s.Sync(ctx, 0) })
	}
	write(10)
	if err := s.Sync(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	// The watch has every acknowledged write, once and in order. Others may be between them:
	// of those that failed the outcome is unknown.
	var events []storage.Event
	for {
		batch, err := cursor.Poll()
		if err != nil {
			t.Fatal(err)
		}
		if len(batch.Events) == 0 {
			break
		}
		events = append(events, batch.Events...)
	}
	last := storage.Revision(0)
	next := 0
	for _, e := range events {
		if e.Record.Modified <= last {
			t.Fatalf("revision %d follows %d", e.Record.Modified, last)
		}
		last = e.Record.Modified
		if next < len(written) && e.Record == written[next] {
			next++
		}
	}
	if next < len(written) {
		t.Errorf("the write %d of %d is not among the %d events", next, len(written), len(events))
	}
	if len(written) == 0 {
		t.Error("no write succeeded")
	}
	// Another store reads the same from etcd.
	again, err := open(t, o).View(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	for name := range 7 {
		key := storage.Key{Bucket: "b", Name: fmt.Sprint(name)}
		if got, want := again.Get(key), s.Get(key); got.Modified != want.Modified || string(got.Value) != string(want.Value) {
			t.Errorf("%v: another store has %v, this one %v", key, got, want)
		}
	}
}

func TestStoreContinuesTheWatchesOfAnEarlierProcess(t *testing.T) {
	t.Parallel()
	o := sharedMember(t).options()
	first := lead(t, o)
	from := mustPut(t, first, "n", "0").Modified
	for i := range 100 {
		mustPut(t, first, "n", fmt.Sprint(i+1))
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second := open(t, o)
	cursor, err := second.Watch(storage.Range{Bucket: "b"}, from)
	if err != nil {
		t.Fatal(err)
	}
	defer cursor.Close()
	batch, err := cursor.Poll()
	if err != nil || len(batch.Events) != 100 || string(batch.Events[99].Record.Value) != "100" {
		t.Errorf("got %d events, %v", len(batch.Events), err)
	}
	old, err := second.View(t.Context(), from)
	if err != nil || string(old.Get(storage.Key{Bucket: "b", Name: "n"}).Value) != "0" {
		t.Errorf("the view of revision %d: %v", from, err)
	}
}

func TestLeaderCompactsWhatIsOlderThanTheHistory(t *testing.T) {
	t.Parallel()
	o := ownMember(t, "--unsafe-no-fsync").options()
	o.HistoryAge, o.LeaseTime = 2*time.Second, 3*time.Second
	s := lead(t, o)
	first := putLeading(t, s, "n", "0").Modified
	last := first
	eventually(t, func(ctx context.Context) error {
		last = putLeading(t, s, "n", "1").Modified
		if _, err := s.Client().Get(ctx, "x", clientv3.WithRev(int64(first))); !errors.Is(err, rpctypes.ErrCompacted) {
			return fmt.Errorf("revision %d of %d: got error %w, want that it was compacted", first, last, err)
		}
		return nil
	})
	// Another store reads what there is of the history.
	if rec := open(t, o).Get(storage.Key{Bucket: "b", Name: "n"}); rec == nil || rec.Modified != last {
		t.Errorf("got %v, want the write of revision %d", rec, last)
	}
}

func TestOpenRefusesThePrefixOfAnotherProgram(t *testing.T) {
	t.Parallel()
	m := sharedMember(t)
	client := open(t, m.options()).Client()
	o := m.options()
	if _, err := client.Put(t.Context(), o.Prefix+"/pods/default/web", "{}"); err != nil {
		t.Fatal(err)
	}
	if s, err := etcd.Open(t.Context(), o); !errors.Is(err, etcd.ErrForeign) {
		t.Errorf("got %v, %v, want ErrForeign", s, err)
	}
	resp, err := client.Get(t.Context(), o.Prefix+"/", clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil || resp.Count != 1 {
		t.Errorf("the prefix has %v keys, %v", resp, err)
	}
}

func TestStoreIsUnhealthyWhileThePrefixHasAKeyOfAnotherProgram(t *testing.T) {
	t.Parallel()
	o := sharedMember(t).options()
	s := lead(t, o)
	foreign := o.Prefix + "/b/x"
	if _, err := s.Client().Put(t.Context(), foreign, "{}"); err != nil {
		t.Fatal(err)
	}
	eventually(t, func(context.Context) error {
		if err := s.Health(); err == nil || !strings.Contains(err.Error(), foreign) {
			return fmt.Errorf("the health is %w, want the key", err)
		}
		return nil
	})
	if _, err := s.Client().Delete(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	eventually(t, func(ctx context.Context) error { return errors.Join(s.Sync(ctx, 0), s.Health()) })
	mustPut(t, s, "n", "1")
}

func TestStoreRefusesReadsWhileEtcdIsPaused(t *testing.T) {
	t.Parallel()
	m := ownMember(t)
	s := lead(t, m.options())
	mustPut(t, s, "n", "1")
	m.pause(t)
	if err := s.Sync(t.Context(), 0); err == nil {
		t.Error("a consistent read succeeds")
	}
	eventually(t, func(ctx context.Context) error {
		if s.Sync(ctx, 5*time.Second) == nil {
			return errors.New("a read of a state of 5 s ago succeeds")
		}
		return nil
	})
	eventually(t, func(context.Context) error {
		if s.Health() == nil {
			return errors.New("the store is healthy")
		}
		return nil
	})
	m.resume(t)
	eventually(t, func(ctx context.Context) error { return errors.Join(s.Sync(ctx, 0), s.Health()) })
	putLeading(t, s, "n", "2")
}

// copyDir copies a folder of files.
func copyDir(t *testing.T, from, to string) {
	t.Helper()
	if err := os.RemoveAll(to); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
}

func TestStoreRefusesAnEtcdThatWentBack(t *testing.T) {
	t.Parallel()
	m := ownMember(t)
	o := m.options()
	o.RevisionFile = filepath.Join(t.TempDir(), "revision")
	s := lead(t, o)
	mustPut(t, s, "n", "1")
	m.kill()
	data, backup := filepath.Join(m.dir, "data"), filepath.Join(m.dir, "backup")
	copyDir(t, data, backup)
	restart := func() {
		t.Helper()
		if err := m.start(); err != nil {
			t.Fatal(err)
		}
	}
	restart()
	putLeading(t, s, "n", "2")
	at := putLeading(t, s, "n", "3").Modified
	eventually(t, func(context.Context) error {
		if text, err := os.ReadFile(o.RevisionFile); err != nil || !strings.Contains(string(text), fmt.Sprintf(`"revision":%d}`, at)) {
			return fmt.Errorf("the file has %s, %w", text, err)
		}
		return nil
	})
	m.kill()
	copyDir(t, backup, data)
	restart()
	eventually(t, func(ctx context.Context) error {
		if err := s.Sync(ctx, 0); !errors.Is(err, etcd.ErrRestored) {
			return fmt.Errorf("got error %w, want ErrRestored", err)
		}
		return nil
	})
	if _, err := s.Commit(t.Context(), put("n", "4")); !errors.Is(err, etcd.ErrRestored) {
		t.Errorf("a write: got error %v, want ErrRestored", err)
	}
	if err := s.Health(); !errors.Is(err, etcd.ErrRestored) {
		t.Errorf("the health is %v, want ErrRestored", err)
	}
	if got := string(s.Get(storage.Key{Bucket: "b", Name: "n"}).Value); got != "3" {
		t.Errorf("the state has gone back to %s", got)
	}
	if _, err := etcd.Open(t.Context(), o); !errors.Is(err, etcd.ErrRestored) {
		t.Errorf("the next process: got error %v, want ErrRestored", err)
	}
	o.RevisionFile = ""
	if got := string(open(t, o).Get(storage.Key{Bucket: "b", Name: "n"}).Value); got != "1" {
		t.Errorf("without the file the value is %s", got)
	}
}

func TestStoreBeginsAnewAfterARestoreWithABump(t *testing.T) {
	t.Parallel()
	m := ownMember(t)
	etcdutl, err := exec.LookPath(filepath.Join(filepath.Dir(m.binary), "etcdutl"))
	if err != nil {
		if etcdutl, err = exec.LookPath("etcdutl"); err != nil {
			t.Skip("there is no etcdutl")
		}
	}
	o := m.options()
	o.RevisionFile = filepath.Join(t.TempDir(), "revision")
	s := lead(t, o)
	mustPut(t, s, "n", "1")
	snapshot, err := s.Client().Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(snapshot)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(m.dir, "backup")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	after := mustPut(t, s, "n", "2").Modified
	cursor, err := s.Watch(storage.Range{Bucket: "b"}, after)
	if err != nil {
		t.Fatal(err)
	}
	defer cursor.Close()
	m.kill()
	if err := os.RemoveAll(filepath.Join(m.dir, "data")); err != nil {
		t.Fatal(err)
	}
	restore := exec.CommandContext(t.Context(), etcdutl, "snapshot", "restore", file, "--bump-revision=1000000000", "--mark-compacted",
		"--data-dir=data", "--initial-cluster=default=unix://localhost:2", "--initial-advertise-peer-urls=unix://localhost:2")
	restore.Dir = m.dir
	if out, err := restore.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := m.start(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := cursor.Next(ctx); !errors.Is(err, storage.ErrCompacted) {
		t.Errorf("the watch: got error %v, want ErrCompacted", err)
	}
	eventually(t, func(ctx context.Context) error { return errors.Join(s.Sync(ctx, 0), s.Health()) })
	if got := s.Get(storage.Key{Bucket: "b", Name: "n"}); string(got.Value) != "1" {
		t.Errorf("got %s", got.Value)
	}
	if rev := putLeading(t, s, "n", "3").Modified; rev < 1_000_000_000 {
		t.Errorf("the next revision is %d", rev)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	mustPut(t, lead(t, o), "n", "4") // the next process goes on
}

func TestStoreReportsAFullDatabase(t *testing.T) {
	t.Parallel()
	m := ownMember(t, "--quota-backend-bytes=4194304", "--unsafe-no-fsync")
	s := lead(t, m.options())
	value := strings.Repeat("x", 200_000)
	full := false
	for range 100 {
		if _, err := s.Commit(t.Context(), put("n", value)); errors.Is(err, storage.ErrFull) {
			full = true
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if !full {
		t.Fatal("no write is refused")
	}
	if err := s.Sync(t.Context(), 0); err != nil {
		t.Errorf("a read: %v", err)
	}
	client := s.Client()
	if _, err := client.Compact(t.Context(), int64(s.Latest().Revision()), clientv3.WithCompactPhysical()); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Defragment(t.Context(), m.endpoint()); err != nil {
		t.Fatal(err)
	}
	if _, err := client.AlarmDisarm(t.Context(), &clientv3.AlarmMember{}); err != nil {
		t.Fatal(err)
	}
	mustPut(t, s, "n", "1")
}

// proxy is the network between a store and etcd.
type proxy struct {
	to, socket string

	mu       sync.Mutex
	listener net.Listener
	conns    []net.Conn
	frozen   bool
	mute     bool
	running  sync.WaitGroup
}

// newProxy returns a network that is there.
func newProxy(t *testing.T, m *member, name string) *proxy {
	t.Helper()
	p := &proxy{to: filepath.Join(m.dir, "localhost:1"), socket: filepath.Join(m.dir, name)}
	p.heal(t)
	t.Cleanup(p.cut)
	return p
}

func (p *proxy) heal(t *testing.T) {
	t.Helper()
	l, err := net.Listen("unix", p.socket)
	if err != nil {
		t.Fatal(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.listener, p.frozen, p.mute = l, false, false
	p.running.Go(func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			to, err := net.Dial("unix", p.to)
			if err != nil {
				_ = from.Close()
				continue
			}
			p.mu.Lock()
			p.conns = append(p.conns, from, to)
			p.running.Go(func() { _, _ = io.Copy(gate{p, to, false}, from); _ = to.Close() })
			p.running.Go(func() { _, _ = io.Copy(gate{p, from, true}, to); _ = from.Close() })
			p.mu.Unlock()
		}
	})
}

// gate is a connection that drops what is written to it while the network is frozen, or
// mute if it leads to the store.
type gate struct {
	network *proxy
	to      io.Writer
	answers bool
}

func (g gate) Write(b []byte) (int, error) {
	g.network.mu.Lock()
	frozen := g.network.frozen || g.network.mute && g.answers
	g.network.mu.Unlock()
	if frozen {
		return len(b), nil
	}
	return g.to.Write(b)
}

// freeze keeps the connections, and nothing arrives, until the network is cut.
func (p *proxy) freeze() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.frozen = true
}

// silence is freeze for answers alone.
func (p *proxy) silence() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mute = true
}

// cut ends all connections and accepts none.
func (p *proxy) cut() {
	p.mu.Lock()
	_ = p.listener.Close()
	for _, c := range p.conns {
		_ = c.Close()
	}
	p.conns = nil
	p.mu.Unlock()
}

func TestStoreBeginsAnewAfterAGapThatWasCompacted(t *testing.T) {
	t.Parallel()
	m := ownMember(t, "--unsafe-no-fsync")
	o := m.options()
	writer := lead(t, o)
	network := newProxy(t, m, "proxy")
	o.Endpoints = []string{"unix://" + network.socket}
	s := open(t, o)
	same := mustPut(t, writer, "same", "1").Modified
	if err := s.Sync(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	kept := s.Get(storage.Key{Bucket: "b", Name: "same"})
	cursor, err := s.Watch(storage.Range{Bucket: "b"}, same)
	if err != nil {
		t.Fatal(err)
	}
	defer cursor.Close()
	network.cut()
	var last storage.Revision
	for i := range 20 {
		last = mustPut(t, writer, "n", fmt.Sprint(i)).Modified
	}
	if _, err := writer.Client().Compact(t.Context(), int64(last)); err != nil {
		t.Fatal(err)
	}
	network.heal(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := cursor.Next(ctx); !errors.Is(err, storage.ErrCompacted) {
		t.Errorf("the watch: got error %v, want ErrCompacted", err)
	}
	eventually(t, func(ctx context.Context) error { return errors.Join(s.Sync(ctx, 0), s.Health()) })
	if got := string(s.Get(storage.Key{Bucket: "b", Name: "n"}).Value); got != "19" {
		t.Errorf("got %s", got)
	}
	if s.Get(kept.Key) != kept {
		t.Error("a record that did not change is another one")
	}
}

func TestLeaderThatWasCutOffCannotWrite(t *testing.T) {
	t.Parallel()
	m := ownMember(t, "--unsafe-no-fsync")
	network := newProxy(t, m, "proxy")
	o := m.options()
	o.LeaseTime = 10 * time.Second
	other := open(t, o)
	o.Endpoints = []string{"unix://" + network.socket}
	s := open(t, o)
	term, err := s.Campaign(t.Context(), storage.Member{Identity: "cut off"})
	if err != nil {
		t.Fatal(err)
	}
	mustPut(t, s, "n", "1")
	network.cut()
	next, err := other.Campaign(t.Context(), storage.Member{Identity: "other"})
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-term.Done():
	case <-time.After(patience):
		t.Fatal("the term does not end")
	}
	network.heal(t)
	if _, err := s.Commit(t.Context(), put("n", "2")); !errors.Is(err, storage.ErrNotLeader) {
		t.Errorf("got error %v, want ErrNotLeader", err)
	}
	mustPut(t, other, "n", "3")
	eventually(t, func(ctx context.Context) error { return s.Sync(ctx, 0) })
	if leader, _ := s.Leader(); leader.Term != next.Revision() || leader.Identity != "other" {
		t.Errorf("the leader is %v", leader)
	}
}
