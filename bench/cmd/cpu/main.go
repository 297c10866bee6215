// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Command cpu compares what requests cost two builds of Steer, in CPU time of the server, user
// and system, over TLS: create, update, merge patch, status patch, apply, list and watch of a
// custom kind, Pods, Deployments and ConfigMaps of 1 KB.
//
//	go run ./cmd/cpu -base old/steer -change new/steer
//	go run ./cmd/cpu -base old/steer -change new/steer -only '^pod' -pairs 20
//
// The servers take turns, and the median of the ratios of the pairs is what counts: what else
// the machine does slows both.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"text/tabwriter"
	"time"

	"github.com/steer-dev/steer/bench/report"
	"github.com/steer-dev/steer/bench/server"
)

func main() {
	base := flag.String("base", "", "the steer binary to compare with")
	change := flag.String("change", "", "the steer binary that is compared")
	only := flag.String("only", "", "measure requests whose names match, such as '^pod create$' (default: all)")
	pairs := flag.Int("pairs", 10, "how often each request is measured on both servers")
	requests := flag.Int("requests", 200, "requests of one measurement, and objects of each kind")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *base, *change, *only, *pairs, *requests); err != nil {
		fmt.Fprintln(os.Stderr, "cpu:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, base, change, only string, pairs, requests int) error {
	if base == "" || change == "" {
		return fmt.Errorf("name two binaries with -base and -change: `go build -o FILE ./cmd/steer` makes one of a working tree")
	}
	selects, err := regexp.Compile(only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	subject := func(binary string) server.Subject {
		return server.Steer{Binary: binary, InMemory: true, Flags: []string{"--bare"}, Ready: 2 * time.Minute}
	}
	scale := server.CPUScale{Pairs: max(1, pairs), Requests: max(1, requests), Selects: selects.MatchString}
	measured, err := server.CompareCPU(ctx, subject(base), subject(change), scale, os.Stderr)
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(table, "request\tbase, µs\tchange, µs\tmedian ratio\tquartiles\t\n")
	for _, m := range measured {
		ratios := m.Ratios()
		fmt.Fprintf(table, "%s\t%.1f\t%.1f\t%.3f\t%.3f .. %.3f\t\n", m.Name, micros(m.Base), micros(m.Change),
			report.Median(ratios), ratios[len(ratios)/4], ratios[(len(ratios)-1)*3/4])
	}
	return table.Flush()
}

// micros is the median, in microseconds.
func micros(times []time.Duration) float64 {
	values := make([]float64, len(times))
	for i, t := range times {
		values[i] = float64(t) / float64(time.Microsecond)
	}
	return report.Median(values)
}
