// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/client/await"
	"github.com/steer-dev/steer/controller"
	"github.com/steer-dev/steer/manager"
	"github.com/steer-dev/steer/manager/election"
	"github.com/steer-dev/steer/steertest"
)

// quick is the timing of the tests.
var quick = election.Timing{Lease: 3 * time.Second, Renew: 2 * time.Second, Retry: 500 * time.Millisecond}

// contender is one replica of an operator.
type contender struct {
	*manager.Manager
	stop  context.CancelFunc
	ended chan error
}

func newContender(t *testing.T, cfg *rest.Config, name string, work controller.Runnable) *contender {
	t.Helper()
	m := newOperator(t, cfg, manager.Options{
		Instance: name,
		Election: manager.Election{Enabled: true, Namespace: "default", Timing: quick},
	})
	if err := m.Add(work); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	c := &contender{Manager: m, stop: stop, ended: make(chan error, 1)}
	go func() { c.ended <- m.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		<-c.ended
	})
	return c
}

// end stops a contender and returns what its Start returned.
func (c *contender) end() error {
	c.stop()
	err := <-c.ended
	c.ended <- err // for the cleanup
	return err
}

func TestALeaderThatStopsHandsOverAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		env := newEnv(t, coordinationv1.AddToScheme)
		var running, most atomic.Int32
		work := manager.RunnableFunc(func(ctx context.Context) error {
			if n := running.Add(1); n > most.Load() {
				most.Store(n)
			}
			defer running.Add(-1)
			<-ctx.Done()
			return nil
		})
		first := newContender(t, env.Config, "first", work)
		<-first.Elected()
		second := newContender(t, env.Config, "second", work)
		select {
		case <-second.Elected():
			t.Fatal("two leaders")
		default:
		}
		lease := steertest.Wait(env, "default/operator", func(l *coordinationv1.Lease) bool {
			return l.Spec.HolderIdentity != nil && *l.Spec.HolderIdentity == "first"
		})
		if got := *lease.Spec.LeaseDurationSeconds; got != 3 {
			t.Errorf("the lease lasts %d s, want 3", got)
		}
		if err := first.end(); err != nil {
			t.Fatalf("the first leader: %v", err)
		}
		steertest.Wait(env, "default/operator", func(l *coordinationv1.Lease) bool {
			return *l.Spec.HolderIdentity == "" || *l.Spec.HolderIdentity == "second"
		})
		<-second.Elected()
		if most.Load() != 1 {
			t.Errorf("%d leaders worked at once", most.Load())
		}
	})
}

func TestARunnableOfTheLeaderThatDoesNotReturnIsNamed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		env := newEnv(t, coordinationv1.AddToScheme)
		release, returned := make(chan struct{}), make(chan struct{})
		leader := newContender(t, env.Config, "leader", manager.RunnableFunc(func(context.Context) error {
			defer close(returned)
			<-release
			return nil
		}))
		<-leader.Elected()
		err := leader.end()
		want := manager.ErrStopTimeout.Error() + ": manager.RunnableFunc"
		if !errors.Is(err, manager.ErrStopTimeout) || err.Error() != want {
			t.Errorf("Start: %v, want %q", err, want)
		}
		close(release)
		<-returned
	})
}

// partition fails every request once it is cut.
type partition struct {
	next http.RoundTripper
	cut  atomic.Bool
}

func (p *partition) RoundTrip(r *http.Request) (*http.Response, error) {
	if p.cut.Load() {
		return nil, errors.New("no route to host")
	}
	return p.next.RoundTrip(r)
}

func TestALeaderWhoseLeaseIsTakenStopsAndWritesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		env := newEnv(t, coordinationv1.AddToScheme, corev1.AddToScheme)
		stopped := make(chan struct{})
		leader := newContender(t, env.Config, "leader", manager.RunnableFunc(func(ctx context.Context) error {
			<-ctx.Done()
			close(stopped)
			return nil
		}))
		<-leader.Elected()

		lease := steertest.Wait(env, "default/operator", func(*coordinationv1.Lease) bool { return true })
		thief := "thief"
		lease.Spec.HolderIdentity = &thief
		if err := env.Client.Update(env.Context(), lease); err != nil {
			t.Fatal(err)
		}
		<-stopped
		if err := <-leader.ended; !errors.Is(err, manager.ErrLostLease) {
			t.Errorf("Start: %v, want ErrLostLease", err)
		}
		leader.ended <- nil
		config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "late"}}
		if err := leader.Client().Create(env.Context(), config); !errors.Is(err, manager.ErrNotLeader) {
			t.Errorf("a write after the loss: %v, want ErrNotLeader", err)
		}
		if _, err := await.Object(env.Context(), env.Client, client.ObjectKeyFromObject(config), await.Gone[*corev1.ConfigMap]); err != nil {
			t.Error(err)
		}
	})
}

func TestALeaderThatCannotReachTheServerStopsBeforeOthersMayLead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		env := steertest.New(t, steertest.Options{})
		cfg := rest.CopyConfig(env.Config)
		line := &partition{next: cfg.Transport}
		cfg.Transport = line
		leader := newContender(t, cfg, "leader", manager.RunnableFunc(func(ctx context.Context) error { <-ctx.Done(); return nil }))
		<-leader.Elected()
		won := time.Now()
		line.cut.Store(true)
		if err := <-leader.ended; !errors.Is(err, manager.ErrLostLease) {
			t.Errorf("Start: %v, want ErrLostLease", err)
		}
		leader.ended <- nil
		if held := time.Since(won); held >= quick.Lease {
			t.Errorf("it led for %s without renewal, past its lease", held)
		}
	})
}
