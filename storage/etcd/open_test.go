// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"net"
	"sync/atomic"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
)

// busy is an etcd that does not execute its first transactions in time.
type busy struct {
	pb.UnimplementedKVServer

	failures int64
	asked    atomic.Int64
}

func (b *busy) Txn(context.Context, *pb.TxnRequest) (*pb.TxnResponse, error) {
	if b.asked.Add(1) <= b.failures {
		return nil, rpctypes.ErrGRPCTimeout
	}
	return &pb.TxnResponse{Header: &pb.ResponseHeader{Revision: 7}, Succeeded: true}, nil
}

func TestOpenAsksABusyEtcdAgain(t *testing.T) {
	t.Parallel()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server, b := grpc.NewServer(), &busy{failures: 2}
	pb.RegisterKVServer(server, b)
	go func() { _ = server.Serve(l) }() // until it is stopped
	t.Cleanup(server.Stop)
	s, err := connect(Options{Endpoints: []string{"http://" + l.Addr().String()}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	if _, now, err := s.own(t.Context()); err != nil || now != 7 || b.asked.Load() != 3 {
		t.Errorf("revision %d after %d transactions: %v", now, b.asked.Load(), err)
	}
}
