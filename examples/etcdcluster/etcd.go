// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package etcdcluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// Etcd is what the operator asks of running members, each by its client URL.
type Etcd interface {
	// Status fails when the member does not answer, or only with what it has
	// itself: a member without a quorum does not count.
	Status(ctx context.Context, url string) (Status, error)
	// Members lists the membership, as agreed upon by a quorum.
	Members(ctx context.Context, url string) ([]Member, error)
	// Change changes it.
	Change(ctx context.Context, url string, c Change) error
	// Snapshot writes all data.
	Snapshot(ctx context.Context, url string, to io.Writer) error
}

// Status is what a member says of itself.
type Status struct {
	ClusterID uint64
	Learner   bool // it has no vote, and does not speak for the cluster
}

// Member is one entry of the membership.
type Member struct {
	ID      uint64
	Name    string // set by the operator: etcd knows it only once it has started
	PeerURL string
	Learner bool
	Started bool
}

// Change of the membership: one of its fields is set.
type Change struct {
	Add     string // the peer URL of a new learner
	Promote uint64
	Remove  uint64
}

// ErrNotYet is returned by Change for what etcd will do later: a learner has to
// catch up first, or the members have to be connected for some seconds.
var ErrNotYet = errors.New("etcd does not want to do it yet")

// callTimeout bounds everything but snapshots.
const callTimeout = time.Second

// Network reaches members over the network.
type Network struct{}

// Status implements Etcd.
func (Network) Status(ctx context.Context, url string) (out Status, err error) {
	err = call(ctx, url, func(ctx context.Context, c *clientv3.Client) error {
		read, err := c.Get(ctx, "health") // what is there does not matter: it takes a quorum to say so
		switch {
		case errors.Is(err, rpctypes.Error(rpctypes.ErrGRPCNotSupportedForLearner)):
			out.Learner = true
		case err != nil:
			return err
		default:
			out.ClusterID = read.Header.ClusterId
		}
		return nil
	})
	return out, err
}

// Members implements Etcd.
func (Network) Members(ctx context.Context, url string) (out []Member, err error) {
	err = call(ctx, url, func(ctx context.Context, c *clientv3.Client) error {
		list, err := c.MemberList(ctx)
		if err != nil {
			return err
		}
		for _, m := range list.Members {
			out = append(out, Member{ID: m.ID, PeerURL: m.PeerURLs[0], Learner: m.IsLearner, Started: m.Name != ""})
		}
		return nil
	})
	return out, err
}

// Change implements Etcd. What has been changed so already is no error.
func (Network) Change(ctx context.Context, url string, change Change) error {
	return call(ctx, url, func(ctx context.Context, c *clientv3.Client) (err error) {
		switch {
		case change.Add != "":
			_, err = c.MemberAddAsLearner(ctx, []string{change.Add})
		case change.Promote != 0:
			_, err = c.MemberPromote(ctx, change.Promote)
		default:
			_, err = c.MemberRemove(ctx, change.Remove)
		}
		switch {
		case errors.Is(err, rpctypes.ErrMemberLearnerNotReady), errors.Is(err, rpctypes.ErrUnhealthy), errors.Is(err, rpctypes.ErrMemberNotEnoughStarted):
			return ErrNotYet
		case change.Add != "" && errors.Is(err, rpctypes.ErrMemberNotFound):
			// A leader that has yet to apply the removal before it drops the addition.
			return ErrNotYet
		case errors.Is(err, rpctypes.ErrPeerURLExist), errors.Is(err, rpctypes.ErrMemberNotLearner), errors.Is(err, rpctypes.ErrMemberNotFound):
			return nil
		}
		return err
	})
}

// Snapshot implements Etcd.
func (Network) Snapshot(ctx context.Context, url string, to io.Writer) error {
	c, err := dial(ctx, url)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	from, err := c.Snapshot(ctx)
	if err != nil {
		return fmt.Errorf("snapshot of %s: %w", url, err)
	}
	defer from.Close()
	if _, err := io.Copy(to, from); err != nil {
		return fmt.Errorf("snapshot of %s: %w", url, err)
	}
	return nil
}

func call(ctx context.Context, url string, fn func(context.Context, *clientv3.Client) error) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	c, err := dial(ctx, url)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	if err := fn(ctx, c); err != nil {
		return fmt.Errorf("etcd at %s: %w", url, err)
	}
	return nil
}

func dial(ctx context.Context, url string) (*clientv3.Client, error) {
	c, err := clientv3.New(clientv3.Config{
		Context: ctx, Endpoints: []string{url}, Logger: zap.NewNop(),
		MaxUnaryRetries: 1, // who does not answer is asked again by the next reconcile
	})
	if err != nil {
		return nil, fmt.Errorf("connect to etcd at %s: %w", url, err)
	}
	return c, nil
}
