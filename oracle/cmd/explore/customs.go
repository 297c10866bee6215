// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/steer-dev/steer/apiserver/wiretest"
)

// customs has random conversations about custom resources of random definitions with
// both servers, and prints those at whose end the answers are not alike, without the
// requests that make no difference.
type customs struct {
	pair   *pair
	groups atomic.Int64

	mu                   sync.Mutex
	asked, conversations int
	differing            map[string]*disagreement
}

// disagreement is a conversation whose last request is answered differently.
type disagreement struct {
	steps     [][]string
	want, got string
	times     int
}

const (
	// requestsEach is how many requests a conversation has, about.
	requestsEach = 25
	// patience is how often a conversation that differs is tried without some of it.
	patience = 24
)

// run has so many conversations, some at a time: kube-apiserver takes its time to
// serve a new definition, and watches theirs to end.
func (c *customs) run(ctx context.Context, seed uint64, conversations int) error {
	c.differing = map[string]*disagreement{}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(6)
	for i := range conversations {
		group.Go(func() error {
			d := definer{rand.New(rand.NewPCG(seed, uint64(i)))}
			definition := d.definition()
			broken := clone(definition).(map[string]any)
			right, err := c.repair(ctx, definition)
			if err != nil {
				return err
			}
			t := newTalk(d, definition, requestsEach)
			if !right {
				return c.converse(ctx, [][]string{t.steps[0][:1]})
			}
			if err := c.converse(ctx, [][]string{newTalk(d, broken, 0).steps[0][:1]}); err != nil {
				return err
			}
			return c.converse(ctx, t.steps)
		})
	}
	return group.Wait()
}

func (c *customs) converse(ctx context.Context, steps [][]string) error {
	found, asked, err := c.compare(ctx, steps)
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.conversations++
	c.asked += asked
	if found == nil {
		c.mu.Unlock()
		return nil
	}
	sort := found.sort()
	known := c.differing[sort]
	if known != nil {
		known.times++
		c.mu.Unlock()
		return nil
	}
	found.times = 1
	c.differing[sort] = found
	c.mu.Unlock()
	small, err := c.shrink(ctx, found)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	found.steps, found.want, found.got = small.steps, small.want, small.got
	return nil
}

// sort is the difference without what varies.
func (d *disagreement) sort() string {
	last := d.steps[len(d.steps)-1]
	method, _, _ := strings.Cut(last[len(last)-1], " ")
	return method + "\n" + varying.ReplaceAllString(difference(d.want, d.got), "_")
}

// compare has a conversation and returns it up to the first answer that differs, and how
// many requests it took.
func (c *customs) compare(ctx context.Context, steps [][]string) (*disagreement, int, error) {
	group := fmt.Sprintf("g%d.example.com", c.groups.Add(1))
	var text strings.Builder
	for i, step := range slices.Concat(steps...) {
		fmt.Fprintf(&text, "-- r%d --\n%s", i, strings.ReplaceAll(step, groupMark, group))
	}
	fmt.Fprintf(&text, "-- end --\nDELETE /apis/apiextensions.k8s.io/v1/customresourcedefinitions/%s.%s\n", plural, group)
	var sides [2][]wiretest.Answer
	both, ctx := errgroup.WithContext(ctx)
	for i, target := range []*wiretest.Target{c.pair.kubernetes, c.pair.steer} {
		both.Go(func() error {
			script, err := wiretest.Parse(group, []byte(text.String()))
			if err != nil {
				return fmt.Errorf("%w in\n%s", err, text.String())
			}
			patient := *target
			patient.Patience = 5 * time.Second
			sides[i], err = patient.Run(ctx, script)
			return err
		})
	}
	if err := both.Wait(); err != nil {
		return nil, 0, err
	}
	asked := 0
	for i, together := range steps {
		for range together {
			want, got := plainAnswer(sides[0][asked], group), plainAnswer(sides[1][asked], group)
			asked++
			if want != got && !unordered(want, got) && !strings.HasPrefix(want, "(no answer") {
				return &disagreement{steps: slices.Clone(steps[:i+1]), want: want, got: got}, asked, nil
			}
		}
	}
	return nil, asked, nil
}

// plainAnswer leaves out what depends on the moment: bookmarks but for those at the end of
// what there is.
func plainAnswer(answer wiretest.Answer, group string) string {
	text := strings.ReplaceAll(answer.Text, group, groupMark)
	if strings.Contains(text, "type: BOOKMARK") {
		parts := strings.Split(text, "---\n")
		parts = slices.DeleteFunc(parts, func(part string) bool {
			return strings.Contains(part, "type: BOOKMARK") && !strings.Contains(part, "initial-events-end")
		})
		text = strings.Join(parts, "---\n")
	}
	text = typeNumber.ReplaceAllString(text, "selfType")
	return onPurpose.ReplaceAllString(text, "")
}

// typeNumber is the number of a rule's type in error messages; it differs between runs.
var typeNumber = regexp.MustCompile(`selfType\d+`)

// shrink leaves out the requests without which the last one is still answered as
// differently, half of them at a time, then fewer, and then of the definition what makes
// no difference.
func (c *customs) shrink(ctx context.Context, d *disagreement) (*disagreement, error) {
	sort, tries := d.sort(), 0
	try := func(steps [][]string) (bool, error) {
		if tries++; tries > patience {
			return false, nil
		}
		found, _, err := c.compare(ctx, steps)
		if err != nil || found == nil || found.sort() != sort || len(found.steps) != len(steps) {
			return false, err
		}
		d = found
		return true, nil
	}
	for size := max((len(d.steps)-2)/2, 1); size > 0; size /= 2 {
		for at := len(d.steps) - 1 - size; at >= 1; at -= size {
			if _, err := try(slices.Concat(d.steps[:at], d.steps[at+size:])); err != nil {
				return nil, err
			}
		}
	}
	head, body, _ := strings.Cut(d.steps[0][0], "\n\n")
	var definition map[string]any
	if err := json.Unmarshal([]byte(body), &definition); err != nil {
		return nil, err
	}
	var leave func(at any, depth int) error
	leave = func(at any, depth int) error {
		switch at := at.(type) {
		case []any:
			for _, inner := range at {
				if err := leave(inner, depth); err != nil {
					return err
				}
			}
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(at)) {
				value := at[key]
				if slices.Contains(needed, key) {
					continue
				}
				delete(at, key)
				text, err := json.Marshal(definition)
				if err != nil {
					return err
				}
				steps := slices.Clone(d.steps)
				steps[0] = append([]string{head + "\n\n" + string(text) + "\n"}, steps[0][1:]...)
				if done, err := try(steps); err != nil || done {
					if err != nil {
						return err
					}
					continue
				}
				at[key] = value
				if depth > 0 {
					if err := leave(value, depth-1); err != nil {
						return err
					}
				}
			}
		}
		return nil
	}
	for _, version := range definition["spec"].(map[string]any)["versions"].([]any) {
		if err := leave(version, 7); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// needed are fields without which a definition is none.
var needed = []string{"name", "served", "storage", "type"}

// print writes what differs, the most frequent first.
func (c *customs) print(w io.Writer) {
	all := make([]*disagreement, 0, len(c.differing))
	for _, d := range c.differing {
		all = append(all, d)
	}
	slices.SortFunc(all, func(a, b *disagreement) int { return b.times - a.times })
	total := 0
	for _, d := range all {
		total += d.times
		fmt.Fprintf(w, "=== %d times\n", d.times)
		for i, step := range slices.Concat(d.steps...) {
			fmt.Fprintf(w, "-- r%d --\n%s", i, step)
		}
		fmt.Fprintf(w, ">>>\n%s<<<\n\n", difference(d.want, d.got))
	}
	fmt.Fprintf(w, "%d conversations of %d requests: %d end with answers that are not alike, of %d sorts\n", c.conversations, c.asked, total, len(all))
}
