// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"github.com/steer-dev/steer/storage"
)

// Options of a store. All but Endpoints have defaults.
type Options struct {
	// Endpoints are the client URLs of the members, such as https://10.0.0.1:2379.
	Endpoints []string
	// TLS has the authority of the members and the certificate of this client. nil: as the
	// system has it, where an endpoint has https.
	TLS *tls.Config
	// Prefix of the keys. Stores of one prefix share their data. Empty: /steer.
	Prefix string
	// LeaseTime is how long a leader that is not heard of keeps others from leading; etcd
	// counts it in seconds. 0: 15 seconds.
	LeaseTime time.Duration
	// HistoryAge and HistoryBytes are those of [storage.MemoryOptions]. The leader compacts
	// etcd, with all its prefixes, up to what is older than HistoryAge.
	HistoryAge   time.Duration
	HistoryBytes int
	// NoCompaction leaves etcd as it is: another program compacts it, or it does so itself.
	NoCompaction bool
	// RevisionFile keeps what was seen last, so that Open recognizes an etcd that was restored
	// to before it. Open makes its folder. A file that is damaged or cannot be written is an
	// error, and so is one that is gone: a file beside it, with .owner at the end of its name,
	// says that it was there. A store that has lost both is as a new one. Empty: only a store
	// that is open recognizes it.
	RevisionFile string
	// Log receives what no caller sees. nil: nothing is logged.
	Log *slog.Logger

	// keepAlive is how long a connection may be silent before it is tested. 0: 10 seconds.
	keepAlive time.Duration
}

// requestTime bounds requests that are of the store and not of a caller.
const requestTime = 5 * time.Second

// openTime bounds the first request.
const openTime = 30 * time.Second

// maxRequest is the size of a write that the client sends; members have a limit of their
// own, --max-request-bytes.
const maxRequest = storage.MaxValue + 1<<20

// Store is a [storage.Elector] on etcd.
type Store struct {
	client  *clientv3.Client
	options Options
	layout  layout
	base    based // set by own
	mirror  *storage.Mirror
	reads   reads
	// reached is the newest revision that the mirror has.
	reached atomic.Int64
	// streams is how many watches the client has opened, and attested how many of them were
	// of the history of the mirror; the follower alone uses that.
	streams, attested atomic.Int64

	ctx     context.Context // the life of the store
	end     context.CancelFunc
	running sync.WaitGroup
	closing sync.Once
	failed  error // of Close

	// past is the newest revision when the store was opened; what is at or below it has
	// happened at the time of the clock before it. Both are used by the follower alone.
	past storage.Revision

	mu      sync.Mutex
	closed  bool
	lost    error // why the store is of no use any more
	trouble error // why the mirror does not follow at the moment
	stream  stream
	leading leading
	clock   clock
	last    witness // set before reached
}

// Open opens the store: it returns when the store has what etcd had when Open was called.
func Open(ctx context.Context, o Options) (*Store, error) {
	o.HistoryAge = cmp.Or(o.HistoryAge, 5*time.Minute)
	o.LeaseTime = cmp.Or(o.LeaseTime, 15*time.Second)
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	s, err := connect(o)
	if err != nil {
		return nil, err
	}
	if err := s.open(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// connect returns a store that has only its client.
func connect(o Options) (*Store, error) {
	s := &Store{options: o, layout: newLayout(cmp.Or(o.Prefix, "/steer"))}
	client, err := clientv3.New(clientv3.Config{
		Endpoints: o.Endpoints, TLS: o.TLS, Logger: zap.NewNop(),
		DialTimeout: requestTime, DialKeepAliveTime: cmp.Or(o.keepAlive, 10*time.Second), DialKeepAliveTimeout: requestTime, PermitWithoutStream: true,
		MaxCallSendMsgSize: maxRequest, MaxCallRecvMsgSize: math.MaxInt32,
		// A member that is back is found within seconds, also after a long time.
		DialOptions: []grpc.DialOption{grpc.WithChainStreamInterceptor(s.countStreams), grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 2 * time.Second},
			MinConnectTimeout: requestTime,
		})},
	})
	if err != nil {
		return nil, fmt.Errorf("etcd: connect to %v: %w", o.Endpoints, err)
	}
	s.client = client
	s.ctx, s.end = context.WithCancel(context.Background())
	s.leading.elected, s.leading.changed = make(chan struct{}), make(chan struct{})
	return s, nil
}

// open fills the mirror and starts what keeps it.
func (s *Store) open(ctx context.Context) error {
	asked := time.Now()
	since, now, err := s.own(ctx)
	if err != nil {
		return err
	}
	c, err := s.loadPast(ctx, since)
	if err != nil {
		return err
	}
	s.mirror = storage.NewMirror(storage.MemoryOptions{From: c, HistoryAge: s.options.HistoryAge, HistoryBytes: s.options.HistoryBytes})
	s.reached.Store(int64(c.revision))
	s.past = now
	s.adopt(c)
	s.running.Go(s.follow)
	if err := s.reach(ctx, now); err != nil {
		return fmt.Errorf("etcd: read the history: %w", err)
	}
	s.reads.confirm(asked)
	if err := s.reads.write(s.options.RevisionFile, s.seen()); err != nil {
		return err
	}
	s.running.Go(s.watchOver)
	return nil
}

// ownership is the value of the key that marks a prefix as that of a store.
type ownership struct {
	Format int    `json:"format"`
	ID     string `json:"id"`
	// Base is added to the revisions of etcd.
	Base based `json:"base,omitempty"`
	// Restoring is set while the data is replaced by [Restore].
	Restoring bool `json:"restoring,omitempty"`
}

// format is the version of the keys and values.
const format = 1

// own makes the prefix that of this store unless it is that of another program. It
// returns the revision at which it became ours, and the newest one.
func (s *Store) own(ctx context.Context) (since, now storage.Revision, err error) {
	id := rand.Text()
	mine, err := json.Marshal(ownership{Format: format, ID: id})
	if err != nil {
		return 0, 0, fmt.Errorf("etcd: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, openTime)
	defer cancel()
	prefix := string(s.layout)
	owner, terms := clientv3.OpGet(s.layout.owner()), clientv3.OpGet(s.layout.terms())
	resp, err := s.unhurried(ctx, s.client.Txn(ctx).Then(owner, terms, clientv3.OpGet(prefix, clientv3.WithPrefix(), clientv3.WithLimit(1), clientv3.WithKeysOnly())))
	if err == nil && len(resp.Responses[2].GetResponseRange().Kvs) == 0 {
		// A comparison of a range reads all of it in every member: there is nothing in this one.
		resp, err = s.unhurried(ctx, s.client.Txn(ctx).
			If(clientv3.Compare(clientv3.CreateRevision(prefix).WithPrefix(), "=", 0)).
			Then(clientv3.OpPut(s.layout.owner(), string(mine))).Else(owner, terms))
		if err == nil && resp.Succeeded {
			now = storage.Revision(resp.Header.Revision)
			return now, now, s.remember(ctx, id, now, nil)
		}
	}
	if err != nil {
		return 0, 0, fmt.Errorf("etcd: ask %v: %w", s.options.Endpoints, err)
	}
	found := resp.Responses[0].GetResponseRange().Kvs
	o, err := s.parseOwner(found)
	if err != nil {
		return 0, 0, err
	}
	s.base = o.Base
	s.base.use(s.client)
	s.base.keys(found[0])
	now = storage.Revision(resp.Header.Revision) + storage.Revision(s.base)
	var history lineage
	if kvs := resp.Responses[1].GetResponseRange().Kvs; len(kvs) > 0 {
		s.base.keys(kvs[0])
		history = lineageOf(kvs[0])
	}
	return storage.Revision(found[0].ModRevision), now, s.remember(ctx, o.ID, now, history)
}

// unhurried commits a transaction, again while etcd does not answer in time: it may have a
// large one to apply.
func (s *Store) unhurried(ctx context.Context, txn clientv3.Txn) (*clientv3.TxnResponse, error) {
	for {
		resp, err := txn.Commit()
		if err == nil || !isLate(err) || ctx.Err() != nil || s.ctx.Err() != nil {
			return resp, err
		}
		s.pause(retryAfter)
	}
}

// parseOwner returns the ownership of a prefix that has keys.
func (s *Store) parseOwner(found []*mvccpb.KeyValue) (o ownership, err error) {
	switch {
	case len(found) == 0:
		return o, fmt.Errorf("%w (%s)", ErrForeign, s.layout)
	case json.Unmarshal(found[0].Value, &o) != nil || o.Format != format:
		return o, fmt.Errorf("etcd: the format of the data at %s is %d, this program knows %d: use the program that wrote it", s.layout, o.Format, format)
	case o.Restoring:
		return o, fmt.Errorf("%w (%s)", ErrUnfinished, s.layout)
	}
	return o, nil
}

// loadPast reads the state at the beginning of the history, so that the follower reads the
// history itself; since is the oldest revision at which there was a state.
func (s *Store) loadPast(ctx context.Context, since storage.Revision) (*content, error) {
	for range 3 { // what is to be read may be compacted meanwhile
		from := since
		resp, err := s.client.Get(ctx, s.layout.clock())
		if err != nil {
			return nil, fmt.Errorf("etcd: read the clock of %s: %w", s.layout, err)
		}
		if len(resp.Kvs) > 0 {
			from = max(from, parseTick(resp.Kvs[0].Value).From)
		}
		c, err := s.load(ctx, from, func(storage.Key) *storage.Record { return nil })
		if !errors.Is(err, rpctypes.ErrCompacted) {
			return c, err
		}
	}
	return s.load(ctx, 0, func(storage.Key) *storage.Record { return nil })
}

// usable returns an error unless ctx and the store are in use.
func (s *Store) usable(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return storage.ErrClosed
	}
	return s.lost
}

// lose makes the store useless until it is opened again.
func (s *Store) lose(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lost == nil {
		s.lost = err
	}
	return s.lost
}

// Latest implements [storage.Viewer].
func (s *Store) Latest() storage.View { return s.mirror.Latest() }

// Get implements [storage.Viewer].
func (s *Store) Get(key storage.Key) *storage.Record { return s.mirror.Get(key) }

// LastModified implements [storage.Viewer].
func (s *Store) LastModified(buckets ...string) storage.Revision {
	return s.mirror.LastModified(buckets...)
}

// View implements [storage.Viewer].
func (s *Store) View(ctx context.Context, at storage.Revision) (storage.View, error) {
	if at == 0 {
		if err := s.Sync(ctx, 0); err != nil {
			return nil, err
		}
	}
	return s.mirror.View(at)
}

// Watch implements [storage.Watcher].
func (s *Store) Watch(r storage.Range, after storage.Revision) (storage.Cursor, error) {
	return s.mirror.Watch(r, after)
}

// Compact implements [storage.Keeper]. It drops what this store keeps; etcd is compacted by
// age.
func (s *Store) Compact(_ context.Context, below storage.Revision) error {
	return s.mirror.Compact(below)
}

// Health implements [storage.Keeper].
func (s *Store) Health() error {
	if err := s.usable(context.Background()); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.trouble != nil {
		return s.trouble
	}
	return s.reads.health()
}

// Close implements [storage.Keeper]. It resigns.
func (s *Store) Close() error {
	s.closing.Do(func() {
		s.mu.Lock()
		s.closed = true
		t := s.leading.term
		s.mu.Unlock()
		if t != nil {
			ctx, cancel := context.WithTimeout(context.Background(), requestTime)
			defer cancel()
			_ = t.Resign(ctx) // else the lease runs out
		}
		s.end()
		if s.mirror != nil {
			s.mirror.Close()
		}
		s.failed = s.client.Close()
		s.running.Wait()
	})
	return s.failed
}
