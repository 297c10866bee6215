// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// onStream is a watcher whose channels are of one stream.
type onStream struct {
	clientv3.Watcher

	watches chan chan clientv3.WatchResponse
}

func (w onStream) Watch(context.Context, string, ...clientv3.OpOption) clientv3.WatchChan {
	watch := make(chan clientv3.WatchResponse, 1)
	w.watches <- watch
	return watch
}

// TestProgressOfAStreamIsCountedOnce: the client sends notifications of progress to all watchers of a
// stream, with one header.
func TestProgressOfAStreamIsCountedOnce(t *testing.T) {
	t.Parallel()
	stream := onStream{watches: make(chan chan clientv3.WatchResponse, 2)}
	w := basedWatcher{stream, 100}
	watches := []clientv3.WatchChan{w.Watch(t.Context(), "a"), w.Watch(t.Context(), "b")}
	header := &pb.ResponseHeader{Revision: 7}
	for range watches {
		watch := <-stream.watches
		watch <- clientv3.WatchResponse{Header: header}
		close(watch)
	}
	for i, watch := range watches {
		if resp := <-watch; resp.Header.Revision != 107 {
			t.Errorf("watcher %d is told of revision %d, want 107", i, resp.Header.Revision)
		}
	}
	if header.Revision != 7 {
		t.Errorf("the client's header has revision %d now", header.Revision)
	}
}

func TestConditionsAreOfTheRevisionsOfEtcd(t *testing.T) {
	t.Parallel()
	given := []clientv3.Cmp{
		clientv3.Compare(clientv3.ModRevision("a"), "=", 107), clientv3.Compare(clientv3.CreateRevision("b"), "=", 0),
		clientv3.Compare(clientv3.Value("c"), "=", "v"),
	}
	asked := &asking{}
	basedTxn{asked, 100}.If(given...)
	if len(asked.of) != 3 || asked.of[0].GetCompare().GetModRevision() != 7 || asked.of[1].GetCompare().GetCreateRevision() != 0 ||
		string(asked.of[2].ValueBytes()) != "v" {
		t.Errorf("etcd is asked %v", asked.of)
	}
	if got := given[0].GetCompare().GetModRevision(); got != 107 {
		t.Errorf("the condition of the caller is of revision %d now", got)
	}
	kv := &mvccpb.KeyValue{ModRevision: 7, CreateRevision: 2}
	if based(100).keys(kv, nil); kv.ModRevision != 107 || kv.CreateRevision != 102 {
		t.Errorf("a key is of revisions %d and %d", kv.ModRevision, kv.CreateRevision)
	}
}

// asking is a transaction that keeps its conditions.
type asking struct {
	clientv3.Txn

	of []clientv3.Cmp
}

func (a *asking) If(conditions ...clientv3.Cmp) clientv3.Txn {
	a.of = conditions
	return a
}
