// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Command record runs the conversations of testdata against kube-apiserver
// and writes its answers into them. With -check it only compares.
//
//	go build -o bin/ ./cmd/... && STEER_UPSTREAM_BIN=bin go run ./cmd/record [-run REGEXP] [-check]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/steer-dev/steer/apiserver/wiretest"
	"github.com/steer-dev/steer/oracle/upstream"
)

// settle is how long kube-apiserver needs until a changed policy is in force, which it
// looks for every second, or a parameter of a kind that it begins to watch.
const settle = 3 * time.Second

// pause is how long its caches need to see a write: a patch of an object that they show as
// it was is tried twice, and calls webhooks twice.
const pause = 100 * time.Millisecond

func main() {
	dir := flag.String("dir", "testdata", "directory of the conversations")
	pattern := flag.String("run", "", "only conversations whose name matches")
	check := flag.Bool("check", false, "compare, write nothing")
	verbose := flag.Bool("v", false, "show what the servers log")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := record(ctx, *dir, *pattern, *check, *verbose); err != nil {
		fmt.Fprintln(os.Stderr, "record:", err)
		os.Exit(1)
	}
}

func record(ctx context.Context, dir, pattern string, check, verbose bool) error {
	match, err := regexp.Compile(pattern)
	if err != nil {
		return err
	}
	scripts, err := wiretest.Load(dir)
	if err != nil {
		return err
	}
	scripts = slices.DeleteFunc(scripts, func(s *wiretest.Script) bool { return !match.MatchString(s.Name) })
	// Those that need other plugins, or controllers, need another server.
	servers := map[string][]*wiretest.Script{}
	for _, script := range scripts {
		server := strings.Join(script.Admission, " ")
		if len(script.Controllers) > 0 {
			server += " with " + strings.Join(script.Controllers, " ")
		}
		if script.Alone {
			server += " for " + script.Name
		}
		servers[server] = append(servers[server], script)
	}
	changed := 0
	for _, server := range slices.Sorted(maps.Keys(servers)) {
		n, err := converse(ctx, servers[server], dir, check, verbose)
		if err != nil {
			return err
		}
		changed += n
	}
	if check && changed > 0 {
		return fmt.Errorf("%d answers differ from the recorded ones", changed)
	}
	return nil
}

// converse has conversations, all of which need the same plugins and controllers, with a server,
// and returns how many answers are new.
func converse(ctx context.Context, scripts []*wiretest.Script, dir string, check, verbose bool) (changed int, err error) {
	var log io.Writer
	if verbose {
		log = os.Stderr
	}
	server, err := upstream.Start(ctx, upstream.Options{Log: log, Admission: scripts[0].Admission, FrontProxy: len(scripts[0].Backends) > 0})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	fmt.Printf("kube-apiserver ready after %v\n", server.Started.Round(time.Millisecond))

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := control(ctx, server, scripts[0].Controllers); err != nil {
		return 0, err
	}
	target := wiretest.Target{Client: server.Client(), Base: server.URL, Token: server.Token, Compact: server.Compact, Settle: settle, Pause: pause}
	for _, script := range scripts {
		begin := time.Now()
		answers, err := target.Run(ctx, script)
		if err != nil {
			return changed, err
		}
		differs := take(answers, !check)
		fmt.Printf("%-24s %3d requests %3d changed %6.1fs\n", script.Name, len(answers), differs, time.Since(begin).Seconds())
		changed += differs
		if check {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, script.Name+".txtar"), script.Format(), 0o644); err != nil {
			return changed, err
		}
	}
	return changed, nil
}

// take puts the answers into their steps, or prints them, and returns how many
// are new.
func take(answers []wiretest.Answer, keep bool) int {
	changed := 0
	for _, answer := range answers {
		if answer.Failed {
			fmt.Printf("  setup %s failed: %s\n", answer.Step.Name, answer.Text)
		}
		if answer.Text == answer.Step.Answer {
			continue
		}
		changed++
		if keep {
			answer.Step.Answer = answer.Text
		} else {
			fmt.Printf("  %s answers now:\n%s\n", answer.Step.Name, answer.Text)
		}
	}
	return changed
}
