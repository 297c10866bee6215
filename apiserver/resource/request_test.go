// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package resource_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/steer-dev/steer/apiserver/resource"
)

func TestRequestIsCarriedByContexts(t *testing.T) {
	t.Parallel()
	r := &resource.Request{Verb: "get"}
	if got := resource.RequestFrom(resource.WithRequest(t.Context(), r)); got != r {
		t.Errorf("got %v", got)
	}
	if got := resource.RequestFrom(context.Background()); got != nil {
		t.Errorf("a context without a request has %v", got)
	}
}

func TestIsDryRunAcceptsAllAlone(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		dryRun []string
		want   bool
	}{{nil, false}, {[]string{"All"}, true}, {[]string{"Some"}, false}, {[]string{"All", "All"}, false}} {
		if got := resource.IsDryRun(c.dryRun); got != c.want {
			t.Errorf("%q: %v", c.dryRun, got)
		}
	}
}

func TestWarningsThatCannotBeSentAreDropped(t *testing.T) {
	t.Parallel()
	var w resource.Warnings
	for _, text := range []string{"", "a\xff", "line\nline", "tab\t"} {
		w.Add(text)
	}
	if got := w.Texts(); got != nil {
		t.Errorf("warnings %q", got)
	}
}

func TestWarningsAreCutToWhatClientsGet(t *testing.T) {
	t.Parallel()
	// text returns a warning of n characters of two bytes, which differs by its first one.
	text := func(i, n int) string { return string(rune('à'+i)) + strings.Repeat("é", n-1) }
	texts := func(count, n int) []string {
		var out []string
		for i := range count {
			out = append(out, text(i, n))
		}
		return out
	}
	for name, c := range map[string]struct{ added, want []string }{
		"one that fits":              {texts(1, 4096), texts(1, 4096)},
		"one that is longer":         {texts(1, 4097), texts(1, 256)},
		"several that fit":           {texts(2, 2048), texts(2, 2048)},
		"several that do not":        {texts(2, 2049), texts(2, 256)},
		"more than fit if cut":       {texts(17, 300), texts(16, 256)},
		"short ones are left whole":  {append(texts(1, 5000), "b"), append(texts(1, 256), "b")},
		"long ones that begin alike": {[]string{text(0, 5000), text(0, 6000)}, texts(1, 256)},
	} {
		var w resource.Warnings
		for _, text := range c.added {
			w.Add(text)
		}
		if diff := cmp.Diff(c.want, w.Texts()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestFinishCallsBackOnceLastAddedFirst(t *testing.T) {
	t.Parallel()
	var calls []string
	var f resource.Finish
	for _, name := range []string{"a", "b"} {
		f.Add(func(o resource.Outcome) {
			calls = append(calls, name+map[resource.Outcome]string{resource.NotStored: " not stored", resource.Stored: " stored", resource.Unknown: " unknown"}[o])
		})
	}
	f.Run(resource.Stored)
	f.Run(resource.Unknown) // nothing is left to call
	f.Add(func(resource.Outcome) { calls = append(calls, "c") })
	f.Run(resource.NotStored)
	if want := []string{"b stored", "a stored", "c"}; !slices.Equal(calls, want) {
		t.Errorf("calls %q, want %q", calls, want)
	}
	var none *resource.Finish
	none.Add(func(resource.Outcome) { t.Error("called without a Finish") })
}
