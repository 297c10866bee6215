// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package steertest_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/steer-dev/steer/internal/driven"
	"github.com/steer-dev/steer/steertest"
)

// engine lets everything go on at once, and notes who sends what.
type engine struct {
	env driven.Env

	mu   sync.Mutex
	sent []string
}

func (e *engine) Seed() uint64                 { return 7 }
func (e *engine) Log(string)                   {}
func (e *engine) Ended(_ int, err error) error { return err }

func (e *engine) Outside(what string, do func() error) error {
	e.note("outside " + what)
	return do()
}

func (e *engine) Attach(env driven.Env) error {
	if e.env != nil {
		return driven.ErrAgain
	}
	e.env = env
	return nil
}

func (e *engine) User(name string, next http.RoundTripper) http.RoundTripper {
	return e.noting(name, next)
}

func (e *engine) Operator(n int, next http.RoundTripper) http.RoundTripper {
	return e.noting("operator "+strings.Repeat("I", n), next)
}

func (e *engine) noting(who string, next http.RoundTripper) http.RoundTripper {
	return roundTrip(func(r *http.Request) (*http.Response, error) {
		if r.Method != http.MethodGet {
			e.note(who + " " + r.Method)
		}
		return next.RoundTrip(r)
	})
}

func (e *engine) note(line string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.sent = append(e.sent, line)
}

func (e *engine) Rest(ctx context.Context) (uint64, error) {
	for {
		var sent int
		for _, name := range e.env.Controllers() {
			n, err := e.env.StepController(ctx, name)
			if err != nil {
				return 0, err
			}
			sent += n
		}
		if sent == 0 {
			return e.env.Revision(), nil
		}
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestAnEngineDrivesTheEnvironmentOfATest restarts the operator from outside of the test,
// while that waits, and sees all that is sent and stored.
func TestAnEngineDrivesTheEnvironmentOfATest(t *testing.T) {
	t.Parallel()
	var seen [2][]string
	for i := range seen {
		synctest.Test(t, func(t *testing.T) {
			e := &engine{}
			defer driven.Drive(t, e)()
			env := steertest.New(t, steertest.Options{Scheme: scheme(t), Setup: setup})
			first := env.Manager()
			source := configMap("source")
			source.Data = map[string]string{"a": "1"}
			env.Create(source)
			env.Settled()
			restarted := make(chan error)
			go func() { restarted <- e.env.Restart(1) }()
			env.Settled()
			if err := <-restarted; err != nil {
				t.Fatal(err)
			}
			env.Settled()
			if err := e.env.Restart(1); err != nil { // that one has ended before
				t.Fatal(err)
			}
			if env.Manager() == first {
				t.Error("it was not restarted")
			}
			other := configMap("source")
			other.Namespace, other.Name = "default", "other"
			if err := env.AsUser("jane").Create(env.Context(), other); err == nil {
				t.Error("jane has no role")
			}
			if err := env.Outside("a disk", func() error { return nil }); err != nil {
				t.Fatal(err)
			}
			env.Settled()
			objects, err := e.env.Objects(env.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := env.Client.Delete(env.Context(), configMap("source")); err != nil {
				t.Fatal(err)
			}
			env.Settled()
			changes, err := e.env.Changes(env.Context())
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, key := range slices.Sorted(maps.Keys(objects)) {
				if o := objects[key]; o.GetKind() != "Event" {
					names = append(names, o.GetKind()+" "+o.GetName()+" "+string(o.GetUID()))
				}
			}
			for _, c := range changes {
				if c.Object != nil {
					e.note(fmt.Sprint("deleted ", c.Key, " ", c.Object.Object["data"]))
				}
			}
			seen[i] = append(names, e.sent...)
			if len(names) != 2 || !strings.HasPrefix(names[0], "ConfigMap copy ") || !strings.HasPrefix(names[1], "ConfigMap source ") {
				t.Errorf("objects: %v", names)
			}
			if got := e.env.Kind("", "configmaps") + e.env.Kind("x", "configmaps"); got != "ConfigMap" {
				t.Errorf("kind: %s", got)
			}
			time.Sleep(time.Second)
		})
	}
	for _, want := range []string{"user POST", "user jane POST", "operator I PATCH", "outside a disk", "deleted configmaps/default/source map[a:1]"} {
		if !slices.Contains(seen[0], want) {
			t.Errorf("%q was not sent: %q", want, seen[0])
		}
	}
	if !slices.Equal(seen[0], seen[1]) {
		t.Errorf("two runs differ:\n%q\n%q", seen[0], seen[1])
	}
}

func TestAnEngineDrivesOneEnvironmentOfATest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		defer driven.Drive(t, &engine{})()
		got := fails(t, func(tb testing.TB) {
			steertest.New(tb, steertest.Options{Scheme: scheme(t)})
			steertest.New(tb, steertest.Options{Scheme: scheme(t)})
		})
		if !strings.Contains(got, driven.ErrAgain.Error()) {
			t.Errorf("message: %s", got)
		}
	})
}
