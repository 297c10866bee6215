// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package micro

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/rest"
)

// Idle starts a manager with one controller of one object, lets it come to rest
// and says what it holds: goroutines, and anonymous memory; then what the
// first change costs that comes after the rest.
func Idle(run func(config *rest.Config, seen func(string)) error) (Result, error) {
	server, err := newCanned(custom, 1, true)
	if err != nil {
		return nil, err
	}
	seen, ended := make(chan struct{}, 16), make(chan error, 1)
	go func() { ended <- run(config(server), func(string) { seen <- struct{}{} }) }()
	await := func() error {
		select {
		case <-seen:
			return nil
		case err := <-ended:
			return fmt.Errorf("the manager ended: %w", err)
		}
	}
	if err := await(); err != nil {
		return nil, err
	}
	time.Sleep(comeToRest) // what the start has left behind ends
	debug.FreeOSMemory()
	anonymous, err := Resident("RssAnon:")
	if err != nil {
		return nil, err
	}
	out := Result{"idle goroutines": float64(runtime.NumGoroutine()), "idle anonymous": anonymous / 1e6}
	frame, err := server.frame("MODIFIED", custom.object(0, revision+1, true))
	if err != nil {
		return nil, err
	}
	before, err := minorFaults()
	if err != nil {
		return nil, err
	}
	sent := time.Now()
	server.live <- frame
	if err := await(); err != nil {
		return nil, err
	}
	out["idle wake"] = float64(time.Since(sent).Microseconds())
	after, err := minorFaults()
	out["idle wake faults"] = after - before
	return out, err
}

// comeToRest is longer than any of the sides takes to notice that it is at rest.
const comeToRest = 5 * time.Second

// minorFaults is how often this process touched a page that was in memory but not
// in its page table; 0 where the system does not tell.
func minorFaults() (float64, error) {
	stat, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return 0, nil //nolint:nilerr // not a Linux
	}
	_, fields, _ := strings.Cut(string(stat), ") ")
	return strconv.ParseFloat(strings.Fields(fields)[7], 64)
}

// Resident reads a line of the memory of this process, in bytes; 0 where the
// system does not tell.
func Resident(line string) (float64, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, nil //nolint:nilerr // not a Linux
	}
	for text := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(text, line); ok {
			kilobytes, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			return kilobytes * 1024, err
		}
	}
	return 0, nil
}
