// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package podwatch_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/examples/podwatch"
	"github.com/steer-dev/steer/steertest"
)

func TestMain(m *testing.M) {
	// client-go keeps the connections to a server of others for the next client.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("golang.org/x/net/http2.(*clientConnReadLoop).run"))
}

func pod(namespace, name, node string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "a", Image: "b"}}},
	}
}

// journal gathers what happened, and lets a test wait for it.
type journal struct {
	mu      sync.Mutex
	entries map[string]int
	changed chan struct{}
}

func newJournal() *journal { return &journal{entries: map[string]int{}, changed: make(chan struct{})} }

func (j *journal) note(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.entries[fmt.Sprintf(format, args...)]++
	close(j.changed)
	j.changed = make(chan struct{})
}

// wait returns when an entry has been made.
func (j *journal) wait(t *testing.T, ctx context.Context, entry string) {
	t.Helper()
	for {
		j.mu.Lock()
		got, changed := j.entries[entry], j.changed
		j.mu.Unlock()
		if got > 0 {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			t.Fatalf("%q did not come: %v", entry, j.entries)
		}
	}
}

func (j *journal) count(entry string) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.entries[entry]
}

func TestPodwatch(t *testing.T) {
	t.Parallel()
	scheme, err := client.NewScheme(corev1.AddToScheme)
	if err != nil {
		t.Fatal(err)
	}
	env := steertest.New(t, steertest.Options{Scheme: scheme})
	env.Create(pod("", "before", "n1"))

	j := newJournal()
	running := map[string]bool{}
	var mu sync.Mutex
	w, err := podwatch.New(env.Config, podwatch.Options{
		Namespace: env.Namespace, Fields: fields.OneTermEqualSelector("spec.nodeName", "n1"), Workers: 3,
		Remembered: []client.Object{pod(env.Namespace, "mypod", "n1")},
		Log:        slog.New(slog.DiscardHandler),
		Sync: func(_ context.Context, key client.ObjectKey, p *corev1.Pod) error {
			mu.Lock()
			if running[key.Name] {
				t.Errorf("%s runs twice at once", key)
			}
			running[key.Name] = true
			mu.Unlock()
			defer func() {
				mu.Lock()
				delete(running, key.Name)
				mu.Unlock()
			}()
			switch {
			case p == nil:
				j.note("%s is gone", key.Name)
			case p.Name == "broken":
				j.note("%s failed", key.Name)
				return errors.New("broken")
			case p.Name == "panic":
				j.note("%s panicked", key.Name)
				panic("at the disco")
			default:
				j.note("%s %s", key.Name, p.Labels["version"])
			}
			return nil
		},
		Dropped: func(key client.ObjectKey, err error) { j.note("%s dropped: %v", key.Name, err) },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(env.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()

	j.wait(t, ctx, "before ")
	j.wait(t, ctx, "mypod is gone") // remembered, and deleted while there was no watch
	if j.count("mypod ") != 0 {
		t.Error("the remembered Pod was taken for a living one")
	}

	for _, p := range []*corev1.Pod{
		pod("", "later", "n1"), pod("", "elsewhere", "n2"), pod("", "broken", "n1"), pod("", "panic", "n1"),
	} {
		env.Create(p)
	}
	j.wait(t, ctx, "later ")
	j.wait(t, ctx, "broken dropped: broken")
	j.wait(t, ctx, "panic dropped: panic: at the disco")
	for _, entry := range []string{"broken failed", "panic panicked"} {
		if got := j.count(entry); got < 6 {
			t.Errorf("%q %d times, not once and five retries", entry, got)
		}
	}

	var later corev1.Pod
	key := client.ObjectKey{Namespace: env.Namespace, Name: "later"}
	if err := env.Client.Get(ctx, key, &later); err != nil {
		t.Fatal(err)
	}
	later.Labels = map[string]string{"version": "two"}
	if err := env.Client.Update(ctx, &later); err != nil {
		t.Fatal(err)
	}
	j.wait(t, ctx, "later two")
	zero := int64(0)
	if err := env.Client.Delete(ctx, &later, &client.DeleteOptions{GracePeriodSeconds: &zero}); err != nil {
		t.Fatal(err)
	}
	j.wait(t, ctx, "later is gone")

	if j.count("elsewhere ") != 0 {
		t.Error("a Pod on another node was not selected")
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(map[string]bool{}, running); diff != "" {
		t.Error(diff)
	}
}

func TestPodwatchWatchesOneNamespace(t *testing.T) {
	t.Parallel()
	scheme, err := client.NewScheme(corev1.AddToScheme)
	if err != nil {
		t.Fatal(err)
	}
	env := steertest.New(t, steertest.Options{Scheme: scheme})
	env.Create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "other"}})
	env.Create(pod("default", "foreign", "n1"))
	env.Create(pod("other", "own", "n1"))

	j := newJournal()
	w, err := podwatch.New(env.Config, podwatch.Options{
		Namespace: "other", Log: slog.New(slog.DiscardHandler),
		Sync: func(_ context.Context, key client.ObjectKey, _ *corev1.Pod) error {
			j.note("%s", key)
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(env.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	j.wait(t, ctx, "other/own")
	env.Create(pod("other", "last", "n1"))
	j.wait(t, ctx, "other/last")
	if j.count("default/foreign") != 0 {
		t.Error("a Pod of another namespace was handled")
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
