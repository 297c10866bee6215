// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package regress compares a quick subset of the main module's benchmarks with what
// was recorded: allocations and bytes exactly, times as ratios to a reference that is
// measured beside them. It needs nothing but the go command.
package regress

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Suite is some benchmarks of one package. Only those belong here whose allocations
// do not depend on the moment: no timers, no sockets, no growing maps.
type Suite struct {
	// Package is relative to the main module.
	Package string
	// Pattern is what go test -bench takes.
	Pattern string
	// Iterations of each, fixed, so that what is amortised is always the same.
	Iterations int
	// Near is by which part allocations and bytes may differ, where maps of libraries grow
	// by hashes that each process seeds anew. 0: not at all.
	Near float64
}

// Suites are what CI compares.
func Suites() []Suite {
	return []Suite{
		{Package: "./apiserver", Pattern: "^Benchmark(Get|Create)$", Iterations: 500},
		{Package: "./apiserver/apply", Pattern: "^Benchmark(Update|StatusUpdate)$", Iterations: 500},
		{Package: "./cache", Pattern: "^BenchmarkReads$/^get$", Iterations: 2000},
		{Package: "./client/codec", Pattern: "^BenchmarkWatchDecode$", Iterations: 500},
		{Package: "./controller", Pattern: "^BenchmarkEmptyReconcile$/^(objects|requests)$/^untraced$", Iterations: 5000},
		{Package: "./controlplane", Pattern: "^BenchmarkVerbs$/^[a-z]+$/^(create|update|patch|status|list|watch)$", Iterations: 50},
		{Package: "./controlplane", Pattern: "^BenchmarkVerbs$/^custom$/^apply$", Iterations: 50},
		{Package: "./controlplane", Pattern: "^BenchmarkVerbs$/^(pod|deployment|configmap)$/^apply$", Iterations: 50, Near: 0.01},
		{Package: "./queue", Pattern: "^BenchmarkAddGetDone$/^queue$", Iterations: 20000},
		{Package: "./storage", Pattern: "^Benchmark(Get|List)$/^(1000|count_of_a_namespace)$", Iterations: 2000},
	}
}

// prefix begins the names of its figures.
func (s Suite) prefix() string { return path.Base(s.Package) + "." }

// Figure is one benchmark.
type Figure struct {
	Allocs int64 `json:"allocs"`
	Bytes  int64 `json:"bytes"`
	// Near is that of the suite.
	Near float64 `json:"near,omitempty"`
	// Time is how many times the reference took.
	Time float64 `json:"time"`
}

// Record is what was measured, by package and benchmark. Figures of another version
// of Go cannot be compared: its runtime and library allocate differently.
type Record struct {
	Go      string            `json:"go"`
	Figures map[string]Figure `json:"figures"`
}

// Measure runs the suites in the main module's directory and keeps the least of
// everything, since noise only adds: of a few long runs for what is allocated, of many
// short ones, which fit between two interruptions, for times. What go test prints of
// the long ones also goes to raw, for benchstat.
func Measure(ctx context.Context, root, version string, suites []Suite, raw io.Writer) (*Record, error) {
	now := &Record{Go: version, Figures: map[string]Figure{}}
	for _, s := range suites {
		long, err := s.run(ctx, root, s.Iterations, 5, raw)
		if err != nil {
			return nil, err
		}
		before := Reference()
		short, err := s.run(ctx, root, max(s.Iterations/25, 1), 40, io.Discard)
		if err != nil {
			return nil, err
		}
		reference := min(before, Reference())
		for name, figure := range long {
			figure.Time = math.Round(short[name].Time/reference*1e4) / 1e4
			figure.Near = s.Near
			now.Figures[s.prefix()+name] = figure
		}
	}
	return now, nil
}

// run runs the suite's benchmarks count times.
func (s Suite) run(ctx context.Context, root string, iterations, count int, raw io.Writer) (map[string]Figure, error) {
	command := exec.CommandContext(ctx, "go", "test", s.Package, "-run", "^$", "-bench", s.Pattern,
		"-benchtime", fmt.Sprint(iterations, "x"), "-count", fmt.Sprint(count), "-cpu", "1", "-benchmem")
	command.Dir = root
	var said bytes.Buffer
	command.Stdout, command.Stderr = &said, &said
	if err := command.Run(); err != nil {
		return nil, fmt.Errorf("benchmarks of %s: %w\n%s", s.Package, err, said.String())
	}
	if _, err := raw.Write(said.Bytes()); err != nil {
		return nil, err
	}
	found, err := Parse(&said)
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("none matches %s: was it renamed?", s.Pattern)
	}
	if err != nil {
		return nil, fmt.Errorf("benchmarks of %s: %w", s.Package, err)
	}
	return found, nil
}

// result is a line of go test -bench -benchmem.
var result = regexp.MustCompile(`^Benchmark(\S+)\s+\d+\s+([\d.e+]+) ns/op.*?\s(\d+) B/op\s+(\d+) allocs/op`)

// Parse reads the output of go test: the least values of each benchmark, with times
// in nanoseconds.
func Parse(r io.Reader) (map[string]Figure, error) {
	found := map[string]Figure{}
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		m := result.FindStringSubmatch(lines.Text())
		if m == nil {
			continue
		}
		nanos, err := strconv.ParseFloat(m[2], 64)
		if err != nil {
			return nil, err
		}
		size, err := strconv.ParseInt(m[3], 10, 64)
		if err != nil {
			return nil, err
		}
		allocs, err := strconv.ParseInt(m[4], 10, 64)
		if err != nil {
			return nil, err
		}
		least, known := found[m[1]]
		if !known {
			least = Figure{Allocs: allocs, Bytes: size, Time: nanos}
		}
		found[m[1]] = Figure{Allocs: min(least.Allocs, allocs), Bytes: min(least.Bytes, size), Time: min(least.Time, nanos)}
	}
	return found, lines.Err()
}

// differs reports whether a figure is not what was recorded.
func (f Figure) differs(was, is int64, rounding int64) bool {
	return max(is-was, was-is) > max(rounding, int64(f.Near*float64(was)))
}

// rounding is by how many of its bytes an operation's share of what a process allocates once
// can differ: go test rounds the mean, and of requests of some kilobytes more than one is
// divided.
func rounding(bytes int64) int64 { return max(1, bytes/2000) }

// Compare says what differs: any allocation more or less, any byte beyond rounding (both
// within what the suite allows), a time that is more than slack times longer, a benchmark that is new or gone. Better
// is a difference too: it is recorded, so that it stays.
func Compare(before, now *Record, slack float64) []string {
	if before.Go != now.Go {
		return []string{fmt.Sprintf("recorded with %s, measured with %s: figures of different versions cannot be compared; record anew with -update", before.Go, now.Go)}
	}
	var differ []string
	for name, was := range before.Figures {
		is, measured := now.Figures[name]
		switch {
		case !measured:
			differ = append(differ, name+": recorded, but there is no such benchmark any more")
		case was.differs(was.Allocs, is.Allocs, 0):
			differ = append(differ, fmt.Sprintf("%s: %d allocations, recorded were %d", name, is.Allocs, was.Allocs))
		case was.differs(was.Bytes, is.Bytes, rounding(was.Bytes)):
			differ = append(differ, fmt.Sprintf("%s: %d bytes, recorded were %d", name, is.Bytes, was.Bytes))
		}
		if measured && is.Time > was.Time*slack {
			differ = append(differ, fmt.Sprintf("%s: %.4f times the reference, recorded were %.4f: more than %.1f times slower", name, is.Time, was.Time, slack))
		}
	}
	for name := range now.Figures {
		if _, known := before.Figures[name]; !known {
			differ = append(differ, name+": measured, but not recorded")
		}
	}
	slices.Sort(differ)
	return differ
}

// Slow are the suites of which a benchmark took more than slack times what is recorded:
// whether it is slower or was interrupted throughout, another measurement tells.
func Slow(before, now *Record, suites []Suite, slack float64) []Suite {
	var slow []Suite
	for _, s := range suites {
		for name, is := range now.Figures {
			if was, known := before.Figures[name]; known && strings.HasPrefix(name, s.prefix()) && is.Time > was.Time*slack {
				slow = append(slow, s)
				break
			}
		}
	}
	return slow
}

// Keep takes over the times of another measurement that are less.
func (r *Record) Keep(again *Record) {
	for name, figure := range again.Figures {
		if was, known := r.Figures[name]; known {
			was.Time = min(was.Time, figure.Time)
			r.Figures[name] = was
		}
	}
}

// Reference is how long the fastest of some fixed work takes on this machine now, in
// nanoseconds: decoding and encoding a document, which costs what these benchmarks
// cost, processor and memory.
func Reference() float64 {
	var document strings.Builder
	document.WriteString(`{"items":[`)
	for i := range 64 {
		if i > 0 {
			document.WriteByte(',')
		}
		fmt.Fprintf(&document, `{"name":"setting-%02d","value":%q,"on":true,"size":%d}`, i, strings.Repeat("v", 40), i)
	}
	document.WriteString(`]}`)
	text := []byte(document.String())
	least := math.Inf(1)
	for range 400 {
		begin := time.Now()
		var value any
		if err := json.Unmarshal(text, &value); err != nil {
			panic(err) // the document is ours
		}
		if _, err := json.Marshal(value); err != nil {
			panic(err)
		}
		least = min(least, float64(time.Since(begin).Nanoseconds()))
	}
	return least
}
