// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const oldAPI = `cache: func (l *Lister[T]) Get(ctx context.Context, key client.ObjectKey) (T, error)
cache: func New() *Cache
cache: type Event struct
cache: type Event, Object client.Object
cache: type Informer interface
cache: type Informer, AddHandler(h Handler)
cache: var ErrGone
`

// TestAPIDifferencesAreNamed has a change of every form.
func TestAPIDifferencesAreNamed(t *testing.T) {
	t.Parallel()
	edit := func(pairs ...string) string { return strings.NewReplacer(pairs...).Replace(oldAPI) }
	for name, c := range map[string]struct {
		after, shown string
		callers      []string
	}{
		"nothing":                {oldAPI, "0 removed, 0 changed, 0 required of implementations, 0 added", nil},
		"an added function":      {oldAPI + "cache: func Open() *Cache\n", "1 added", nil},
		"an added field":         {oldAPI + "cache: type Event, Old client.Object\n", "1 added", nil},
		"a removed variable":     {edit("cache: var ErrGone\n", ""), "removed  cache: var ErrGone", []string{"cache.ErrGone"}},
		"another result":         {edit("*Cache", "(*Cache, error)"), "changed  cache: func New() *Cache\n      to cache: func New() (*Cache, error)", []string{"cache.New"}},
		"another type of field":  {edit("Object client.Object", "Object any"), "1 changed", []string{"cache.Event.Object"}},
		"another method":         {edit("(T, error)", "(*T, error)"), "1 changed", []string{"cache.Lister.Get"}},
		"a pointer's receiver":   {edit("l *Lister[T]", "l Lister[T]"), "1 changed", []string{"cache.Lister.Get"}},
		"a method of interfaces": {oldAPI + "cache: type Informer, Sync()\n", "required cache: type Informer, Sync()", []string{"cache.Informer.Sync"}},
		"a new interface":        {oldAPI + "cache: type Reader interface\ncache: type Reader, Read()\n", "2 added", nil},
	} {
		d := compareAPI(oldAPI, c.after)
		if !strings.Contains(d.String(), c.shown) || !slices.Equal(d.unnamed(""), c.callers) {
			t.Errorf("%s: got %q, for callers %v", name, d, d.unnamed(""))
		}
		if text := "`" + strings.Join(c.callers, "` and `") + "`"; len(d.unnamed(text)) > 0 {
			t.Errorf("%s: %s does not name them", name, text)
		}
	}
}

// TestAPIFailsWhereTheChangelogIsSilent runs the command.
func TestAPIFailsWhereTheChangelogIsSilent(t *testing.T) {
	t.Parallel()
	repo := t.TempDir()
	write(t, filepath.Join(repo, releasedFile), "# v1.1.0\n"+oldAPI)
	write(t, filepath.Join(repo, apiFile), strings.Replace(oldAPI, "cache: var ErrGone\n", "", 1))
	write(t, filepath.Join(repo, changelogFile), "## Unreleased\n\n## v1.1.0\n\n- `cache.ErrGone` is new.\n")
	out, err := steer(t, repo, "api")
	if err == nil || !strings.Contains(err.Error(), "cache.ErrGone") || !strings.Contains(out, "since v1.1.0") {
		t.Errorf("got %v\n%s", err, out)
	}
	write(t, filepath.Join(repo, changelogFile), "## Unreleased\n\n- `cache.ErrGone` is gone: use `cache.ErrExpired`.\n\n## v1.1.0\n")
	mustSteer(t, repo, "api")
}
