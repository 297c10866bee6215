// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// Member of etcd.
type Member struct {
	process

	Name string
	data string // the folder with what it keeps
	// tracer delays what the member writes; nil: nothing does.
	tracer *exec.Cmd
	// Peers is the link on which other members reach it.
	Peers *Link
	// ID of the member, as it names itself to others.
	ID string
}

func (m *Member) socket() string { return filepath.Join(m.dir, "localhost:1") }

// Data is the folder with what the member keeps.
func (m *Member) Data() string { return m.data }

// Endpoint is where the member listens.
func (m *Member) Endpoint() string { return "unix://" + m.socket() }

// Start starts the member again.
func (m *Member) Start() error { return m.start() }

// Kill ends the member as kill -9 does; Stop has it end.
func (m *Member) Kill() { m.kill() }

// Stop has the member end.
func (m *Member) Stop() { m.end(syscall.SIGTERM) }

// Gone reports whether the process has ended.
func (m *Member) Gone() bool { return m.gone() }

// with returns a function that calls do with a client of this member alone.
func (m *Member) with(do func(ctx context.Context, one *clientv3.Client) error) func(context.Context) error {
	return func(ctx context.Context) error {
		one, err := clientv3.New(clientv3.Config{Endpoints: []string{m.Endpoint()}, DialTimeout: 5 * time.Second, Logger: zap.NewNop()})
		if err != nil {
			return err
		}
		defer func() { _ = one.Close() }() // nothing waits
		return do(ctx, one)
	}
}

// Ready returns when a member serves the newest revision.
func (c *Cluster) Ready(ctx context.Context, m *Member) error {
	return c.Retry(ctx, time.Minute, m.with(func(ctx context.Context, one *clientv3.Client) error {
		_, err := one.Get(ctx, "x")
		return err
	}))
}

// Yield has another member lead if m does, as before a planned restart.
func (c *Cluster) Yield(ctx context.Context, m *Member) error {
	return c.Retry(ctx, time.Minute, m.with(func(ctx context.Context, one *clientv3.Client) error {
		status, err := one.Status(ctx, m.Endpoint())
		if err != nil || status.Leader != status.Header.MemberId {
			return err
		}
		list, err := one.MemberList(ctx)
		if err != nil {
			return err
		}
		for _, other := range list.Members {
			if other.ID != status.Leader {
				_, err := one.MoveLeader(ctx, other.ID)
				return err
			}
		}
		return nil
	}))
}
