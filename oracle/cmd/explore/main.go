// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Command explore compares both servers beyond the conversations: it takes the objects of
// the conversations, changes them at random (guided by kube-apiserver's own
// schemas), sends each to kube-apiserver and to Steer, and prints where the answers
// are not alike, grouped by what differs.
//
//	STEER_UPSTREAM_BIN=bin go run ./cmd/explore [-n 2000] [-seed 1] [-kind REGEXP] [-verbs]
//	STEER_UPSTREAM_BIN=bin go run ./cmd/explore -customs [-n 40] [-seed 1]
//	STEER_UPSTREAM_BIN=bin go run ./cmd/explore -defaults [-n 30] [-seed 1] [-kind REGEXP]
//
// With -defaults it leaves fields out of the objects of every kind, one by one and in
// random subsets, so that what the servers fill in is compared.
//
// With -customs it makes up definitions of custom resources, has a conversation about
// each, and prints those that differ, without the requests and the parts of the
// definition that make no difference.
//
// What it finds becomes a request in a conversation.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"regexp"
	"syscall"
	"time"

	"github.com/steer-dev/steer/apiserver/wiretest"
	"github.com/steer-dev/steer/oracle/upstream"
)

type options struct {
	dir, kind   string
	rounds      int
	seed        uint64
	shown       int
	alsoSuccess bool
	verbs       bool
	customs     bool
	defaults    bool
}

func main() {
	var o options
	flag.StringVar(&o.dir, "dir", "testdata", "directory of the conversations")
	flag.StringVar(&o.kind, "kind", "", "only kinds that match, such as ^Pod$")
	flag.IntVar(&o.rounds, "n", 2000, "how many changed objects to send")
	flag.Uint64Var(&o.seed, "seed", 1, "of what is random")
	flag.IntVar(&o.shown, "shown", 1, "how many examples of each difference to print")
	flag.BoolVar(&o.alsoSuccess, "v", false, "print the recorded objects that are not usable as well")
	flag.BoolVar(&o.verbs, "verbs", false, "send patches, applies, scales, deletions, tables and selections instead of whole objects")
	flag.BoolVar(&o.customs, "customs", false, "have -n conversations about custom resources of random definitions instead")
	flag.BoolVar(&o.defaults, "defaults", false, "create the recorded objects without each of their fields, with more of them empty, and -n random subsets of each, instead")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := explore(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "explore:", err)
		os.Exit(1)
	}
}

func explore(ctx context.Context, o options) (err error) {
	match, err := regexp.Compile(o.kind)
	if err != nil {
		return err
	}
	scripts, err := wiretest.Load(o.dir)
	if err != nil {
		return err
	}
	server, err := upstream.Start(ctx, upstream.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	steer, stop, err := startSteer(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	pair := &pair{
		kubernetes: &wiretest.Target{Client: server.Client(), Base: server.URL, Token: server.Token},
		steer:      steer,
	}
	if o.customs {
		c := &customs{pair: pair}
		err := c.run(ctx, o.seed, o.rounds)
		c.print(os.Stdout)
		return err
	}
	shapes, err := loadShapes(ctx, pair.kubernetes)
	if err != nil {
		return err
	}
	corpus := newCorpus(scripts, match)
	if err := corpus.keepAlike(ctx, pair, o.alsoSuccess); err != nil {
		return err
	}
	if len(corpus.seeds) == 0 {
		return fmt.Errorf("no recorded object of a kind that matches %q is answered alike to begin with", o.kind)
	}
	if o.defaults {
		return defaults(ctx, o, pair, shapes, corpus.seeds)
	}
	if err := corpus.create(ctx, pair); err != nil {
		return err
	}
	random := rand.New(rand.NewPCG(o.seed, 0))
	found := &findings{}
	begin := time.Now()
	for range o.rounds {
		seed := corpus.seeds[random.IntN(len(corpus.seeds))]
		m := &mutator{random: random, pool: corpus.pool, shapes: shapes}
		request := m.change
		if o.verbs {
			request = m.ask
		}
		asked := request(seed)
		want, got, err := pair.ask(ctx, asked)
		if err != nil {
			return err
		}
		found.add(seed.kind, asked, want, got)
	}
	found.print(os.Stdout, o.shown)
	fmt.Printf("%d requests from %d objects in %v: %d alike, %d not, of %d sorts, %d not answered by kube-apiserver\n", o.rounds,
		len(corpus.seeds), time.Since(begin).Round(time.Second), found.alike, o.rounds-found.alike-found.unanswered, len(found.sorts), found.unanswered)
	return nil
}

// defaults compares what the servers fill in, and reports it.
func defaults(ctx context.Context, o options, p *pair, shapes *shapes, seeds []seed) error {
	c := &compareDefaults{
		pair: p, shapes: shapes, random: rand.New(rand.NewPCG(o.seed, 0)), found: &findings{},
		sent: map[string]bool{}, created: map[string]int{},
	}
	begin := time.Now()
	err := c.run(ctx, seeds, o.rounds)
	c.found.print(os.Stdout, o.shown)
	created := 0
	for _, n := range c.created {
		created += n
	}
	fmt.Printf("%d objects of %d kinds in %v: %d created, %d alike, of %d sorts not\n", len(c.sent), len(c.created),
		time.Since(begin).Round(time.Second), created, c.found.alike, len(c.found.sorts))
	return err
}
