// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
)

// fake is an etcd that has one key, and does not execute its first transactions in time.
type fake struct {
	pb.UnimplementedKVServer

	key, value      string // no key: the prefix is empty
	failures        int64
	asked, compared atomic.Int64
}

func (f *fake) Txn(_ context.Context, r *pb.TxnRequest) (*pb.TxnResponse, error) {
	if f.asked.Add(1) <= f.failures {
		return nil, rpctypes.ErrGRPCTimeout
	}
	out := &pb.TxnResponse{Header: &pb.ResponseHeader{Revision: 7}, Succeeded: true}
	if len(r.Compare) > 0 {
		f.compared.Add(1)
	}
	for _, op := range r.Success {
		found := &pb.RangeResponse{}
		if get := op.GetRequestRange(); get != nil && f.key != "" && (string(get.Key) == f.key || len(get.RangeEnd) > 0) {
			found.Kvs = []*mvccpb.KeyValue{{Key: []byte(f.key), Value: []byte(f.value), ModRevision: 3}}
		}
		out.Responses = append(out.Responses, &pb.ResponseOp{Response: &pb.ResponseOp_ResponseRange{ResponseRange: found}})
	}
	return out, nil
}

// connected returns a store whose client reaches the fake.
func (f *fake) connected(t *testing.T) *Store {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	pb.RegisterKVServer(server, f)
	go func() { _ = server.Serve(l) }() // until it is stopped
	t.Cleanup(server.Stop)
	s, err := connect(Options{Endpoints: []string{"http://" + l.Addr().String()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestOpenAsksABusyEtcdAgain(t *testing.T) {
	t.Parallel()
	f := &fake{failures: 2}
	if _, now, err := f.connected(t).own(t.Context()); err != nil || now != 7 || f.asked.Load() != 4 {
		t.Errorf("revision %d after %d transactions: %v", now, f.asked.Load(), err)
	}
}

// etcd reads all keys of a range that it compares, in every member.
func TestOpenComparesNoRangeThatHasKeys(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]error{"/steer/.steer/owner": nil, "/steer/other": ErrForeign} {
		f := &fake{key: key, value: `{"format":1,"id":"x"}`}
		since, now, err := f.connected(t).own(t.Context())
		if !errors.Is(err, want) || want == nil && (since != 3 || now != 7) || f.compared.Load() != 0 {
			t.Errorf("%s: revisions %d and %d, %d comparisons: %v", key, since, now, f.compared.Load(), err)
		}
	}
}
