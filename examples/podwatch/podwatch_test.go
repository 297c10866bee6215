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

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

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

// wait returns when an entry has been made n times.
func (j *journal) wait(t *testing.T, ctx context.Context, entry string, n int) {
	t.Helper()
	for {
		j.mu.Lock()
		got, changed := j.entries[entry], j.changed
		j.mu.Unlock()
		if got >= n {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			t.Fatalf("%q came %d times, not %d: %v", entry, got, n, j.entries)
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
	env.Create(pod("default", "before", "n1"))
	env.Create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "other"}})

	j := newJournal()
	running := map[string]bool{}
	var mu sync.Mutex
	w, err := podwatch.New(env.Config, podwatch.Options{
		Fields: fields.OneTermEqualSelector("spec.nodeName", "n1"), Workers: 3,
		Remembered: []client.Object{pod("default", "mypod", "n1")},
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
				j.note("%s is gone", key)
			case p.Name == "broken":
				j.note("%s failed", key)
				return errors.New("broken")
			case p.Name == "panic":
				j.note("%s panicked", key)
				panic("at the disco")
			default:
				j.note("%s %s", key, p.Labels["version"])
			}
			return nil
		},
		Dropped: func(key client.ObjectKey, err error) { j.note("%s dropped: %v", key, err) },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(env.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()

	j.wait(t, ctx, "default/before ", 1)
	j.wait(t, ctx, "default/mypod is gone", 1) // remembered, and deleted while there was no watch
	if j.count("default/mypod ") != 0 {
		t.Error("the remembered Pod was taken for a living one")
	}

	for _, p := range []*corev1.Pod{
		pod("default", "later", "n1"), pod("default", "elsewhere", "n2"), pod("other", "foreign", "n1"),
		pod("default", "broken", "n1"), pod("default", "panic", "n1"),
	} {
		env.Create(p)
	}
	j.wait(t, ctx, "default/later ", 1)
	j.wait(t, ctx, "default/broken dropped: broken", 1)
	j.wait(t, ctx, "default/panic dropped: panic: at the disco", 1)
	for _, entry := range []string{"default/broken failed", "default/panic panicked"} {
		if got := j.count(entry); got < 6 {
			t.Errorf("%q %d times, not once and five retries", entry, got)
		}
	}

	var later corev1.Pod
	key := client.ObjectKey{Namespace: "default", Name: "later"}
	if err := env.Client.Get(ctx, key, &later); err != nil {
		t.Fatal(err)
	}
	later.Labels = map[string]string{"version": "two"}
	if err := env.Client.Update(ctx, &later); err != nil {
		t.Fatal(err)
	}
	j.wait(t, ctx, "default/later two", 1)
	zero := int64(0)
	if err := env.Client.Delete(ctx, &later, &client.DeleteOptions{GracePeriodSeconds: &zero}); err != nil {
		t.Fatal(err)
	}
	j.wait(t, ctx, "default/later is gone", 1)

	for _, entry := range []string{"default/elsewhere ", "other/foreign "} {
		if j.count(entry) != 0 {
			t.Errorf("%q was not selected", entry)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(map[string]bool{}, running); diff != "" {
		t.Error(diff)
	}
}
