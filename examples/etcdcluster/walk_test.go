// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package etcdcluster_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer"
	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/client/await"
	"github.com/steer-dev/steer/client/manifest"
	"github.com/steer-dev/steer/examples/etcdcluster"
	v1 "github.com/steer-dev/steer/examples/etcdcluster/api/v1"
	"github.com/steer-dev/steer/examples/etcdcluster/loopback"
	"github.com/steer-dev/steer/internal/kubeapiserver"
	"github.com/steer-dev/steer/manager"
	"github.com/steer-dev/steer/steertest"
)

var update = flag.Bool("update", false, "write testdata/walk.txt as the operator does on kube-apiserver")

// TestTheOperatorDoesTheSameOnKubeAPIServer walks a cluster of real members through
// its life, on Steer and, where STEER_UPSTREAM_BIN has it, on kube-apiserver: what can be
// seen of it is the same, line by line.
func TestTheOperatorDoesTheSameOnKubeAPIServer(t *testing.T) {
	t.Parallel()
	const golden = "testdata/walk.txt"
	compare := func(t *testing.T, got string) {
		t.Helper()
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("got:\n%s\nwant:\n%s", got, want)
		}
	}
	t.Run("steer", func(t *testing.T) {
		t.Parallel()
		w := newWalker(t)
		w.op.Config = steertest.New(t, steertest.Options{}).Config
		compare(t, w.walk())
	})
	t.Run("kube-apiserver", func(t *testing.T) {
		t.Parallel()
		w := newWalker(t)
		w.op.Config = kubeapiserver.Server(t)
		got := w.walk()
		if *update {
			if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		compare(t, got)
	})
}

// walker takes notes of what it sees.
type walker struct {
	*testing.T
	ctx     context.Context
	op      steer.Operator
	kubelet *loopback.Kubelet
	client  client.Client
	notes   strings.Builder
}

// newWalker makes the operator with a kubelet for its Pods beside it.
func newWalker(t *testing.T) *walker {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	t.Cleanup(cancel)
	backups := t.TempDir()
	w := &walker{T: t, ctx: ctx, kubelet: &loopback.Kubelet{Dir: t.TempDir(), Backups: backups}}
	w.op = etcdcluster.Operator(etcdcluster.Options{
		Addresses: loopback.Addresses{Seed: rand.Uint64()}, Snapshots: etcdcluster.Snapshots(backups), Poll: 20 * time.Millisecond,
	})
	setup := w.op.Setup
	w.op.Setup = func(ctx context.Context, m *manager.Manager) error {
		w.kubelet.Client = m.Live()
		if err := m.Add(manager.RunnableFunc(w.kubelet.Run)); err != nil {
			return err
		}
		return setup(ctx, m)
	}
	return w
}

func (w *walker) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *walker) walk() string {
	w.Helper()
	scheme, err := client.NewScheme(append(w.op.Scheme, eventsv1.AddToScheme)...)
	w.must(err)
	w.client, err = client.New(w.op.Config, client.Options{Scheme: scheme, FieldOwner: "user"})
	w.must(err)
	definitions, err := manifest.Read("config/crd/bases")
	w.must(err)
	w.must(manifest.Apply(w.ctx, w.client, "", definitions))
	w.served()
	running, stop := context.WithCancel(w.ctx)
	ended := make(chan error, 1)
	go func() {
		ended <- steer.Run(running, []string{"--health-probe-bind-address=0", "--zap-log-level=panic"}, w.op)
	}()

	db := &v1.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "db"}, Spec: v1.EtcdClusterSpec{Size: 3, Image: "etcd"}}
	w.must(w.client.Create(w.ctx, db))
	w.see("three", 3, "")
	w.scale(5)
	five := w.see("five", 5, "")
	w.must(w.kubelet.Kill(w.ctx, "default", "db-1"))
	w.see("five again", 5, five.Status.Members[1].ID)
	w.scale(1)
	w.see("one", 1, "")
	w.must(w.client.Delete(w.ctx, db))
	_, err = await.Object(w.ctx, w.client, steertest.Key(key), await.Gone[*v1.EtcdCluster])
	w.must(err)
	fmt.Fprintln(&w.notes, "gone")
	stop()
	w.must(<-ended) // its events have been sent
	w.events()
	return w.notes.String()
}

// served waits until the server serves what was just defined.
func (w *walker) served() {
	w.Helper()
	for {
		err := w.client.List(w.ctx, &v1.EtcdClusterList{})
		if err == nil {
			return
		}
		select {
		case <-w.ctx.Done():
			w.Fatal(err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (w *walker) scale(size int) {
	w.Helper()
	db := &v1.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "db"}}
	w.must(w.client.Patch(w.ctx, db, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"size":%d}}`, size))))
}

// see waits until the cluster has a size, none of its members is the one that was
// lost, and nothing is left to do, and notes what it says.
func (w *walker) see(what string, size int32, lost string) *v1.EtcdCluster {
	w.Helper()
	db, err := await.Object(w.ctx, w.client, steertest.Key(key), func(c *v1.EtcdCluster) bool {
		return c != nil && c.Status.Size == size && len(c.Status.Members) == int(size) &&
			c.Status.ObservedGeneration == c.Generation &&
			!slices.ContainsFunc(c.Status.Members, func(m v1.Member) bool { return m.ID == lost }) &&
			meta.IsStatusConditionTrue(c.Status.Conditions, v1.Available) &&
			meta.IsStatusConditionFalse(c.Status.Conditions, v1.Progressing) &&
			meta.IsStatusConditionFalse(c.Status.Conditions, v1.Degraded)
	})
	w.must(err)
	fmt.Fprintf(&w.notes, "%s: generation %d, observed %d, finalizers %v\n", what, db.Generation, db.Status.ObservedGeneration, db.Finalizers)
	for _, m := range db.Status.Members {
		fmt.Fprintf(&w.notes, "  %s %s\n", m.Name, m.State)
	}
	for _, c := range db.Status.Conditions {
		fmt.Fprintf(&w.notes, "  %s=%s %s at %d: %s\n", c.Type, c.Status, c.Reason, c.ObservedGeneration, c.Message)
	}
	return db
}

// events notes what users were told, in the order of the words: which of them came
// in one series is chance.
func (w *walker) events() {
	w.Helper()
	var list eventsv1.EventList
	w.must(w.client.List(w.ctx, &list, client.InNamespace("default")))
	var lines []string
	for _, e := range list.Items {
		if e.Regarding.Kind == "EtcdCluster" {
			lines = append(lines, fmt.Sprintf("event %s %s %s of %s %s, %s\n", e.Type, e.Reason, e.Action, e.Regarding.Kind, e.Regarding.Name, e.Related.Name))
		}
	}
	slices.Sort(lines)
	w.notes.WriteString(strings.Join(slices.Compact(lines), ""))
}
