// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/steer-dev/steer/cmd/steer/internal/explain"
	"github.com/steer-dev/steer/cmd/steer/internal/screen"
	"github.com/steer-dev/steer/trace"
)

// selecting is a screen of 100 by 20 with the objects a, b and c, of which b was reconciled
// last, and of a request without an object.
func selecting(t *testing.T) *live {
	t.Helper()
	v, err := newLive(screen.Screen{Project: "shop"})
	if err != nil {
		t.Fatal(err)
	}
	v.objects.width, v.objects.height = 100, 20
	for _, name := range []string{"c", "a", "b"} {
		v.feed.Add(trace.Record{Controller: "shop", Object: trace.Object{Kind: "Shop", Namespace: "default", Name: name}, Outcome: trace.Done})
	}
	return v
}

// selected is the line of the cursor.
func (v *live) selectedLine() string {
	shown := v.snapshot()
	for _, line := range shown.Render(100, 20, false) {
		if strings.HasPrefix(line, "> ") {
			return strings.Join(strings.Fields(line)[1:3], " ")
		}
	}
	return ""
}

func TestCursorStaysAtItsObject(t *testing.T) {
	t.Parallel()
	v := selecting(t)
	if got := v.selectedLine(); got != "Shop default/b" {
		t.Errorf("at first: %s, want what was reconciled last", got)
	}
	for _, step := range []struct {
		key  key
		want string
	}{{keyUp, "a"}, {'k', "a"}, {'j', "b"}, {keyDown, "c"}, {'j', "c"}, {keyHome, "a"}, {'G', "c"}, {'k', "b"}} {
		v.key(t.Context(), step.key)
		if got := v.selectedLine(); got != "Shop default/"+step.want {
			t.Errorf("after key %d: %s, want %s", step.key, got, step.want)
		}
	}
	// Another one comes above it, and is the latest.
	v.feed.Add(trace.Record{Controller: "shop", Object: trace.Object{Kind: "Shop", Namespace: "default", Name: "aa"}, Outcome: trace.Done})
	if got := v.selectedLine(); got != "Shop default/b" {
		t.Errorf("after another came: %s", got)
	}
	v.key(t.Context(), '\r')
	v.feed.Add(trace.Record{Controller: "shop", Object: trace.Object{Kind: "Shop", Namespace: "default", Name: "z"}, Outcome: trace.Done})
	if s := v.snapshot(); s.View != screen.Object || s.About != "Shop default/b" || len(s.Text) != 1 || !strings.Contains(s.Text[0], "shop default/b") {
		t.Errorf("open: view %d, %s, %q", s.View, s.About, s.Text)
	}
}

// TestScreenAsksBesideItsDrawing and shows the answer to the last question alone.
func TestScreenAsksBesideItsDrawing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		v := selecting(t)
		answers, ended := make(chan string), 0
		v.objects.ask = func(ctx context.Context, q explain.Question, object trace.Object) (string, error) {
			select {
			case answer := <-answers:
				if answer == "" {
					return "", errors.New("the server is gone")
				}
				return answer + " of " + object.String() + "\n  and more\n", nil
			case <-ctx.Done():
				ended++
				return "", ctx.Err()
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		shown := func() string {
			t.Helper()
			synctest.Wait()
			s := v.snapshot()
			lines := s.Render(100, 20, false)
			return strings.Join(lines[1:len(lines)-1], "\n")
		}
		expect := func(what, want string) {
			t.Helper()
			if got := shown(); got != want {
				t.Errorf("%s: %q, want %q", what, got, want)
			}
		}
		v.key(ctx, 'w') // nothing is open
		v.key(ctx, '\r')
		v.key(ctx, 'w')
		expect("asked", "Shop default/b: why\nreading ...")
		answers <- "because"
		expect("answered", "Shop default/b: why\nbecause of Shop default/b\n  and more")
		v.key(ctx, 'j')
		expect("all of it is there", "Shop default/b: why\nbecause of Shop default/b\n  and more")

		v.key(ctx, 't')
		v.key(ctx, 'h')
		expect("another question", "Shop default/b: history\nreading ...")
		if ended != 1 {
			t.Errorf("%d questions have ended, want that of the tree", ended)
		}
		answers <- ""
		expect("an error", "Shop default/b: history\nthe server is gone")

		v.key(ctx, '\t')
		v.key(ctx, keyEscape)
		if got := v.selectedLine(); got != "Shop default/b" {
			t.Errorf("back: %s", got)
		}
		v.key(ctx, '\r')
		if got := shown(); !strings.HasPrefix(got, "Shop default/b: reconciles\n") || ended != 2 {
			t.Errorf("open again: %q, %d questions have ended", got, ended)
		}
		v.key(ctx, keyBackTab)
		expect("the tab before the first", "Shop default/b: tree\nreading ...")
		cancel()
		v.objects.asking.Wait() // as the screen does when it ends
	})
}

func TestLongAnswersScroll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		v := selecting(t)
		v.objects.ask = func(context.Context, explain.Question, trace.Object) (string, error) {
			return "1\n2\n3\n4\n5\n6\n", nil
		}
		v.objects.height = 7 // four of them
		for _, step := range []struct{ keys, want string }{
			{"\rw", "1 2 3 4"}, {"j", "2 3 4 5"}, {"jjjj", "3 4 5 6"}, {"k", "2 3 4 5"}, {"g", "1 2 3 4"},
			{"h", "3 4 5 6"}, {"k", "2 3 4 5"}, {"t", "1 2 3 4"}, {" ", "3 4 5 6"},
		} {
			for _, k := range step.keys {
				v.key(t.Context(), key(k))
				synctest.Wait()
			}
			s := v.snapshot()
			lines := s.Render(100, 7, false)
			if got := strings.Join(lines[2:len(lines)-1], " "); got != step.want {
				t.Errorf("after %q: %s, want %s", step.keys, got, step.want)
			}
		}
	})
}

func TestNothingIsAskedAboutARequestWithoutAnObject(t *testing.T) {
	t.Parallel()
	v, err := newLive(screen.Screen{})
	if err != nil {
		t.Fatal(err)
	}
	v.key(t.Context(), '\r') // nothing is there
	v.feed.Add(trace.Record{Controller: "nightly", Request: "report", Began: time.Now(), Outcome: trace.Done})
	v.key(t.Context(), '\r')
	v.key(t.Context(), 'w')
	if s := v.snapshot(); s.About != "nightly report" || s.Reading || len(s.Text) != 1 || !strings.Contains(s.Text[0], "nothing to ask") {
		t.Errorf("%s: %q", s.About, s.Text)
	}
}
