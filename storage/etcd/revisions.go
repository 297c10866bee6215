// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/protobuf/proto"
)

// based counts the revisions of etcd from a base, which is that of data that was restored
// from elsewhere: clients have seen revisions up to it, and etcd may begin with 1.
type based int64

// use has the reads and writes of a client count so. It is called before the first request whose revisions matter.
func (b based) use(client *clientv3.Client) {
	if b == 0 {
		return
	}
	client.KV = basedKV{client.KV, b}
}

// watcher returns a new watcher that counts so.
func (b based) watcher(client *clientv3.Client) clientv3.Watcher {
	w := clientv3.NewWatcher(client)
	if b == 0 {
		return w
	}
	return basedWatcher{w, b}
}

// raw returns the revision that etcd has for one of the store. Those at or below the base
// are of no write.
func (b based) raw(revision int64) int64 {
	switch {
	case revision == 0:
		return 0
	case revision <= int64(b):
		return -1
	}
	return revision - int64(b)
}

// from is raw for the beginning of a range of revisions.
func (b based) from(revision int64) int64 {
	if revision = b.raw(revision); revision < 0 {
		return 1
	}
	return revision
}

func (b based) header(h *pb.ResponseHeader) {
	if h != nil {
		h.Revision += int64(b)
	}
}

func (b based) keys(kvs ...*mvccpb.KeyValue) {
	for _, kv := range kvs {
		if kv == nil {
			continue
		}
		if kv.ModRevision += int64(b); kv.CreateRevision != 0 {
			kv.CreateRevision += int64(b)
		}
	}
}

// basedKV is the part of a client that reads and writes. The store uses Get, Put, Txn and
// Compact of it.
type basedKV struct {
	clientv3.KV

	base based
}

// Get implements [clientv3.KV].
func (c basedKV) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	asked := clientv3.OpGet(key, opts...)
	resp, err := c.KV.Get(ctx, key, append(opts[:len(opts):len(opts)], clientv3.WithRev(c.base.from(asked.Rev())))...)
	if err != nil {
		return nil, err
	}
	c.base.header(resp.Header)
	c.base.keys(resp.Kvs...)
	return resp, nil
}

// Put implements [clientv3.KV].
func (c basedKV) Put(ctx context.Context, key, value string, opts ...clientv3.OpOption) (*clientv3.PutResponse, error) {
	resp, err := c.KV.Put(ctx, key, value, opts...)
	if err != nil {
		return nil, err
	}
	c.base.header(resp.Header)
	return resp, nil
}

// Compact implements [clientv3.KV].
func (c basedKV) Compact(ctx context.Context, rev int64, opts ...clientv3.CompactOption) (*clientv3.CompactResponse, error) {
	return c.KV.Compact(ctx, c.base.from(rev), opts...)
}

// Txn implements [clientv3.KV].
func (c basedKV) Txn(ctx context.Context) clientv3.Txn { return basedTxn{c.KV.Txn(ctx), c.base} }

type basedTxn struct {
	clientv3.Txn

	base based
}

// If implements [clientv3.Txn].
func (t basedTxn) If(conditions ...clientv3.Cmp) clientv3.Txn {
	raw := make([]clientv3.Cmp, len(conditions))
	for i, c := range conditions {
		raw[i] = c.Clone()
		compared := raw[i].GetCompare()
		switch target := compared.TargetUnion.(type) {
		case *pb.Compare_ModRevision:
			compared.TargetUnion = &pb.Compare_ModRevision{ModRevision: t.base.raw(target.ModRevision)}
		case *pb.Compare_CreateRevision:
			compared.TargetUnion = &pb.Compare_CreateRevision{CreateRevision: t.base.raw(target.CreateRevision)}
		}
	}
	return basedTxn{t.Txn.If(raw...), t.base}
}

// Then implements [clientv3.Txn].
func (t basedTxn) Then(ops ...clientv3.Op) clientv3.Txn { return basedTxn{t.Txn.Then(ops...), t.base} }

// Else implements [clientv3.Txn].
func (t basedTxn) Else(ops ...clientv3.Op) clientv3.Txn { return basedTxn{t.Txn.Else(ops...), t.base} }

// Commit implements [clientv3.Txn].
func (t basedTxn) Commit() (*clientv3.TxnResponse, error) {
	resp, err := t.Txn.Commit()
	if err != nil {
		return nil, err
	}
	t.base.header(resp.Header)
	for _, r := range resp.Responses {
		if found := r.GetResponseRange(); found != nil {
			t.base.keys(found.Kvs...)
		}
	}
	return resp, nil
}

type basedWatcher struct {
	clientv3.Watcher

	base based
}

// Watch implements [clientv3.Watcher].
func (w basedWatcher) Watch(ctx context.Context, key string, opts ...clientv3.OpOption) clientv3.WatchChan {
	asked := clientv3.OpGet(key, opts...)
	from := w.Watcher.Watch(ctx, key, append(opts[:len(opts):len(opts)], clientv3.WithRev(w.base.from(asked.Rev())))...)
	to := make(chan clientv3.WatchResponse)
	go func() {
		defer close(to)
		for resp := range from {
			// Notifications of progress have one header for all watchers of a stream.
			resp.Header = proto.CloneOf(resp.Header)
			w.base.header(resp.Header)
			if resp.CompactRevision != 0 {
				resp.CompactRevision += int64(w.base)
			}
			for _, e := range resp.Events {
				w.base.keys(e.Kv, e.PrevKv)
			}
			select {
			case to <- resp:
			case <-ctx.Done():
				return
			}
		}
	}()
	return to
}
