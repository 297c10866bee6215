// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/steer-dev/steer/bench/report"
)

// durabilityGoal is how long a client waits for a creation, as a part of what it
// may take: half as long again as the disk needs, and 0.3 ms for everything else.
const durabilityGoal = "create, 1 client, part of 1.5 x append and fdatasync + 0.3 ms"

// measureDurability compares creations by one client, which shares the cost of the
// disk with no other, with what the disk needs: the same bytes appended to a file
// beside the servers' and flushed. They take turns, so that both see the same disk.
func measureDurability(ctx context.Context, add adder, client *Client, n int) (err error) {
	file, err := os.CreateTemp("", "steer-bench-append-") // where both servers keep their data
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close(), os.Remove(file.Name())) }()
	creates, flushes := make([]time.Duration, n), make([]time.Duration, n)
	for i := range n {
		begin := time.Now()
		stored, err := client.Do(ctx, http.MethodPost, collection, jsonType, object(name("durable", i), i))
		if err != nil {
			return err
		}
		creates[i] = time.Since(begin)
		begin = time.Now()
		if _, err := file.Write(stored); err != nil {
			return err
		}
		if err := flush(file); err != nil {
			return err
		}
		flushes[i] = time.Since(begin)
	}
	slices.Sort(creates)
	slices.Sort(flushes)
	create, flushed := outcome{latencies: creates}.percentile(0.5), outcome{latencies: flushes}.percentile(0.5)
	add("append and fdatasync of the same bytes, median", "ms", report.Lower, flushed)
	add("create in turn with it, 1 client, median", "ms", report.Lower, create)
	add(durabilityGoal, "", report.Lower, create/(1.5*flushed+0.3))
	return nil
}
