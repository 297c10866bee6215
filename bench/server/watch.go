// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"
)

// fanout is what a crowd of watchers saw.
type fanout struct {
	// expected and delivered events, over all watchers.
	expected, delivered int
	// ended counts the watchers that the server closed early.
	ended int
	// bytes of all events that were delivered.
	bytes int
	lags  []time.Duration
	// cpu that the server spent, and the writes per second that it took.
	cpu  time.Duration
	rate float64
}

// sentMark precedes the moment of a write inside an object.
const sentMark = "sent-"

// watchCrowd opens watchers on connections of their own, writes at a fixed
// pace, and counts what arrives until every watcher has everything or nothing
// came for a while.
func watchCrowd(ctx context.Context, instance *Instance, l load, watchers, writes, perSecond int) (fanout, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(writes/perSecond+30)*time.Second)
	defer cancel()
	writer := instance.NewClient()
	defer writer.Close()
	list, err := writer.Do(ctx, http.MethodGet, l.collection+"?limit=1", "", nil)
	if err != nil {
		return fanout{}, err
	}
	from, err := version(list)
	if err != nil {
		return fanout{}, err
	}

	crowd := make([]*watcher, watchers)
	var group sync.WaitGroup
	for i := range crowd {
		crowd[i] = &watcher{client: instance.NewClient(), want: writes, split: l.split}
		crowd[i].client.accept = l.accept
		if err := crowd[i].client.Stream(ctx, l.collection+"?watch=true&resourceVersion="+from); err != nil {
			return fanout{}, err
		}
	}
	for _, w := range crowd {
		group.Go(w.read)
	}
	clients, done := instance.NewClients(paceConnections)
	defer done()
	for _, c := range clients { // whose connections are no part of an event, as those of the watchers
		if _, err := c.Do(ctx, http.MethodGet, l.collection+"?limit=1", "", nil); err != nil {
			return fanout{}, err
		}
	}
	before := use(instance.PIDs)
	begin := time.Now().UnixNano()
	rate, err := pace(ctx, writes, perSecond, func(connection, i int) error {
		body := l.object(fmt.Sprintf("watched-%d-%06d", begin, i), i, fmt.Sprintf("%s%d-", sentMark, time.Now().UnixNano()))
		return send(ctx, clients[connection], http.MethodPost, l.collection, jsonType, body)
	})
	if err != nil {
		return fanout{}, err
	}
	late := time.AfterFunc(20*time.Second, func() { // whatever has not arrived by then is dropped
		for _, w := range crowd {
			w.client.abort()
		}
	})
	defer late.Stop()
	group.Wait()

	result := fanout{expected: watchers * writes, cpu: use(instance.PIDs).cpu - before.cpu, rate: rate}
	for _, w := range crowd {
		result.delivered += len(w.lags)
		result.bytes += w.bytes
		if len(w.lags) < writes {
			result.ended++
		}
		result.lags = append(result.lags, w.lags...)
		w.client.Close()
	}
	slices.Sort(result.lags)
	return result, nil
}

// paceConnections is how many connections share the writes at a fixed rate.
const paceConnections = 16

// pace calls write so many times at a fixed rate, each time with the number of a
// connection that no other client uses meanwhile, and returns the rate it reached.
func pace(ctx context.Context, writes, perSecond int, write func(connection, i int) error) (float64, error) {
	idle := make(chan int, paceConnections)
	for at := range cap(idle) {
		idle <- at
	}
	tick := time.NewTicker(time.Second / time.Duration(perSecond))
	defer tick.Stop()
	begin := time.Now()
	var group sync.WaitGroup
	errs := make(chan error, 1)
	for i := range writes {
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-tick.C:
		}
		connection := <-idle
		group.Go(func() {
			defer func() { idle <- connection }()
			if err := write(connection, i); err != nil {
				select {
				case errs <- err:
				default:
				}
			}
		})
	}
	group.Wait()
	select {
	case err := <-errs:
		return 0, err
	default:
	}
	return float64(writes) / time.Since(begin).Seconds(), nil
}

// watcher is one watch on its own connection.
type watcher struct {
	client *Client
	want   int
	split  bufio.SplitFunc
	lags   []time.Duration
	bytes  int    // of the events
	rest   []byte // of a piece
}

// Read implements io.Reader over the pieces of the stream.
func (w *watcher) Read(p []byte) (n int, err error) {
	if len(w.rest) == 0 {
		if w.rest, err = w.client.Receive(); err != nil {
			return 0, err
		}
	}
	n = copy(p, w.rest)
	w.rest = w.rest[n:]
	return n, nil
}

// read counts events until there are enough or the stream ends. It looks only
// for the mark, so that the client costs little.
func (w *watcher) read() {
	events := bufio.NewScanner(w)
	events.Buffer(make([]byte, 64<<10), 1<<20)
	events.Split(w.split)
	for len(w.lags) < w.want && events.Scan() {
		now := time.Now()
		_, rest, ok := bytes.Cut(events.Bytes(), []byte(sentMark))
		if !ok {
			continue
		}
		digits, _, _ := bytes.Cut(rest, []byte("-"))
		sent, err := strconv.ParseInt(string(digits), 10, 64)
		if err != nil {
			continue
		}
		w.lags = append(w.lags, now.Sub(time.Unix(0, sent)))
		w.bytes += len(events.Bytes())
	}
}
