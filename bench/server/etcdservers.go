// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/steer-dev/steer/bench/report"
)

// groupEtcdServers is the group of [RunEtcdServers].
const groupEtcdServers = "etcdservers"

// leaseTime is the default of steer up: how long a leader that is not heard of keeps others
// from leading.
const leaseTime = 15 * time.Second

// trio is three servers on one etcd.
type trio struct {
	out       *report.Report
	leader    *Instance
	followers [2]*Instance
}

// RunEtcdServers measures three servers on one etcd: what a follower adds to a request, and
// what clients see when the leader is killed. The binary of steer is steer-etcd.
func RunEtcdServers(ctx context.Context, out *report.Report, log io.Writer, steer Steer, etcd string, scale Scale) error {
	for round := range out.Turns(ctx, groupEtcdServers, scale.Rounds) {
		fmt.Fprintf(log, "etcdservers: round %d\n", round+1)
		if err := roundOfServers(ctx, out, steer, etcd, scale.Objects/2); err != nil {
			return err
		}
	}
	expect := func(name string, atMost float64) {
		out.Expect(groupEtcdServers, name, report.Goal{AtMost: atMost})
	}
	expect("a follower adds to a consistent get", 3)
	expect("a follower adds to a create", 1.5)
	expect("kill -9 of the leader: until a write is accepted", (leaseTime + 2*time.Second).Seconds())
	return nil
}

func roundOfServers(ctx context.Context, out *report.Report, steer Steer, etcd string, requests int) (err error) {
	m, err := startMember(ctx, etcd)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.stop()) }()
	dir, err := os.MkdirTemp("", "steer-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	t := &trio{out: out}
	steer.Etcd, steer.Flags = m.URL, []string{"--cert-dir", filepath.Join(dir, "pki")}
	for i, into := range []**Instance{&t.leader, &t.followers[0], &t.followers[1]} { // the first one leads
		steer.Dir = filepath.Join(dir, fmt.Sprint(i))
		if err := os.Mkdir(steer.Dir, 0o700); err != nil {
			return err
		}
		instance, err := steer.Start(ctx)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, instance.Stop()) }()
		*into = instance
	}
	if err := t.added(ctx, requests); err != nil {
		return err
	}
	return t.killLeader(ctx)
}

// added measures requests of one client to the leader and to a follower, in turn.
func (t *trio) added(ctx context.Context, n int) error {
	clients := [2]*Client{t.leader.NewClient(), t.followers[0].NewClient()}
	defer clients[0].Close()
	defer clients[1].Close()
	if _, err := prepare(ctx, clients[0]); err != nil {
		return err
	}
	for _, request := range []struct {
		name string
		send func(ctx context.Context, c *Client, side, i int) error
	}{
		{"consistent get", func(ctx context.Context, c *Client, _, _ int) error {
			return send(ctx, c, http.MethodGet, collection+"/first", "", nil)
		}},
		{"create", func(ctx context.Context, c *Client, side, i int) error {
			return send(ctx, c, http.MethodPost, collection, jsonType, object(name(fmt.Sprint("side", side), i), i))
		}},
	} {
		var seen [2]outcome
		for i := range n {
			for side, c := range clients {
				one, err := drive(ctx, []*Client{c}, 1, func(ctx context.Context, c *Client, _ int) error { return request.send(ctx, c, side, i) })
				if err != nil {
					return err
				}
				seen[side].latencies = append(seen[side].latencies, one.latencies...)
			}
		}
		var p50 [2]float64
		for side, where := range [2]string{"the leader", "a follower"} {
			seen[side].sort()
			p50[side] = seen[side].percentile(0.5)
			t.out.Add(groupEtcdServers, request.name+" at "+where+", p50", "ms", report.Lower, report.Steer, p50[side])
		}
		t.out.Add(groupEtcdServers, "a follower adds to a "+request.name, "ms", report.Lower, report.Steer, p50[1]-p50[0])
	}
	return nil
}

// elsewhere is what clients of a server see that is not killed.
type elsewhere struct {
	reads   outcome
	failed  int             // reads
	ended   bool            // the watch, before the test did
	seen    map[string]bool // names of the objects that the watch has shown
	created []string        // what was acknowledged
}

// killLeader ends the leader as kill -9 does, with clients at the other two.
func (t *trio) killLeader(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	var stop atomic.Bool
	var group sync.WaitGroup
	others := [2]*elsewhere{{seen: map[string]bool{}}, {seen: map[string]bool{}}}
	var watches [2]*Client
	for i, o := range others {
		watches[i] = t.followers[i].NewClient()
		if err := watches[i].Stream(ctx, collection+"?watch=true&labelSelector=app%3Dkill"); err != nil {
			return err
		}
		group.Go(func() { o.watch(watches[i], &stop) })
		group.Go(func() { o.read(ctx, t.followers[i], &stop) })
	}
	if err := leave(ctx, time.Second); err != nil {
		return err
	}
	killed := time.Now()
	if err := t.leader.Kill(); err != nil {
		return err
	}
	accepted, err := t.write(ctx, others[0], killed)
	err = errors.Join(err, leave(ctx, time.Second))
	stop.Store(true)
	for _, c := range watches {
		c.abort()
	}
	group.Wait()
	if err != nil {
		return err
	}
	add := func(name, unit string, value float64) {
		t.out.Add(groupEtcdServers, "kill -9 of the leader: "+name, unit, report.Lower, report.Steer, value)
	}
	add("until a write is accepted", "s", accepted.Seconds())
	var failed, ended, lacking int
	reads := outcome{}
	for _, o := range others {
		reads.latencies = append(reads.latencies, o.reads.latencies...)
		failed += o.failed
		if o.ended {
			ended++
		}
		for _, name := range others[0].created {
			if !o.seen[name] {
				lacking++
			}
		}
	}
	reads.sort()
	add("reads elsewhere, p50", "ms", reads.percentile(0.5))
	add("reads elsewhere, longest", "ms", reads.percentile(1))
	add("reads elsewhere that fail", "", float64(failed))
	add("watches elsewhere that end", "", float64(ended))
	add("events that a watch elsewhere lacks", "", float64(lacking))
	return nil
}

// write creates objects at a server until some were accepted, and returns when the first one
// was, after the moment of the kill. A creation that fails is made again under another name.
func (t *trio) write(ctx context.Context, o *elsewhere, killed time.Time) (accepted time.Duration, err error) {
	c := t.followers[0].NewClient()
	defer c.Close()
	for i := 0; len(o.created) < 20; i++ {
		name := fmt.Sprintf("kill-%06d", i)
		body := bytes.Replace(object(name, i), []byte(`"app":"bench"`), []byte(`"app":"kill"`), 1)
		if err := send(ctx, c, http.MethodPost, collection, jsonType, body); err != nil {
			if ctx.Err() != nil {
				return 0, fmt.Errorf("no write is accepted: %w", err)
			}
			continue
		}
		if o.created = append(o.created, name); accepted == 0 {
			accepted = time.Since(killed)
		}
	}
	return accepted, nil
}

// read sends consistent reads.
func (o *elsewhere) read(ctx context.Context, at *Instance, stop *atomic.Bool) {
	c := at.NewClient()
	defer c.Close()
	for !stop.Load() {
		began := time.Now()
		if err := send(ctx, c, http.MethodGet, collection+"/first", "", nil); err != nil {
			o.failed++
		}
		o.reads.latencies = append(o.reads.latencies, time.Since(began))
		time.Sleep(5 * time.Millisecond)
	}
}

// watch notes what a watch shows until the test stops it.
func (o *elsewhere) watch(c *Client, stop *atomic.Bool) {
	events := bufio.NewScanner(&watcher{client: c})
	events.Buffer(make([]byte, 64<<10), 1<<20)
	for events.Scan() {
		if _, rest, ok := bytes.Cut(events.Bytes(), []byte(`"name":"`)); ok {
			name, _, _ := bytes.Cut(rest, []byte(`"`))
			o.seen[string(name)] = true
		}
	}
	o.ended = !stop.Load()
}
