// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package gofile

import (
	"strings"
	"testing"
)

// operators are mains in the forms that authors give them.
func operators() map[string]string {
	return map[string]string{
		"as it is made": `package main

import (
	"context"
	"errors"

	"github.com/steer-dev/steer"
	"github.com/steer-dev/steer/manager"
)

func main() {
	steer.Main(steer.Operator{
		Name:   "guestbook",
		Scheme: steer.Scheme{},
		Setup: func(_ context.Context, m *manager.Manager) error {
			return errors.Join()
		},
	})
}
`,
		"on one line, with comments": `package main

import (
	"context"
	"errors"

	"github.com/steer-dev/steer"
	"github.com/steer-dev/steer/manager"

	other "example.com/guestbook/api/v1" // used below
)

// before stays.
var operator = steer.Operator{
	Scheme: steer.Scheme{other.AddToScheme}, // our kinds
	Setup: func(_ context.Context, mgr *manager.Manager) error {
		return errors.Join(first(mgr)) // all of them
	},
}

func first(*manager.Manager) error { return nil } // stays
`,
		"a function, error by error": `package main

import (
	"context"

	"github.com/steer-dev/steer"
	"github.com/steer-dev/steer/manager"

	other "example.com/guestbook/api/v1"
)

func main() {
	steer.Main(steer.Operator{
		Scheme: steer.Scheme{
			other.AddToScheme, // ours
			// the end
		},
		Setup: setup,
	})
}

func setup(ctx context.Context, m *manager.Manager) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return nil
}
`,
	}
}

func TestEditsOfMainAddAndRemoveAndNothingElse(t *testing.T) {
	t.Parallel()
	const module, api, controllers = "example.com/guestbook", "example.com/guestbook/api/v2", "example.com/guestbook/internal/controller"
	for name, text := range operators() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := Parse("cmd/main.go", []byte(text))
			if err != nil {
				t.Fatal(err)
			}
			did := func(done bool, err error) {
				t.Helper()
				if err != nil || !done {
					t.Fatalf("done %v, %v:\n%s", done, err, s.text)
				}
			}
			for range 2 { // the second time changes nothing
				did(s.AddElement("steer.Scheme", "webappv2.AddToScheme"))
				did(true, s.ImportAs("webappv2", api, module))
				did(true, s.ImportAs("controller", controllers, module))
			}
			did(s.AddSetup(func(m string) string { return "(&controller.BookReconciler{}).SetupWithManager(" + m + ")" }))
			added, err := s.Formatted()
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range []string{`webappv2 "` + api + `"`, `"` + controllers + `"`, "webappv2.AddToScheme", "SetupWithManager(m"} {
				if strings.Count(string(added), want) != 1 {
					t.Errorf("%q is not there once:\n%s", want, added)
				}
			}
			for line := range strings.Lines(text) {
				if i := strings.Index(line, "//"); i >= 0 && !strings.Contains(string(added), strings.TrimSpace(line[i:])) {
					t.Errorf("the comment %q is lost:\n%s", line[i:], added)
				}
			}
			did(true, s.Set(added))
			did(s.RemoveElement("steer.Scheme", "webappv2.AddToScheme"))
			did(s.RemoveSetup(s.SetsUp("controller.BookReconciler")))
			did(true, s.DropImport("webappv2", api))
			did(true, s.DropImport("controller", controllers))
			removed, err := s.Formatted()
			if err != nil || string(removed) != text {
				t.Errorf("%v, after the removal:\n%s", err, removed)
			}
		})
	}
}

func TestEditsOfRegistrationsKeepTheOtherKinds(t *testing.T) {
	t.Parallel()
	const text = `package v1

func AddToScheme(s *Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&Guestbook{}, &GuestbookList{}, // the first
	)
	return nil
}
`
	s, err := Parse("groupversion_info.go", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if found, err := s.Register("Policy", "PolicyList"); err != nil || !found {
		t.Fatal(found, err)
	}
	if err := s.Unregister("Guestbook", "GuestbookList"); err != nil {
		t.Errorf("%v:\n%s", err, s.text)
	}
	for name, want := range map[string]bool{"&Guestbook{}": false, "&GuestbookList{}": false, "&Policy{}": true, "&PolicyList{}": true, "// the first": true} {
		if strings.Contains(string(s.text), name) != want {
			t.Errorf("%s: want %v:\n%s", name, want, s.text)
		}
	}
}
