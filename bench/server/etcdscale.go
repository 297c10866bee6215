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
	"time"

	"github.com/steer-dev/steer/bench/report"
)

// groupEtcdScale is the group of [RunEtcdScale].
const groupEtcdScale = "etcdscale"

// FullEtcdScale and QuickEtcdScale are numbers of objects.
func FullEtcdScale() []int { return []int{10_000, 100_000, 1_000_000} }

// QuickEtcdScale is a look in between.
func QuickEtcdScale() []int { return []int{10_000, 100_000} }

// scaleHistory is how much history the server of group etcdscale keeps: less than by
// default, so that it is at rest soon after it was filled.
const scaleHistory = 20 * time.Second

// perJSON is the line with a goal.
const perJSON = "server, heap in use, bytes for each of JSON"

// scaleRun is a run of group etcdscale.
type scaleRun struct {
	out      *report.Report
	log      io.Writer
	subject  Steer
	etcd     *member
	instance *Instance
	growth   *Growth
}

// RunEtcdScale fills one etcd with objects of 1 KB through one server and measures at each
// number of objects what clients and the server need. The binary of steer is steer-etcd.
func RunEtcdScale(ctx context.Context, out *report.Report, log io.Writer, steer Steer, etcd string, objects []int) (err error) {
	r := &scaleRun{out: out, log: log, subject: steer}
	if r.etcd, err = startMember(ctx, etcd); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.etcd.stop()) }()
	dir, err := os.MkdirTemp("", "steer-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	r.subject.Etcd, r.subject.Dir, r.subject.Heap, r.subject.Ready = r.etcd.URL, dir, true, 5*time.Minute
	r.subject.Flags = []string{"--etcd-compaction-interval=" + scaleHistory.String()}
	if r.instance, err = r.subject.Start(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.instance.Stop()) }()
	if r.growth, err = newGrowth(ctx, r.instance, smallItems()); err != nil {
		return err
	}
	defer func() { r.growth.Close() }()
	for _, n := range objects {
		fmt.Fprintf(log, "etcdscale: %d objects\n", n)
		if err := r.at(ctx, n); err != nil {
			return fmt.Errorf("%d objects: %w", n, err)
		}
		out.ExpectAt(groupEtcdScale, report.Point{Line: perJSON, Of: "objects", At: float64(n)}, report.Goal{AtMost: 2})
	}
	return nil
}

// at measures with so many objects.
func (r *scaleRun) at(ctx context.Context, objects int) error {
	add := func(line, unit string, value float64) {
		r.out.AddPoint(groupEtcdScale, report.Point{Line: line, Of: "objects", At: float64(objects)}, unit, report.Steer, value)
	}
	before, began := r.growth.filled, time.Now()
	if err := r.growth.Fill(ctx, objects); err != nil {
		return err
	}
	rate := float64(objects-before) / time.Since(began).Seconds()
	add("create by 16 clients, one in", "µs", 1e6/rate)
	r.out.Note("etcdscale: %.0f creates per second from %d to %d objects", rate, before, objects)
	for _, restart := range []struct {
		line string
		wait time.Duration
	}{{"restart after a load, until ready", 0}, {"restart at rest, until ready", 2 * scaleHistory}} {
		if err := leave(ctx, restart.wait); err != nil {
			return err
		}
		if err := r.restart(ctx); err != nil {
			return err
		}
		add(restart.line, "s", r.instance.Ready.Seconds())
	}
	if err := r.reads(ctx, add); err != nil {
		return err
	}
	cost, lost, err := r.growth.Watch(ctx, 1, 300)
	if err != nil {
		return err
	}
	add("event, lag p50", "ms", cost.P50)
	add("event, lag p99", "ms", cost.P99)
	if lost > 0 {
		r.out.Note("etcdscale: %d events did not reach the watcher among %d objects", lost, objects)
	}
	return r.memory(ctx, add)
}

// restart stops the server and starts it again.
func (r *scaleRun) restart(ctx context.Context) error {
	r.growth.Close()
	if err := r.instance.Stop(); err != nil {
		return err
	}
	next, err := r.subject.Start(ctx)
	if err != nil {
		r.instance.stop = func() error { return nil }
		return err
	}
	r.instance, r.growth.instance = next, next
	r.growth.clients, r.growth.done = next.NewClients(16)
	return nil
}

type pointAdder func(line, unit string, value float64)

// reads measures reads of everything by one client.
func (r *scaleRun) reads(ctx context.Context, add pointAdder) error {
	c := r.growth.clients[0]
	began := time.Now()
	pages, err := readPages(ctx, c, 500)
	if err != nil {
		return err
	}
	add("list in pages of 500, whole", "s", time.Since(began).Seconds())
	add("a page of 500, p50", "ms", pages.percentile(0.5))
	add("a page of 500, p99", "ms", pages.percentile(0.99))
	began = time.Now()
	if _, err := c.Drain(ctx, collection+"?resourceVersion=0"); err != nil {
		return err
	}
	add("list at once, whole", "s", time.Since(began).Seconds())
	began = time.Now()
	if err := readInitialEvents(ctx, r.instance, r.growth.filled); err != nil {
		return err
	}
	add("watch with initial events, until they end", "s", time.Since(began).Seconds())
	return nil
}

// readPages reads a collection in pages, and returns how long each took.
func readPages(ctx context.Context, c *Client, limit int) (outcome, error) {
	var o outcome
	for next := ""; ; {
		began := time.Now()
		page, err := c.Do(ctx, http.MethodGet, fmt.Sprintf("%s?limit=%d&continue=%s", collection, limit, next), "", nil)
		if err != nil {
			return o, err
		}
		o.latencies = append(o.latencies, time.Since(began))
		_, rest, _ := bytes.Cut(page, []byte(`"continue":"`))
		token, _, _ := bytes.Cut(rest, []byte(`"`))
		if next = string(token); next == "" {
			o.sort()
			return o, nil
		}
	}
}

// readInitialEvents opens a watch that begins with the objects that there are, as informers
// do, and reads until the bookmark after them.
func readInitialEvents(ctx context.Context, instance *Instance, least int) error {
	w := &watcher{client: instance.NewClient()}
	defer w.client.Close()
	const query = "?watch=true&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan&resourceVersion=0"
	if err := w.client.Stream(ctx, collection+query); err != nil {
		return err
	}
	events := bufio.NewScanner(w)
	events.Buffer(make([]byte, 64<<10), 1<<20)
	for n := 0; events.Scan(); n++ {
		if bytes.Contains(events.Bytes(), []byte("k8s.io/initial-events-end")) {
			if n < least {
				return fmt.Errorf("%d initial events, want %d", n, least)
			}
			return nil
		}
	}
	return errors.Join(errors.New("the initial events did not end"), events.Err())
}

// memory measures what the server and etcd hold once they are at rest.
func (r *scaleRun) memory(ctx context.Context, add pointAdder) error {
	resident, perByte, err := r.growth.Memory(ctx)
	if err != nil {
		return err
	}
	heap, err := r.instance.heap()
	if err != nil {
		return err
	}
	add("server memory, resident", "MB", resident/1e6)
	add("server, heap in use", "MB", heap/1e6)
	add(perJSON, "", heap*perByte/resident)
	file, err := r.etcd.metric(ctx, "etcd_mvcc_db_total_size_in_bytes")
	if err != nil {
		return err
	}
	add("etcd memory, resident", "MB", use([]int{r.etcd.pid}).resident/1e6)
	add("etcd's file", "MB", file/1e6)
	one, err := r.growth.clients[0].Do(ctx, http.MethodGet, path("item", 0), "", nil)
	if err != nil {
		return err
	}
	add("JSON of the objects", "MB", float64(len(one)*r.growth.filled)/1e6)
	return nil
}

// EtcdBinary is the program etcd in a folder with the programs of module oracle.
func EtcdBinary(folder string) (string, error) {
	file := filepath.Join(folder, "etcd")
	if _, err := os.Stat(file); folder == "" || err != nil {
		return "", errors.New("it needs etcd: build module oracle, and name the folder with -upstream")
	}
	return filepath.Abs(file)
}
