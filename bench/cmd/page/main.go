// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Command page measures what the page of an operator costs a browser, and takes its pictures.
//
//	go run ./cmd/page paint                        # the first view of 10,000 objects and 100,000 records
//	go run ./cmd/page scroll                       # through an object with 40,000 records
//	go run ./cmd/page memory -for 10m              # of the browser, with an operator at full rate
//	go run ./cmd/page pictures -steer ../bin/steer # those of docs
//
// It needs Chromium, as bench/browser finds it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/steer-dev/steer/bench/browser"
	"github.com/steer-dev/steer/bench/page"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "page:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) (err error) {
	if len(args) == 0 {
		return errors.New("name paint, scroll, memory or pictures")
	}
	flags := flag.NewFlagSet("page "+args[0], flag.ExitOnError)
	period := flags.Duration("for", 10*time.Minute, "how long memory is watched")
	rate := flags.Int("rate", 5000, "reconciles in a second, of memory")
	steer := flags.String("steer", "../bin/steer", "the program steer, of pictures")
	root := flags.String("root", "..", "directory of the main module, of pictures")
	out := flags.String("out", "../docs/page", "directory to write pictures to")
	_ = flags.Parse(args[1:]) // it ends the program
	program, err := browser.Find()
	if err != nil {
		return err
	}
	b, err := browser.Start(program)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	switch args[0] {
	case "paint":
		return page.Paint(ctx, b, os.Stdout)
	case "scroll":
		return page.Scroll(ctx, b, os.Stdout)
	case "memory":
		return page.Memory(ctx, b, os.Stdout, *period, *rate)
	case "pictures":
		return page.Pictures(ctx, b, *steer, *root, *out)
	}
	return fmt.Errorf("%q is none of paint, scroll, memory and pictures", args[0])
}
