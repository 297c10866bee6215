// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"context"
	"maps"
	"testing"

	"github.com/steer-dev/steer/scaffold/internal/transaction"
)

// kill is what a process is killed with in tests.
type kill struct{}

// killedAt runs a command that ends at its n-th change of the disk, as if its process
// were killed there, and reports whether it came that far.
func killedAt(n int, run func(step func()) error) (killed bool, err error) {
	defer func() {
		if r := recover(); r != nil {
			if _, killed = r.(kill); !killed {
				panic(r)
			}
		}
	}()
	return false, run(func() {
		if n--; n < 0 {
			panic(kill{})
		}
	})
}

// restore is what every command does first.
func restore(dir string, step func()) error {
	_, err := transaction.Run(dir, step, func(*transaction.Transaction) error { return nil })
	return err
}

// TestCommandsThatAreKilledLeaveTheTreeAsItWas kills every command at each of its
// changes of the disk. The next command restores the tree, and does what it does on
// the tree as it was.
func TestCommandsThatAreKilledLeaveTheTreeAsItWas(t *testing.T) {
	t.Parallel()
	empty := func(t *testing.T) string { return t.TempDir() }
	with := func(o ...APIOptions) func(t *testing.T) string {
		return func(t *testing.T) string {
			dir := newProject(t)
			for _, o := range o {
				o.Dir = dir
				create(t, o)
			}
			return dir
		}
	}
	withServer := func(t *testing.T) string {
		dir := newProject(t)
		if _, err := CreateServer(t.Context(), ServerOptions{Dir: dir, GVK: kindOf("notes", "v1", "Note"), NoGenerate: true}); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	for name, test := range map[string]struct {
		begin func(t *testing.T) string
		run   func(ctx context.Context, dir string, step func()) error
	}{
		"init": {empty, func(ctx context.Context, dir string, step func()) error {
			_, err := Init(ctx, InitOptions{Dir: dir, Domain: "example.com", Name: "guestbook", Checkout: "..", Offline: true, step: step})
			return err
		}},
		"create api": {with(), func(ctx context.Context, dir string, step func()) error {
			_, err := CreateAPI(ctx, APIOptions{Dir: dir, GVK: guestbook("v1"), NoGenerate: true, step: step})
			return err
		}},
		"create api, second version": {with(APIOptions{GVK: guestbook("v1"), NoGenerate: true}), func(ctx context.Context, dir string, step func()) error {
			_, err := CreateAPI(ctx, APIOptions{Dir: dir, GVK: guestbook("v2"), NoGenerate: true, step: step})
			return err
		}},
		"create webhook": {with(APIOptions{GVK: guestbook("v1"), NoGenerate: true}), func(ctx context.Context, dir string, step func()) error {
			_, err := CreateWebhook(ctx, WebhookOptions{Dir: dir, GVK: guestbook("v1"), Defaulting: true, NoGenerate: true, step: step})
			return err
		}},
		"init, with all there is": {empty, func(ctx context.Context, dir string, step func()) error {
			_, err := Init(ctx, InitOptions{
				Dir: dir, Domain: "example.com", Name: "guestbook", Checkout: "..", Offline: true,
				Layout: "kubebuilder", With: Extras(), License: "apache2", step: step,
			})
			return err
		}},
		"create webhook, a conversion": {
			with(APIOptions{GVK: guestbook("v1"), NoGenerate: true}, APIOptions{GVK: guestbook("v2"), NoGenerate: true}),
			func(ctx context.Context, dir string, step func()) error {
				_, err := CreateWebhook(ctx, WebhookOptions{Dir: dir, GVK: guestbook("v1"), Conversion: true, NoGenerate: true, step: step})
				return err
			},
		},
		"create server": {with(), func(ctx context.Context, dir string, step func()) error {
			_, err := CreateServer(ctx, ServerOptions{Dir: dir, GVK: kindOf("notes", "v1", "Note"), NoGenerate: true, step: step})
			return err
		}},
		"create server, second kind": {withServer, func(ctx context.Context, dir string, step func()) error {
			_, err := CreateServer(ctx, ServerOptions{Dir: dir, GVK: kindOf("notes", "v1", "Topic"), NoGenerate: true, step: step})
			return err
		}},
		"delete server": {withServer, func(ctx context.Context, dir string, step func()) error {
			_, err := DeleteServer(ctx, DeleteOptions{Dir: dir, GVK: kindOf("notes", "v1", "Note"), Force: true, step: step})
			return err
		}},
		"delete webhook": {func(t *testing.T) string {
			dir := t.TempDir()
			if _, err := Init(t.Context(), InitOptions{Dir: dir, Domain: "example.com", Name: "guestbook", Checkout: checkout(t)}); err != nil {
				t.Fatal(err)
			}
			create(t, APIOptions{Dir: dir, GVK: guestbook("v1")})
			if _, err := CreateWebhook(t.Context(), WebhookOptions{Dir: dir, GVK: guestbook("v1"), Validation: true}); err != nil {
				t.Fatal(err)
			}
			return dir
		}, func(ctx context.Context, dir string, step func()) error {
			_, err := DeleteWebhook(ctx, DeleteOptions{Dir: dir, GVK: guestbook("v1"), Force: true, step: step})
			return err
		}},
		"delete api": {func(t *testing.T) string {
			dir := t.TempDir()
			if _, err := Init(t.Context(), InitOptions{Dir: dir, Domain: "example.com", Name: "guestbook", Checkout: checkout(t)}); err != nil {
				t.Fatal(err)
			}
			create(t, APIOptions{Dir: dir, GVK: guestbook("v1")})
			create(t, APIOptions{Dir: dir, GVK: guestbook("v2")})
			return dir
		}, func(ctx context.Context, dir string, step func()) error {
			_, err := DeleteAPI(ctx, DeleteOptions{Dir: dir, GVK: guestbook("v1"), Force: true, step: step})
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			changes := 0
			whole := test.begin(t)
			if err := test.run(t.Context(), whole, func() { changes++ }); err != nil {
				t.Fatal(err)
			}
			after := tree(t, whole)
			dir := test.begin(t)
			before := tree(t, dir)
			for at := range changes {
				killed, err := killedAt(at, func(step func()) error { return test.run(t.Context(), dir, step) })
				if err != nil || !killed {
					t.Fatalf("killed %v at change %d of %d: %v", killed, at, changes, err)
				}
				if err := restore(dir, nil); err != nil {
					t.Fatalf("killed at change %d of %d: %v", at, changes, err)
				}
				// The last change removes what is kept, after the journal: then all is done.
				want := before
				if at == changes-1 {
					want = after
				}
				if now := tree(t, dir); !maps.Equal(now, want) {
					t.Fatalf("killed at change %d of %d: %s", at, changes, differences(want, now))
				}
			}
			t.Logf("killed %d times", changes)
			if changes < 10 || maps.Equal(before, after) {
				t.Errorf("%d changes only", changes)
			}
		})
	}
}

// TestRestoringIsRepeatedAfterAKill kills the command that restores, too.
func TestRestoringIsRepeatedAfterAKill(t *testing.T) {
	t.Parallel()
	dir := newProject(t)
	create(t, APIOptions{Dir: dir, GVK: guestbook("v1"), NoGenerate: true})
	before := tree(t, dir)
	for n := 0; ; n++ { // into the middle of the replacements
		killed, err := killedAt(n, func(step func()) error {
			_, err := CreateAPI(t.Context(), APIOptions{Dir: dir, GVK: guestbook("v2"), NoGenerate: true, step: step})
			return err
		})
		if !killed || err != nil {
			t.Fatalf("nothing to restore: killed %v, %v", killed, err)
		}
		if now := tree(t, dir); now[mainFile] != before[mainFile] {
			break
		}
		if err := restore(dir, nil); err != nil {
			t.Fatal(err)
		}
	}
	for n, killed := 0, true; killed; n++ {
		var err error
		if killed, err = killedAt(n, func(step func()) error { return restore(dir, step) }); err != nil {
			t.Fatalf("killed at change %d: %v", n, err)
		}
	}
	if now := tree(t, dir); !maps.Equal(now, before) {
		t.Error(differences(before, now))
	}
}
