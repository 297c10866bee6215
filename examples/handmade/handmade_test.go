// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package handmade_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/examples/handmade"
	v1 "github.com/steer-dev/steer/examples/handmade/api/example/v1"
	"github.com/steer-dev/steer/steertest"
)

// lines gathers what a controller prints.
type lines struct {
	mu      sync.Mutex
	all     []string
	changed chan struct{}
}

func (l *lines) print(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, strings.TrimSpace(fmt.Sprintf(format, args...)))
	close(l.changed)
	l.changed = make(chan struct{})
}

// await returns the number of the first line from a given one on that begins with a
// text, and fails the test where ctx ends before.
func (l *lines) await(ctx context.Context, t *testing.T, from int, text string) int {
	t.Helper()
	for {
		l.mu.Lock()
		all, changed := l.all, l.changed
		l.mu.Unlock()
		for i := from; i < len(all); i++ {
			if strings.HasPrefix(all[i], text) {
				return i
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			t.Fatalf("no line %q after line %d of:\n%s", text, from, strings.Join(all, "\n"))
		}
	}
}

// start runs a controller of the Greetings of a namespace that ends with the test. Other tests
// may use the same server.
func start(ctx context.Context, t *testing.T, cfg *rest.Config, namespace string) (*handmade.Controller, *lines) {
	t.Helper()
	l := &lines{changed: make(chan struct{})}
	c, err := handmade.New(cfg, handmade.Options{Workers: 2, Namespace: namespace, Print: l.print})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return c, l
}

func greeting(namespace, name, to string) *v1.Greeting {
	return &v1.Greeting{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: v1.GreetingSpec{To: to}}
}

// greets checks that a Greeting follows its spec, by hand or with the framework.
func greets(t *testing.T, env *steertest.Env) {
	t.Helper()
	says := func(text string) *v1.Greeting {
		t.Helper()
		return steertest.Wait(env, "ann", func(g *v1.Greeting) bool {
			return g.Status == v1.GreetingStatus{ObservedGeneration: g.Generation, Text: text}
		})
	}
	env.Create(greeting(env.Namespace, "ann", "Ann"))
	obj := says("Hello, Ann")
	before := obj.DeepCopy()
	obj.Spec.To = "Anna"
	if err := env.Client.Patch(env.Context(), obj, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	says("Hello, Anna")
}

func TestFrameworkGreets(t *testing.T) {
	t.Parallel()
	greets(t, steertest.New(t, steertest.Options{CRDs: []string{"config/crd/bases"}, Operator: handmade.Operator()}))
}

func TestHandmadeGreets(t *testing.T) {
	t.Parallel()
	env := newEnv(t)
	start(env.Context(), t, env.Config, env.Namespace)
	greets(t, env)
}

func newEnv(t *testing.T) *steertest.Env {
	t.Helper()
	scheme, err := client.NewScheme(v1.AddToScheme)
	if err != nil {
		t.Fatal(err)
	}
	return steertest.New(t, steertest.Options{CRDs: []string{"config/crd/bases"}, Scheme: scheme})
}

func TestHandmadePrintsWhatTheInformerDoes(t *testing.T) {
	t.Parallel()
	env := newEnv(t)
	ctx := env.Context()
	env.Create(greeting(env.Namespace, "before", "Bob"))
	c, l := start(ctx, t, env.Config, env.Namespace)
	name := env.Namespace + "/ann"

	// What there is comes first, by a watch that ends it with a bookmark.
	at := l.await(ctx, t, 0, `WATCH from "", beginning with what there is`)
	at = l.await(ctx, t, at, "ADDED "+env.Namespace+"/before")
	at = l.await(ctx, t, at, "BOOKMARK: that was what there is")
	l.await(ctx, t, at, "the cache has what the server has")
	l.await(ctx, t, at, "reconcile "+env.Namespace+"/before: status written")

	// A change, and the event of our own write.
	env.Create(greeting(env.Namespace, "ann", "Ann"))
	at = l.await(ctx, t, at, "ADDED "+name)
	at = l.await(ctx, t, at, "MODIFIED "+name)
	at = l.await(ctx, t, at, "reconcile "+name+": nothing to do")

	// A resync reads the cache alone.
	c.Resync()
	at = l.await(ctx, t, at, "resync of ")
	at = l.await(ctx, t, at, "reconcile "+name+": nothing to do")

	// A watch that expired: everything is read again.
	c.Relist()
	at = l.await(ctx, t, at, "ERROR 410 Expired")
	at = l.await(ctx, t, at, "WATCH from ")
	at = l.await(ctx, t, at, "BOOKMARK: that was what there is")

	if err := env.Client.Delete(ctx, greeting(env.Namespace, "ann", "")); err != nil {
		t.Fatal(err)
	}
	at = l.await(ctx, t, at, "DELETED "+name)
	l.await(ctx, t, at, "reconcile "+name+": it is gone")
}

func TestHandmadeNamesWhatIsMissing(t *testing.T) {
	t.Parallel()
	t.Run("definition", func(t *testing.T) {
		t.Parallel()
		env := steertest.New(t, steertest.Options{})
		env.NeedPlane()
		_, l := start(env.Context(), t, env.Config, env.Namespace)
		l.await(env.Context(), t, 0, "the server has no Greetings; run: kubectl apply -f")
	})
	t.Run("rights", func(t *testing.T) {
		t.Parallel()
		env := newEnv(t)
		cfg := rest.CopyConfig(env.Config)
		cfg.Impersonate.UserName = "nobody"
		_, l := start(env.Context(), t, cfg, env.Namespace)
		l.await(env.Context(), t, 0, `greetings.example.com is forbidden: User "nobody" cannot`)
	})
	t.Run("server", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, l := start(ctx, t, &rest.Config{Host: "http://127.0.0.1:1"}, "default")
		l.await(ctx, t, 0, "the API server cannot be reached: start it, or correct the address in the kubeconfig; trying again: ")
	})
}
