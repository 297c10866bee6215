// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/manager"
	"github.com/steer-dev/steer/steertest"
)

// judge stands at the server's door: it knows who holds the lease, and looks at
// every write that arrives.
type judge struct {
	env *steertest.Env

	mu         sync.Mutex
	holder     string
	terms      int
	writes     int
	violations []string
}

// pass lets a request of a process through.
func (j *judge) pass(who string, r *http.Request, next http.RoundTripper) (*http.Response, error) {
	// Events are sent by every process: they are about its work, not the work itself.
	if r.Method == http.MethodGet || strings.HasSuffix(r.URL.Path, "/events") {
		return next.RoundTrip(r)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	lease := strings.Contains(r.URL.Path, "/leases")
	if !lease {
		j.writes++
		if j.holder != who {
			j.violations = append(j.violations, fmt.Sprintf("%s wrote while %q held the lease", who, j.holder))
		}
	}
	resp, err := next.RoundTrip(r)
	if !lease || err != nil {
		return resp, err
	}
	var now coordinationv1.Lease
	if err := j.env.Client.Get(j.env.Context(), steertest.Key("default/operator"), &now); err != nil {
		return nil, err
	}
	if holder := *now.Spec.HolderIdentity; holder != j.holder {
		j.holder = holder
		j.terms++
	}
	return resp, nil
}

// network is the way of one process to the server, and what can happen to it.
type network struct {
	who   string
	judge *judge
	next  http.RoundTripper

	mu     sync.Mutex
	random *rand.Rand
	cut    time.Time // nothing arrives until then
	deaf   time.Time // no answer comes back until then
	frozen time.Time // what it says about the lease is held up until then
}

// fate is what becomes of one request.
type fate struct {
	latency           time.Duration
	lost, answerLost  bool
	cut, deaf, frozen time.Time
}

func (n *network) draw() fate {
	n.mu.Lock()
	defer n.mu.Unlock()
	return fate{
		latency: time.Duration(n.random.Int64N(int64(200 * time.Millisecond))),
		lost:    n.random.IntN(20) == 0, answerLost: n.random.IntN(20) == 0,
		cut: n.cut, deaf: n.deaf, frozen: n.frozen,
	}
}

// suffer lets something happen to the network that lasts: nothing arrives, no answer
// comes back, or what is said about the lease is held up.
func (n *network) suffer(what int, until time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch what {
	case 0:
		n.cut = until
	case 1:
		n.deaf = until
	case 2:
		n.cut, n.deaf = until, until
	case 3:
		n.frozen = until
	}
}

var errUnreachable = errors.New("no route to host")

// RoundTrip implements http.RoundTripper.
func (n *network) RoundTrip(r *http.Request) (*http.Response, error) {
	f := n.draw()
	if pause := time.Until(f.frozen); pause > 0 && strings.Contains(r.URL.Path, "/leases") {
		time.Sleep(pause) // like a process that is paused: deadlines pass unnoticed
	}
	time.Sleep(f.latency)
	if time.Now().Before(f.cut) || f.lost {
		return nil, errUnreachable
	}
	resp, err := n.deliver(r)
	if err == nil && (f.answerLost || time.Now().Before(f.deaf)) {
		_ = resp.Body.Close()
		return nil, errUnreachable
	}
	return resp, err
}

// deliver hands a request over, past the judge if there is one.
func (n *network) deliver(r *http.Request) (*http.Response, error) {
	if n.judge == nil {
		return n.next.RoundTrip(r)
	}
	return n.judge.pass(n.who, r, n.next)
}

// process is one replica, started anew under another name when it ends.
type process struct {
	*network
	stop  context.CancelFunc
	ended chan error
}

// fight is the world of the model.
type fight struct {
	env      *steertest.Env
	judge    *judge
	random   *rand.Rand
	born     int
	over     chan struct{}
	refused  atomic.Int32
	writers  sync.WaitGroup
	managers sync.WaitGroup
}

func (f *fight) start(t *testing.T) *process {
	t.Helper()
	f.born++
	p := &process{ended: make(chan error, 1), network: &network{
		who: fmt.Sprint("replica-", f.born), judge: f.judge, next: f.env.Config.Transport,
		random: rand.New(rand.NewPCG(f.random.Uint64(), 1)),
	}}
	cfg := through(f.env.Config, p.network)
	m := newOperator(t, cfg, manager.Options{
		Instance: p.who, StopGrace: 5 * time.Second,
		Election: manager.Election{Enabled: true, Namespace: "default"},
	})
	err := m.Add(manager.RunnableFunc(func(ctx context.Context) error {
		// The worst worker there is: it goes on when it is told to stop.
		f.writers.Go(func() { f.write(m.Live(), p.who) })
		<-ctx.Done()
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	p.stop = stop
	f.managers.Go(func() { p.ended <- m.Start(ctx) })
	return p
}

// write writes until the end of the world.
func (f *fight) write(c client.Client, who string) {
	for {
		obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "work"}}
		patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"data":{"by":%q}}`, who))
		if err := c.Patch(context.Background(), obj, patch); errors.Is(err, manager.ErrNotLeader) {
			f.refused.Add(1)
		}
		select {
		case <-f.over:
			return
		case <-time.After(300 * time.Millisecond):
		}
	}
}

// TestNoWriteOfANonLeaderReachesTheServer lets managers fight for a lease while
// their connections break for up to a minute, in one direction or both, of one or of
// all of them; requests and answers are lost, processes pause and stop; their workers go on writing whatever happens.
func TestNoWriteOfANonLeaderReachesTheServer(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { fightForALease(t, seed) })
		})
	}
}

func fightForALease(t *testing.T, seed uint64) {
	env := newEnv(t, coordinationv1.AddToScheme, corev1.AddToScheme)
	env.Create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "work"}})
	f := &fight{env: env, judge: &judge{env: env}, random: rand.New(rand.NewPCG(seed, 7)), over: make(chan struct{})}
	replicas := []*process{f.start(t), f.start(t), f.start(t)}
	for begun := time.Now(); time.Since(begun) < 15*time.Minute; {
		time.Sleep(time.Second + time.Duration(f.random.Int64N(int64(4*time.Second))))
		i := f.random.IntN(len(replicas))
		p := replicas[i]
		until := time.Now().Add(time.Duration(f.random.Int64N(int64(time.Minute))))
		switch what := f.random.IntN(8); what {
		case 0, 1, 2, 3:
			p.suffer(what, until)
		case 4: // the server cannot be reached at all
			for _, p := range replicas {
				p.suffer(f.random.IntN(3), time.Now().Add(time.Until(until)/2))
			}
		case 5, 6:
			p.stop()
		}
		for i, p := range replicas {
			select {
			case err := <-p.ended:
				if err != nil && !errors.Is(err, manager.ErrLostLease) && !errors.Is(err, manager.ErrStopTimeout) {
					t.Errorf("%s: %v", p.who, err)
				}
				p.stop()
				replicas[i] = f.start(t)
			default:
			}
		}
	}
	for _, p := range replicas {
		p.stop()
	}
	f.managers.Wait()
	time.Sleep(time.Minute) // what was held up ends; only then no process starts to write any more
	close(f.over)
	f.writers.Wait()
	f.judge.mu.Lock()
	defer f.judge.mu.Unlock()
	for _, v := range f.judge.violations {
		t.Error(v)
	}
	if f.judge.terms < 4 || f.judge.writes < 100 || f.refused.Load() == 0 {
		t.Errorf("%d terms, %d writes, %d refused: the test proves little", f.judge.terms, f.judge.writes, f.refused.Load())
	}
	t.Logf("%d terms, %d writes, %d refused before the wire, %d processes", f.judge.terms, f.judge.writes, f.refused.Load(), f.born)
}
