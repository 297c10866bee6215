// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/steer-dev/steer/apiserver/wiretest"
)

// seed is a recorded object that both servers answer alike.
type seed struct {
	kind   string
	gvk    string
	target string
	body   map[string]any
	// exists reports that both servers have it, under its name.
	exists bool
}

// creation is a dry run of its creation.
func (s seed) creation() string { return s.target + "?" + dryRun }

const (
	dryRun = "dryRun=All"
	// rangeKind is left out: of several ranges kube-apiserver takes any for a dry run.
	rangeKind = "ServiceCIDR"
)

// corpus is what the conversations know: objects, and the values of every field.
type corpus struct {
	seeds []seed
	// pool holds values by the name of their field.
	pool map[string][]any
}

// newCorpus takes the creations that succeeded, each object once.
func newCorpus(scripts []*wiretest.Script, kinds *regexp.Regexp) *corpus {
	c := &corpus{pool: map[string][]any{}}
	known := map[string]bool{}
	for _, script := range scripts {
		for _, step := range script.Steps {
			var body map[string]any
			if step.Body == "" || strings.Contains(step.Body, "${") || yaml.Unmarshal([]byte(step.Body), &body) != nil {
				continue
			}
			c.learn("", body)
			kind, _ := body["kind"].(string)
			version, _ := body["apiVersion"].(string)
			if step.Method != "POST" || !kinds.MatchString(kind) || kind == rangeKind || version == "" || strings.Contains(step.Target, "${") || len(step.Header) > 0 {
				continue
			}
			path, _, _ := strings.Cut(step.Target, "?")
			text, _ := json.Marshal(body)
			if key := path + string(text); !known[key] {
				known[key] = true
				c.seeds = append(c.seeds, seed{kind: kind, gvk: version + "/" + kind, target: path, body: body})
			}
		}
	}
	return c
}

// learn remembers the values of fields, each once.
func (c *corpus) learn(name string, value any) {
	switch value := value.(type) {
	case map[string]any:
		for k, v := range value {
			c.learn(k, v)
		}
	case []any:
		for _, v := range value {
			c.learn(name, v)
		}
		return // elements are what the pool holds; lists are made of them
	}
	if name != "" && len(c.pool[name]) < 40 && !slices.ContainsFunc(c.pool[name], func(v any) bool { return same(v, value) }) {
		c.pool[name] = append(c.pool[name], value)
	}
}

func same(a, b any) bool {
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return string(x) == string(y)
}

// keepAlike drops the objects that are refused without the conversation around them,
// and those that are already answered differently, which it prints.
func (c *corpus) keepAlike(ctx context.Context, p *pair, verbose bool) error {
	var kept []seed
	for _, s := range c.seeds {
		want, got, err := p.ask(ctx, &request{method: "POST", target: s.creation(), body: s.body})
		if err != nil {
			return err
		}
		switch {
		case want != got:
			if verbose {
				fmt.Printf("not usable, %s %s\n%s", s.kind, s.target, difference(want, got))
			}
		case strings.HasPrefix(want, "201 "), strings.HasPrefix(want, "422 "):
			kept = append(kept, s)
		}
	}
	c.seeds = kept
	return nil
}

// create makes the objects, so that they can be changed. One whose name is taken, or
// which is refused, is still there to be created otherwise.
func (c *corpus) create(ctx context.Context, p *pair) error {
	for i := range c.seeds {
		s := &c.seeds[i]
		want, got, err := p.ask(ctx, &request{method: "POST", target: s.target, body: s.body})
		if err != nil {
			return err
		}
		p.learn(want, got)
		s.exists = strings.HasPrefix(want, "201 ") && strings.HasPrefix(got, "201 ") && s.name() != ""
	}
	return nil
}

// name returns the name that the object says.
func (s seed) name() string {
	metadata, _ := s.body["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	return name
}
