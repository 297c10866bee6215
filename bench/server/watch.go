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
	lags  []time.Duration
	// cpu that the server spent, and the writes per second that it took.
	cpu  time.Duration
	rate float64
}

// sentMark precedes the moment of a write inside an object.
const sentMark = `"image":"sent-`

// watchCrowd opens watchers on connections of their own, writes at a fixed
// pace, and counts what arrives until every watcher has everything or nothing
// came for a while.
func watchCrowd(ctx context.Context, instance *Instance, watchers, writes, perSecond int) (fanout, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(writes/perSecond+30)*time.Second)
	defer cancel()
	writer := instance.NewClient()
	defer writer.Close()
	list, err := writer.Do(ctx, http.MethodGet, collection+"?limit=1", "", nil)
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
		crowd[i] = &watcher{client: instance.NewClient(), want: writes}
		if err := crowd[i].open(ctx, from); err != nil {
			return fanout{}, err
		}
	}
	for _, w := range crowd {
		group.Go(w.read)
	}
	before := use(instance.PIDs)
	rate, err := pace(ctx, writer, writes, perSecond)
	if err != nil {
		return fanout{}, err
	}
	late := time.AfterFunc(20*time.Second, cancel) // whatever has not arrived by then is dropped
	defer late.Stop()
	group.Wait()

	result := fanout{expected: watchers * writes, cpu: use(instance.PIDs).cpu - before.cpu, rate: rate}
	for _, w := range crowd {
		result.delivered += len(w.lags)
		if len(w.lags) < writes {
			result.ended++
		}
		result.lags = append(result.lags, w.lags...)
		w.client.Close()
	}
	slices.Sort(result.lags)
	return result, nil
}

// pace creates objects at a fixed rate and returns the rate it reached.
func pace(ctx context.Context, c *Client, writes, perSecond int) (float64, error) {
	tick := time.NewTicker(time.Second / time.Duration(perSecond))
	defer tick.Stop()
	begin := time.Now()
	var group sync.WaitGroup
	errs := make(chan error, 1)
	slots := make(chan struct{}, 16)
	for i := range writes {
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-tick.C:
		}
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			body := bytes.Replace(object(fmt.Sprintf("watched-%d-%06d", begin.UnixNano(), i), i),
				[]byte(`"image":"`), fmt.Appendf(nil, "%s%d-", sentMark, time.Now().UnixNano()), 1)
			if err := send(ctx, c, http.MethodPost, collection, jsonType, body); err != nil {
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
	stream *http.Response
	want   int
	lags   []time.Duration
}

func (w *watcher) open(ctx context.Context, from string) error {
	stream, err := w.client.Open(ctx, http.MethodGet, collection+"?watch=true&resourceVersion="+from, "", nil)
	if err != nil {
		return err
	}
	if stream.StatusCode != http.StatusOK {
		stream.Body.Close()
		return fmt.Errorf("watch: %s", stream.Status)
	}
	w.stream = stream
	return nil
}

// read counts events until there are enough or the stream ends. It looks only
// for the mark, so that the client costs little.
func (w *watcher) read() {
	defer w.stream.Body.Close()
	lines := bufio.NewReaderSize(w.stream.Body, 64<<10)
	for len(w.lags) < w.want {
		line, err := lines.ReadSlice('\n')
		if err != nil {
			return
		}
		now := time.Now()
		_, rest, ok := bytes.Cut(line, []byte(sentMark))
		if !ok {
			continue
		}
		digits, _, _ := bytes.Cut(rest, []byte("-"))
		sent, err := strconv.ParseInt(string(digits), 10, 64)
		if err != nil {
			continue
		}
		w.lags = append(w.lags, now.Sub(time.Unix(0, sent)))
	}
}
