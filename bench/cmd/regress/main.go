// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Command regress compares a quick subset of the benchmarks with what is recorded in
// regress/golden.json, and fails on any difference.
//
//	go run ./cmd/regress             # compare
//	go run ./cmd/regress -update     # record
//	go run ./cmd/regress -benchstat new.txt && benchstat old.txt new.txt
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"

	"github.com/steer-dev/steer/bench/regress"
)

func main() {
	root := flag.String("root", "..", "directory of the main module")
	golden := flag.String("golden", "regress/golden.json", "the recorded figures")
	update := flag.Bool("update", false, "record what is measured")
	slack := flag.Float64("slack", 4, "how many times longer than recorded a benchmark may take, as a multiple of the reference; processors differ by 2 in what allocating costs against decoding")
	benchstat := flag.String("benchstat", "", "also write what go test prints to this file")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *root, *golden, *benchstat, *slack, *update); err != nil {
		fmt.Fprintln(os.Stderr, "regress:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, root, golden, benchstat string, slack float64, update bool) error {
	raw := io.Discard
	if benchstat != "" {
		file, err := os.Create(benchstat)
		if err != nil {
			return err
		}
		defer file.Close()
		raw = file
	}
	now, err := regress.Measure(ctx, root, runtime.Version(), regress.Suites(), raw)
	if err != nil {
		return err
	}
	if update {
		text, err := json.MarshalIndent(now, "", "  ")
		if err != nil {
			return err
		}
		return os.WriteFile(golden, append(text, '\n'), 0o644)
	}
	text, err := os.ReadFile(golden)
	if err != nil {
		return fmt.Errorf("nothing is recorded (record with -update): %w", err)
	}
	var before regress.Record
	if err := json.Unmarshal(text, &before); err != nil {
		return fmt.Errorf("read %s: %w", golden, err)
	}
	for range 2 {
		slow := regress.Slow(&before, now, regress.Suites(), slack)
		if len(slow) == 0 {
			break
		}
		again, err := regress.Measure(ctx, root, runtime.Version(), slow, io.Discard)
		if err != nil {
			return err
		}
		now.Keep(again)
	}
	differ := regress.Compare(&before, now, slack)
	for _, line := range differ {
		fmt.Println(line)
	}
	if len(differ) > 0 {
		return fmt.Errorf("%d of %d figures differ; if they should, record them with `go run ./cmd/regress -update` in bench/", len(differ), len(now.Figures))
	}
	fmt.Printf("%d benchmarks allocate exactly what was recorded\n", len(now.Figures))
	return nil
}
