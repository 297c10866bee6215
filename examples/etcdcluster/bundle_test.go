// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package etcdcluster_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/examples/etcdcluster"
	v1 "github.com/steer-dev/steer/examples/etcdcluster/api/v1"
	"github.com/steer-dev/steer/examples/etcdcluster/loopback"
	"github.com/steer-dev/steer/steertest"
)

const key = "default/db"

// bundle is a control plane, the operator, and a kubelet that runs real members.
type bundle struct {
	*steertest.Env
	kubelet *loopback.Kubelet
	guard   *guard
	clock   clock
}

// setup starts them, the operator with arguments.
func setup(t *testing.T, args ...string) *bundle {
	t.Helper()
	addresses := loopback.Addresses{Seed: rand.Uint64()}
	backups := t.TempDir()
	b := &bundle{kubelet: &loopback.Kubelet{Dir: t.TempDir(), Backups: backups}}
	b.guard = &guard{Etcd: etcdcluster.Network{}, t: t, addresses: addresses, kubelet: b.kubelet}
	op := etcdcluster.Operator(etcdcluster.Options{
		Addresses: addresses, Etcd: b.guard, Snapshots: etcdcluster.Snapshots(backups), Poll: 20 * time.Millisecond, Now: b.clock.now,
	})
	b.Env = steertest.New(t, steertest.Options{CRDs: []string{"config/crd/bases"}, Operator: op, Args: args, Timeout: 2 * time.Minute})
	b.kubelet.Client = b.Client
	ctx, cancel := context.WithCancel(b.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := b.kubelet.Run(ctx); err != nil && ctx.Err() == nil {
			t.Errorf("kubelet: %v", err)
		}
	})
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	return b
}

// cluster creates an EtcdCluster.
func (b *bundle) cluster(name string, spec v1.EtcdClusterSpec) {
	b.Helper()
	spec.Image = "etcd"
	b.Create(&v1.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: spec})
}

// scale changes the one number.
func (b *bundle) scale(size int) {
	b.Helper()
	db := &v1.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "db"}}
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"size":%d}}`, size))
	if err := b.Client.Patch(b.Context(), db, patch); err != nil {
		b.Fatal(err)
	}
}

// steady waits until the cluster has a size and nothing is left to do.
func (b *bundle) steady(key string, size int32) *v1.EtcdCluster {
	b.Helper()
	return steertest.Expect[*v1.EtcdCluster](b.Env, key, steady(size)...)
}

func steady(size int32) []steertest.Matcher {
	return []steertest.Matcher{
		steertest.Field(func(c *v1.EtcdCluster) int32 { return c.Status.Size }, size),
		steertest.Condition(v1.Available, metav1.ConditionTrue),
		steertest.Condition(v1.Progressing, metav1.ConditionFalse),
		steertest.Condition(v1.Degraded, metav1.ConditionFalse),
	}
}

// holds checks that Pods and Services are those of the first members.
func (b *bundle) holds(size int) {
	b.Helper()
	steertest.WaitList(b.Env, func(l *corev1.PodList) bool { return len(l.Items) == size }, client.MatchingLabels{etcdcluster.ClusterLabel: "db"})
	steertest.WaitList(b.Env, func(l *corev1.ServiceList) bool { return len(l.Items) == size }, client.MatchingLabels{etcdcluster.ClusterLabel: "db"})
}

// put and get talk to the members of a cluster, which needs a quorum.
func (b *bundle) put(cluster, key, value string) {
	b.Helper()
	if err := b.guard.put(cluster, key, value); err != nil {
		b.Fatal(err)
	}
}

func (b *bundle) get(cluster, key string) string {
	b.Helper()
	c, err := b.guard.dial(cluster)
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(b.Context(), 30*time.Second)
	defer cancel()
	got, err := c.Get(ctx, key)
	if err != nil || len(got.Kvs) != 1 {
		b.Fatalf("get %s of %s: %v, %v", key, cluster, got, err)
	}
	return string(got.Kvs[0].Value)
}

// guard stands between the operator and etcd. It notes what the operator
// changes, and holds it to the rule: no change takes the quorum away.
type guard struct {
	etcdcluster.Etcd
	t         *testing.T
	addresses loopback.Addresses
	kubelet   *loopback.Kubelet

	mu      sync.Mutex
	changes []string
	// around is put around every change; nil is nothing.
	around func(what string, do func() error) error
}

func (g *guard) Change(ctx context.Context, url string, c etcdcluster.Change) error {
	before, err := g.Members(ctx, url)
	if err != nil {
		return err
	}
	what, after := g.apply(before, c)
	if g.quorate(before) && !g.quorate(after) {
		g.t.Errorf("%s would take the quorum away: %+v, running %v", what, before, g.kubelet.Running())
	}
	g.mu.Lock()
	around := g.around
	g.mu.Unlock()
	do := func() error {
		if err := g.Etcd.Change(ctx, url, c); err != nil {
			return err
		}
		g.mu.Lock()
		g.changes = append(g.changes, what)
		g.mu.Unlock()
		// Elections are quick; a quorum that is gone stays gone.
		cluster, _, _ := strings.Cut(what[strings.Index(what, " ")+1:], "-")
		if err := g.put(cluster, "after", what); err != nil {
			g.t.Errorf("after %s nothing can be written: %v", what, err)
		}
		return nil
	}
	if around != nil {
		return around(what, do)
	}
	return do()
}

// apply says what a change makes of the members.
func (g *guard) apply(members []etcdcluster.Member, c etcdcluster.Change) (what string, after []etcdcluster.Member) {
	if c.Add != "" {
		return "add " + g.nameOf(c.Add), append(after, append(members, etcdcluster.Member{PeerURL: c.Add, Learner: true})...)
	}
	for _, m := range members {
		switch m.ID {
		case c.Promote:
			m.Learner = false
			what = "promote " + g.nameOf(m.PeerURL)
		case c.Remove:
			what = "remove " + g.nameOf(m.PeerURL)
			continue
		}
		after = append(after, m)
	}
	return what, after
}

func (g *guard) quorate(members []etcdcluster.Member) bool {
	running := " " + strings.Join(g.kubelet.Running(), " ") + " "
	voters, serving := 0, 0
	for _, m := range members {
		if m.Learner {
			continue
		}
		voters++
		if strings.Contains(running, " "+g.nameOf(m.PeerURL)+" ") {
			serving++
		}
	}
	return serving > voters/2
}

func (g *guard) nameOf(peerURL string) string {
	for _, cluster := range []string{"db", "copy"} {
		for i := range 9 {
			if name := fmt.Sprintf("%s-%d", cluster, i); g.addresses.Peer("default", name) == peerURL {
				return name
			}
		}
	}
	return peerURL
}

func (g *guard) taken() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	out := g.changes
	g.changes = nil
	return out
}

// dial connects to all members of a cluster that run.
func (g *guard) dial(cluster string) (*clientv3.Client, error) {
	var urls []string
	for _, member := range g.kubelet.Running() {
		if strings.HasPrefix(member, cluster+"-") {
			urls = append(urls, g.addresses.Client("default", member))
		}
	}
	return clientv3.New(clientv3.Config{Endpoints: urls, Logger: zap.NewNop()})
}

func (g *guard) put(cluster, key, value string) error {
	ctx, cancel := context.WithTimeout(g.t.Context(), time.Minute)
	defer cancel()
	var last error
	for ctx.Err() == nil { // while a leader is elected, and while the learner is asked
		c, err := g.dial(cluster)
		if err != nil {
			return err
		}
		try, end := context.WithTimeout(ctx, 2*time.Second)
		_, last = c.Put(try, key, value)
		end()
		c.Close()
		if last == nil {
			return nil
		}
	}
	return last
}

// clock is the operator's.
type clock struct {
	mu    sync.Mutex
	ahead time.Duration
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.ahead)
}

func (c *clock) move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead += d
}

func (g *guard) snapshots(dir string) ([]string, error) {
	files, err := os.ReadDir(dir)
	var out []string
	for _, f := range files {
		out = append(out, f.Name())
	}
	return out, err
}
