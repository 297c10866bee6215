// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/steer-dev/steer/storage/etcd/internal/cluster"
)

// fault is something that breaks. What play has not mended is mended after it.
type fault struct {
	name string
	play func(context.Context, *player) error
	// gaps: watchers may have to begin anew, because the history is gone by intention.
	gaps bool
	// quiet: there is no load meanwhile.
	quiet bool
}

// all returns the faults; of a backup only where it can be restored, and of disks only where
// members have some of their own.
func all(restores, disks bool) []fault {
	out := append(ofEtcd(), append(ofServers(), ofData()...)...)
	if disks {
		out = append(out, ofDisks()...)
	}
	if restores {
		// Servers begin anew one after the other, each with the history since then.
		out = append(out, fault{name: "a backup is restored", play: restore, quiet: true, gaps: true})
	}
	return out
}

// hold waits while something is broken.
func hold(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p *player) member() *cluster.Member {
	return p.cluster.Members[rand.IntN(cluster.Size)]
}

// ofEtcd are faults of members and of the network between them.
func ofEtcd() []fault {
	return []fault{
		{name: "a member is killed", play: func(ctx context.Context, p *player) error {
			m := p.member()
			m.Kill()
			return hold(ctx, 3*time.Second)
		}},
		{name: "a member is paused", play: func(ctx context.Context, p *player) error {
			m := p.member()
			m.Pause()
			return hold(ctx, 6*time.Second)
		}},
		{name: "a member is slow", play: func(ctx context.Context, p *player) error {
			m := p.member()
			for began := time.Now(); time.Since(began) < 5*time.Second; {
				m.Pause()
				if err := hold(ctx, 90*time.Millisecond); err != nil {
					return err
				}
				m.Resume()
				if err := hold(ctx, 10*time.Millisecond); err != nil {
					return err
				}
			}
			return nil
		}},
		{name: "the quorum is lost", play: func(ctx context.Context, p *player) error {
			first := rand.IntN(cluster.Size)
			p.cluster.Members[first].Kill()
			p.cluster.Members[(first+1)%cluster.Size].Kill()
			return hold(ctx, 4*time.Second)
		}},
		{name: "all members are killed", play: func(ctx context.Context, p *player) error {
			for _, m := range p.cluster.Members {
				m.Kill()
			}
			return hold(ctx, time.Second)
		}},
		{name: "a member is cut off from others", play: func(ctx context.Context, p *player) error {
			alone := p.member()
			for _, m := range p.cluster.Members {
				if m == alone {
					m.Peers.Cut()
				} else {
					m.Peers.CutFrom(func(from string) bool { return from == alone.ID })
				}
			}
			return hold(ctx, 5*time.Second)
		}},
		{name: "two members are cut off", play: func(ctx context.Context, p *player) error {
			i := rand.IntN(cluster.Size)
			a, b := p.cluster.Members[i], p.cluster.Members[(i+1)%cluster.Size]
			a.Peers.CutFrom(func(from string) bool { return from == b.ID })
			b.Peers.CutFrom(func(from string) bool { return from == a.ID })
			return hold(ctx, 5*time.Second)
		}},
		{name: "the network of etcd is slow", play: func(ctx context.Context, p *player) error {
			for _, m := range p.cluster.Members {
				m.Peers.Slow(30 * time.Millisecond)
			}
			return hold(ctx, 4*time.Second)
		}},
	}
}

// ofDisks are faults of the disks of members.
func ofDisks() []fault {
	slow := func(ctx context.Context, members ...*cluster.Member) error {
		for _, m := range members {
			if err := m.SlowDisk(ctx, 300*time.Millisecond); err != nil {
				return err
			}
		}
		return hold(ctx, 6*time.Second)
	}
	full := func(ctx context.Context, p *player, members ...*cluster.Member) error {
		for _, m := range members {
			if err := m.FillDisk(); err != nil {
				return err
			}
		}
		for range 60 { // etcd goes on while it has room in the files that it has, and ends then
			left := slices.DeleteFunc(slices.Clone(members), (*cluster.Member).Gone)
			if len(left) <= len(members)/2 { // without a quorum the last one writes nothing
				return hold(ctx, 3*time.Second)
			}
			within, cancel := context.WithTimeout(ctx, time.Second)
			_, _ = p.cluster.Client.Put(within, "ballast", strings.Repeat("x", 1<<20)) // it may fail
			cancel()
		}
		return errors.New("etcd goes on with a full disk")
	}
	return []fault{
		{name: "the disk of a member is full", play: func(ctx context.Context, p *player) error { return full(ctx, p, p.member()) }},
		{name: "the disk of a member is slow", play: func(ctx context.Context, p *player) error { return slow(ctx, p.member()) }},
		{name: "all disks are full", play: func(ctx context.Context, p *player) error { return full(ctx, p, p.cluster.Members...) }},
		{name: "all disks are slow", play: func(ctx context.Context, p *player) error { return slow(ctx, p.cluster.Members...) }},
	}
}

// leader returns the server that leads, follower one that does not.
func (p *player) leader(ctx context.Context) (*cluster.Server, error) {
	leader, _, err := p.cluster.Leader(ctx)
	return leader, err
}

func (p *player) follower(ctx context.Context) (*cluster.Server, error) {
	_, follower, err := p.cluster.Leader(ctx)
	return follower, err
}

// on plays a fault of a server.
func on(choose func(*player, context.Context) (*cluster.Server, error), play func(*cluster.Server), d time.Duration) func(context.Context, *player) error {
	return func(ctx context.Context, p *player) error {
		s, err := choose(p, ctx)
		if err != nil {
			return err
		}
		play(s)
		return hold(ctx, d)
	}
}

// ofServers are faults of servers and of their network.
func ofServers() []fault {
	cut := func(s *cluster.Server) {
		for _, link := range s.Etcd {
			link.Cut()
		}
	}
	freeze := func(s *cluster.Server) {
		for _, link := range s.Etcd {
			link.Freeze()
		}
	}
	return []fault{
		{name: "the leader is killed", play: on((*player).leader, (*cluster.Server).Kill, 6*time.Second)},
		{name: "a follower is killed", play: on((*player).follower, (*cluster.Server).Kill, 2*time.Second)},
		{name: "the leader is stopped", play: on((*player).leader, (*cluster.Server).Stop, 0)},
		{name: "a follower is stopped", play: on((*player).follower, (*cluster.Server).Stop, 0)},
		{name: "the leader is paused", play: on((*player).leader, (*cluster.Server).Pause, 9*time.Second)},
		{name: "a follower is paused", play: on((*player).follower, (*cluster.Server).Pause, 5*time.Second)},
		{name: "the leader is cut off from etcd", play: on((*player).leader, cut, 8*time.Second)},
		{name: "a follower is cut off from etcd", play: on((*player).follower, cut, 5*time.Second)},
		{name: "nothing of etcd reaches the leader", play: on((*player).leader, freeze, 8*time.Second)},
		{name: "nothing of etcd reaches a follower", play: on((*player).follower, freeze, 5*time.Second)},
		{name: "a member is cut off from the leader", play: on((*player).leader, func(s *cluster.Server) { s.Etcd[rand.IntN(cluster.Size)].Freeze() }, 6*time.Second)},
		{name: "followers are cut off from the leader", play: on((*player).leader, func(s *cluster.Server) { s.Inbound.Cut() }, 5*time.Second)},
		{name: "nothing of followers reaches the leader", play: on((*player).leader, func(s *cluster.Server) { s.Inbound.Freeze() }, 7*time.Second)},
		{name: "the leader is paused for a minute", play: on((*player).leader, (*cluster.Server).Pause, time.Minute)},
	}
}

// ofData are faults of what etcd has.
func ofData() []fault {
	return []fault{
		{name: "etcd has the alarm NOSPACE", play: func(ctx context.Context, p *player) error {
			maintenance := pb.NewMaintenanceClient(p.cluster.Client.ActiveConnection())
			alarm := func(a pb.AlarmRequest_AlarmAction) error {
				return p.cluster.Retry(ctx, time.Minute, func(ctx context.Context) error {
					_, err := maintenance.Alarm(ctx, &pb.AlarmRequest{Action: a, Alarm: pb.AlarmType_NOSPACE})
					return err
				})
			}
			err := alarm(pb.AlarmRequest_ACTIVATE)
			if err == nil {
				err = hold(ctx, 4*time.Second)
			}
			return errors.Join(err, alarm(pb.AlarmRequest_DEACTIVATE))
		}},
		{name: "the history is compacted behind a server", gaps: true, play: func(ctx context.Context, p *player) error {
			s, err := p.follower(ctx)
			if err != nil {
				return err
			}
			for _, link := range s.Etcd {
				link.Cut()
			}
			if err := hold(ctx, 2*time.Second); err != nil {
				return err
			}
			return p.cluster.Retry(ctx, time.Minute, func(ctx context.Context) error {
				now, err := p.cluster.Client.Get(ctx, "x")
				if err == nil {
					_, err = p.cluster.Client.Compact(ctx, now.Header.Revision)
				}
				return err
			})
		}},
		{name: "the clock of a leader was ahead", play: clock(7 * time.Hour)},
		{name: "the clock of a leader was behind", play: clock(-7 * time.Hour)},
	}
}

// clock writes what a leader whose clock is off writes, and has a server start that reads it.
func clock(off time.Duration) func(context.Context, *player) error {
	return func(ctx context.Context, p *player) error {
		const key = "/steer/.steer/clock"
		err := p.cluster.Retry(ctx, time.Minute, func(ctx context.Context) error {
			now, err := p.cluster.Client.Get(ctx, key)
			if err != nil {
				return err
			}
			from := "0"
			if len(now.Kvs) > 0 {
				_, from, _ = strings.Cut(strings.TrimSuffix(string(now.Kvs[0].Value), "}"), `"from":`)
			}
			_, err = p.cluster.Client.Put(ctx, key, fmt.Sprintf(`{"time":%q,"from":%s}`, time.Now().Add(off).Format(time.RFC3339Nano), from))
			return err
		})
		if err != nil {
			return err
		}
		s, err := p.leader(ctx)
		if err != nil {
			return err
		}
		s.Kill()
		return hold(ctx, 6*time.Second)
	}
}

// restore takes a backup, has the cluster go on, and restores the backup as administrators
// are told to.
func restore(ctx context.Context, p *player) error {
	c := p.cluster
	backup := filepath.Join(c.Dir, "backup")
	if err := save(ctx, c.Client, backup); err != nil {
		return err
	}
	var initial []string
	for _, m := range c.Members {
		m.Stop()
		initial = append(initial, m.Name+"=http://"+m.Peers.Address())
	}
	for _, m := range c.Members {
		if err := os.RemoveAll(m.Data()); err != nil {
			return err
		}
		out, err := exec.CommandContext(ctx, p.etcdutl, "snapshot", "restore", backup, "--name="+m.Name, "--data-dir="+m.Data(),
			"--bump-revision=1000000", "--mark-compacted", "--initial-cluster="+strings.Join(initial, ","),
			"--initial-advertise-peer-urls=http://"+m.Peers.Address()).CombinedOutput()
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
	}
	for _, m := range c.Members {
		if err := m.Start(); err != nil {
			return err
		}
	}
	return nil
}

// save writes a backup of one member.
func save(ctx context.Context, client *clientv3.Client, file string) error {
	in, err := client.Snapshot(ctx)
	if err != nil {
		return err
	}
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close(), in.Close())
}
