// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/controller"
	"github.com/steer-dev/steer/controlplane"
	"github.com/steer-dev/steer/manager"
	"github.com/steer-dev/steer/storage"
	"github.com/steer-dev/steer/storage/local"
)

// What the soak runs, and what it may leave behind.
const (
	soakWatchers, soakSlow, soakRestless = 200, 20, 20
	soakWriters, soakOperators, soakApps = 16, 3, 5
	soakNames                            = 20 // of each writer
	soakEvery                            = 100 * time.Millisecond
	soakHeap                             = 32 << 20
	soakGoroutines                       = 10
)

// soak is one control plane on a disk of its own, and all its users.
type soak struct {
	*testing.T
	store   *local.Store
	plane   *controlplane.Plane
	config  *rest.Config // of writers and operators
	client  client.Client
	history *history
	refused atomic.Int64 // writes, while the disk was full
	written atomic.Int64

	tls       *tls.Config
	transport *http.Transport // of config
}

// TestSoak keeps a control plane busy for as long as STEER_SOAK says: watchers of
// which some read slowly and some come and go, writers, operators that are killed
// and started anew, compactions, and a disk that fills up where one can be had
// (Linux, as root). In the end every watcher has seen what the store did, the
// operators have done their work, and memory and goroutines are as before.
func TestSoak(t *testing.T) {
	given := os.Getenv("STEER_SOAK")
	if given == "" {
		t.Skip("STEER_SOAK, such as 2m, says how long")
	}
	d, err := time.ParseDuration(given)
	if err != nil {
		t.Fatal(err)
	}
	dir, fill := smallDisk(t)
	s := newSoak(t, dir)
	s.round(5*time.Second, nil) // what is made once, is made
	heap, goroutines := s.atRest()
	s.round(d, fill)
	after, left := s.atRest()
	t.Logf("heap %d KiB, then %d KiB; goroutines %d, then %d", heap>>10, after>>10, goroutines, left)
	if after > heap+soakHeap {
		t.Errorf("the heap was %d KiB and is %d KiB", heap>>10, after>>10)
	}
	if left > goroutines+soakGoroutines {
		stacks := make([]byte, 1<<20)
		t.Errorf("%d goroutines were there, %d are left:\n%s", goroutines, left, stacks[:runtime.Stack(stacks, true)])
	}
}

func newSoak(t *testing.T, dir string) *soak {
	t.Helper()
	s := &soak{T: t}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	var err error
	s.store, err = local.Open(dir, local.Options{HistoryBytes: 8 << 20, CheckpointBytes: 4 << 20})
	must(err)
	s.plane, err = controlplane.New(controlplane.Options{Store: s.store, Listen: "127.0.0.1:0"})
	must(err)
	must(s.plane.Start(t.Context()))
	t.Cleanup(func() {
		if err := s.plane.Stop(context.Background()); err != nil {
			t.Error(err)
		}
		if err := s.store.Close(); err != nil {
			t.Error(err)
		}
	})
	kubeconfig, err := s.plane.Kubeconfig()
	must(err)
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	must(err)
	s.tls, err = rest.TLSConfigFor(config)
	must(err)
	s.transport = &http.Transport{TLSClientConfig: s.tls.Clone(), ForceAttemptHTTP2: true}
	s.config = &rest.Config{Host: config.Host, Transport: s.transport, QPS: -1}
	s.client = s.newClient()
	for i := range soakApps {
		must(s.client.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-public", Name: fmt.Sprint("app-", i)}, Data: map[string]string{"want": "0"}}))
	}
	return s
}

func (s *soak) newClient() client.Client {
	scheme, err := client.NewScheme(corev1.AddToScheme)
	if err != nil {
		s.Fatal(err)
	}
	c, err := client.New(s.config, client.Options{Scheme: scheme})
	if err != nil {
		s.Fatal(err)
	}
	return c
}

// round lets all users work for some time, and compares.
func (s *soak) round(d time.Duration, fill func() (free func())) {
	s.history = s.newHistory()
	ctx, cancel := context.WithTimeout(s.Context(), d)
	defer cancel()
	var working, watching sync.WaitGroup
	watchers := make([]*soakWatcher, soakWatchers)
	for i := range watchers {
		w := s.newWatcher(i)
		watchers[i] = w
		watching.Go(w.run)
	}
	for i := range soakWriters {
		working.Go(func() { s.write(ctx, i) })
	}
	for i := range soakOperators {
		working.Go(func() { s.operate(ctx, i) })
	}
	working.Go(func() { s.compact(ctx) })
	working.Go(func() { s.wish(ctx) })
	if fill != nil {
		working.Go(func() {
			select {
			case <-ctx.Done():
			case <-time.After(d / 3):
				free := fill()
				defer free()
				tick := time.NewTicker(soakEvery)
				defer tick.Stop()
				for s.refused.Load() < soakWriters {
					select {
					case <-ctx.Done():
						return
					case <-tick.C:
					}
				}
			}
		})
	}
	working.Wait()
	s.converge()
	last := s.finish()
	for _, w := range watchers {
		w.until(last)
	}
	newest := s.finish() // for watches that had seen the last one when they were told
	watching.Wait()
	s.history.until(newest)
	s.history.close()
	relists, connections := 0, 0
	for i, w := range watchers {
		relists, connections = relists+w.relists, connections+w.connections
		for _, seen := range w.seen {
			if want := s.history.between(seen.after, seen.last); seen.events != want {
				s.Errorf("watcher %d saw %+v from %d to %d, the store %+v", i, seen.events, seen.after, seen.last, want)
			}
		}
		if end := w.seen[len(w.seen)-1].last; end < last {
			s.Errorf("watcher %d ended at %d, before %d", i, end, last)
		}
	}
	s.Logf("%v: %d writes, %d refused by a full disk, %d events, %d watches, %d lists after compactions",
		d, s.written.Load(), s.refused.Load(), s.history.total(), connections, relists)
	if fill != nil && s.refused.Load() == 0 {
		s.Error("the disk was never full")
	}
}

// write creates, changes and deletes the objects of one writer.
func (s *soak) write(ctx context.Context, writer int) {
	random := rand.New(rand.NewPCG(uint64(writer), 1))
	c, tick := s.newClient(), time.NewTicker(soakEvery)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		obj := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("w%d-%d", writer, random.IntN(soakNames))},
			Data:       map[string]string{"n": fmt.Sprint(n), "content": strings.Repeat("x", random.IntN(8000))},
		}
		err := c.Create(ctx, obj)
		if apierrors.IsAlreadyExists(err) {
			if random.IntN(5) == 0 {
				err = client.IgnoreNotFound(c.Delete(ctx, obj))
			} else {
				err = c.Update(ctx, obj)
			}
		}
		switch {
		case err == nil:
			s.written.Add(1)
		case ctx.Err() != nil:
		case strings.Contains(err.Error(), "no space left"):
			s.refused.Add(1)
		default:
			s.Errorf("write: %v", err)
		}
	}
}

// compact forgets what is old, and some of what is not.
func (s *soak) compact(ctx context.Context) {
	tick := time.NewTicker(3 * time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			at, err := s.store.View(ctx, 0)
			if err == nil {
				err = s.store.Compact(ctx, at.Revision()-100)
			}
			if err != nil && ctx.Err() == nil {
				s.Errorf("compact: %v", err)
			}
		}
	}
}

// wish changes what the operators are to do.
func (s *soak) wish(ctx context.Context) {
	tick := time.NewTicker(soakEvery)
	defer tick.Stop()
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"data":{"want":"%d"}}`, n))
			app := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-public", Name: fmt.Sprint("app-", n%soakApps)}}
			_ = s.client.Patch(ctx, app, patch) // refused while the disk is full
		}
	}
}

// operate runs an operator, which is killed and started anew until ctx ends.
func (s *soak) operate(ctx context.Context, operator int) {
	random := rand.New(rand.NewPCG(uint64(operator), 2))
	for ctx.Err() == nil {
		life, kill := context.WithTimeout(ctx, time.Second+time.Duration(random.IntN(3000))*time.Millisecond)
		if err := s.startOperator(life, operator); err != nil && life.Err() == nil {
			s.Errorf("operator %d: %v", operator, err)
		}
		kill()
	}
}

// startOperator runs an operator that copies what is wanted into a key of its own.
func (s *soak) startOperator(ctx context.Context, operator int) error {
	scheme, err := client.NewScheme(corev1.AddToScheme)
	if err != nil {
		return err
	}
	m, err := manager.New(rest.CopyConfig(s.config), manager.Options{Name: fmt.Sprint("operator-", operator), Scheme: scheme, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	key := fmt.Sprint("got-", operator)
	err = controller.Add(m, controller.Func[*corev1.ConfigMap](func(ctx context.Context, app *corev1.ConfigMap) (controller.Result, error) {
		if app.Namespace != "kube-public" || app.Data["want"] == app.Data[key] {
			return controller.Done(), nil
		}
		patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"data":{%q:%q}}`, key, app.Data["want"]))
		return controller.Done(), m.Client().Patch(ctx, app.DeepCopy(), patch)
	}), controller.Name(key))
	if err != nil {
		return err
	}
	return m.Start(ctx)
}

// converge lets the operators finish their work.
func (s *soak) converge() {
	ctx, cancel := context.WithTimeout(s.Context(), time.Minute)
	defer cancel()
	var operators sync.WaitGroup
	for i := range soakOperators {
		operators.Go(func() { _ = s.startOperator(ctx, i) })
	}
	tick := time.NewTicker(soakEvery)
	defer tick.Stop()
	for done := false; !done; {
		select {
		case <-ctx.Done():
			s.Fatal("the operators have not done their work within a minute")
		case <-tick.C:
		}
		var apps corev1.ConfigMapList
		if err := s.client.List(ctx, &apps, client.InNamespace("kube-public")); err != nil {
			s.Fatal(err)
		}
		done = !slices.ContainsFunc(apps.Items, func(app corev1.ConfigMap) bool {
			for i := range soakOperators {
				if app.Data[fmt.Sprint("got-", i)] != app.Data["want"] {
					return app.Data["want"] != ""
				}
			}
			return false
		})
	}
	cancel()
	operators.Wait()
}

// finish makes a write that watchers wait for, and returns its revision.
func (s *soak) finish() storage.Revision {
	end := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: "end-"}}
	if err := s.client.Create(s.Context(), end); err != nil {
		s.Fatal(err)
	}
	return revisionOf(s.T, end.ResourceVersion)
}

// dropHistory leaves the store without history.
func (s *soak) dropHistory() {
	newest, err := s.store.View(s.Context(), 0)
	if err != nil {
		s.Fatal(err)
	}
	if err := s.store.Compact(s.Context(), newest.Revision()); err != nil {
		s.Fatal(err)
	}
}

// atRest returns the heap and the goroutines when there are no requests.
func (s *soak) atRest() (heap uint64, goroutines int) {
	s.transport.CloseIdleConnections()
	s.history = nil
	s.dropHistory()
	// Connections are noticed to be closed a little later: until nothing goes any more.
	tick := time.NewTicker(soakEvery)
	defer tick.Stop()
	for quiet := 0; quiet < 20; {
		<-tick.C
		if n := runtime.NumGoroutine(); n == goroutines {
			quiet++
		} else {
			quiet, goroutines = 0, n
		}
	}
	debug.FreeOSMemory()
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc, goroutines
}
