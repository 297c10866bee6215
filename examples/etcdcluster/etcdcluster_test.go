// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package etcdcluster_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/client/await"
	"github.com/steer-dev/steer/client/interceptor"
	v1 "github.com/steer-dev/steer/examples/etcdcluster/api/v1"
	"github.com/steer-dev/steer/steertest"
)

func TestMembersFollowTheSizeOneByOne(t *testing.T) {
	t.Parallel()
	b := setup(t, interceptor.Funcs{})
	b.cluster("db", v1.EtcdClusterSpec{Size: 1})
	b.steady(key, 1)
	b.put("db", "answer", "42")
	for _, c := range []struct {
		size int
		want string
	}{
		{3, "add db-1, promote db-1, add db-2, promote db-2"},
		{5, "add db-3, promote db-3, add db-4, promote db-4"},
		{3, "remove db-4, remove db-3"},
	} {
		b.scale(c.size)
		db := b.steady(key, int32(c.size))
		if got := strings.Join(b.guard.taken(), ", "); got != c.want {
			t.Errorf("to %d: %s\nwant %s", c.size, got, c.want)
		}
		b.holds(c.size)
		for _, m := range db.Status.Members {
			if m.State != v1.Voter {
				t.Errorf("at %d: %+v", c.size, m)
			}
		}
	}
	if got := b.get("db", "answer"); got != "42" {
		t.Errorf("the answer is %q", got)
	}
}

func TestADeadMemberIsReplaced(t *testing.T) {
	t.Parallel()
	b := setup(t, interceptor.Funcs{})
	b.cluster("db", v1.EtcdClusterSpec{Size: 3})
	before := b.steady(key, 3).Status.Members
	b.put("db", "answer", "42")
	b.guard.taken()

	// Until the loss has been seen, the new member waits.
	seen := make(chan struct{})
	b.guard.mu.Lock()
	b.guard.around = func(what string, do func() error) error {
		if strings.HasPrefix(what, "add") {
			<-seen
		}
		return do()
	}
	b.guard.mu.Unlock()
	if err := b.kubelet.Kill(b.Context(), "default", "db-1"); err != nil {
		t.Fatal(err)
	}
	steertest.Expect[*v1.EtcdCluster](b.Env, key, steertest.Condition(v1.Degraded, metav1.ConditionTrue, "MemberLost"))
	close(seen)
	after := b.steady(key, 3).Status.Members
	if before[1].ID == after[1].ID || before[0] != after[0] || before[2] != after[2] {
		t.Errorf("%+v became %+v", before, after)
	}
	if got, want := strings.Join(b.guard.taken(), ", "), "remove db-1, add db-1, promote db-1"; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	if got := b.get("db", "answer"); got != "42" {
		t.Errorf("the answer is %q", got)
	}
	steertest.WaitList(b.Env, func(l *corev1.EventList) bool {
		return slices.ContainsFunc(l.Items, func(e corev1.Event) bool {
			return e.Reason == "MemberLost" && e.Type == corev1.EventTypeWarning && strings.Contains(e.Message, "db-1")
		})
	}, client.InNamespace("default"))
	families, err := b.Manager.Registry().Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "etcdcluster_members_replaced_total" {
			if n := f.Metric[0].GetCounter().GetValue(); n != 1 {
				t.Errorf("%v replacements, want 1", n)
			}
			return
		}
	}
	t.Error("the metric is missing")
}

func TestALostQuorumIsReportedAndLeftAlone(t *testing.T) {
	t.Parallel()
	b := setup(t, interceptor.Funcs{})
	b.cluster("db", v1.EtcdClusterSpec{Size: 3})
	b.steady(key, 3)
	b.StopOperator() // so that it finds both losses at once
	b.guard.taken()
	for _, member := range []string{"db-0", "db-2"} {
		if err := b.kubelet.Kill(b.Context(), "default", member); err != nil {
			t.Fatal(err)
		}
	}
	b.StartOperator()
	steertest.Expect[*v1.EtcdCluster](b.Env, key,
		steertest.Condition(v1.Degraded, metav1.ConditionTrue, "QuorumLost"),
		steertest.Condition(v1.Available, metav1.ConditionFalse),
		steertest.Condition(v1.Progressing, metav1.ConditionFalse))
	b.Settled()
	if got := b.guard.taken(); len(got) > 0 {
		t.Errorf("the operator went on: %v", got)
	}
	b.holds(3)
}

func TestASnapshotIsRestoredIntoAFreshCluster(t *testing.T) {
	t.Parallel()
	b := setup(t, interceptor.Funcs{})
	b.cluster("db", v1.EtcdClusterSpec{Size: 1, Backup: &v1.Backup{Every: metav1.Duration{Duration: time.Hour}, Keep: 2}})
	steertest.Wait(b.Env, key, func(c *v1.EtcdCluster) bool { return c.Status.LastBackup != nil })
	b.put("db", "answer", "42")

	// The last snapshot, when the cluster goes, has what was written since.
	b.clock.move(time.Minute)
	db := &v1.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "db"}}
	if err := b.Client.Delete(b.Context(), db); err != nil {
		t.Fatal(err)
	}
	steertest.WaitGone[*v1.EtcdCluster](b.Env, key)
	b.holds(0)
	taken, err := b.guard.snapshots(b.kubelet.Backups)
	if err != nil || len(taken) != 2 {
		t.Fatalf("%v, %v: want two snapshots", taken, err)
	}
	b.cluster("copy", v1.EtcdClusterSpec{Size: 3, Restore: taken[1]})
	b.steady("default/copy", 3)
	if got := b.get("copy", "answer"); got != "42" {
		t.Errorf("the answer is %q", got)
	}
}

// errKilled is what an operator gets that is dead already.
var errKilled = errors.New("the operator was killed")

// blade kills the operator with every write that changes anything: the write is
// done, its answer is lost, and nothing comes after it.
type blade struct {
	revision func(client.Call) string

	mu   sync.Mutex
	dead bool
	cut  chan string // told what the write was
}

func (b *blade) write(what string, do func() (effective bool, err error)) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.dead {
		return errKilled
	}
	effective, err := do()
	if err != nil || !effective {
		return err
	}
	b.dead = true
	b.cut <- what
	return errKilled
}

func (b *blade) revive() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.dead = false
}

func (b *blade) intercept(_ context.Context, call client.Call, do func() error) error {
	if !call.Verb.Writes() {
		return do()
	}
	return b.write(strings.Join([]string{string(call.Verb), call.GVK.Kind, call.Key.Name, call.SubResource}, " "), func() (bool, error) {
		before := b.revision(call)
		err := do()
		return b.revision(call) != before, err
	})
}

// TestAnOperatorThatIsKilledAfterEveryWriteGetsThere starts it anew each time.
func TestAnOperatorThatIsKilledAfterEveryWriteGetsThere(t *testing.T) {
	t.Parallel()
	knife := &blade{cut: make(chan string, 1)}
	var b *bundle
	knife.revision = func(call client.Call) string {
		obj := client.NewMetadata(call.GVK)
		if err := b.Client.Get(b.Context(), call.Key, obj); client.IgnoreNotFound(err) != nil {
			t.Errorf("look at %s %s: %v", call.GVK.Kind, call.Key, err)
		}
		return obj.ResourceVersion
	}
	b = setup(t, interceptor.Each(knife.intercept))
	b.guard.mu.Lock()
	b.guard.around = func(what string, do func() error) error {
		return knife.write(what, func() (bool, error) { err := do(); return err == nil, err })
	}
	b.guard.mu.Unlock()

	b.cluster("db", v1.EtcdClusterSpec{Size: 1})
	for _, phase := range []struct {
		name string
		act  func()
		size int32
		cuts int // at least
	}{
		{"found", func() {}, 1, 4},
		{"grow", func() { b.scale(3) }, 3, 10},
		{"replace", func() {
			if err := b.kubelet.Kill(b.Context(), "default", "db-0"); err != nil {
				t.Fatal(err)
			}
		}, 3, 6},
		{"shrink", func() { b.scale(1) }, 1, 6},
	} {
		var old v1.EtcdCluster
		if err := b.Client.Get(b.Context(), steertest.Key(key), &old); err != nil {
			t.Fatal(err)
		}
		phase.act()
		cuts := b.surviveUntil(knife, func(c *v1.EtcdCluster) bool {
			for _, match := range steady(phase.size) {
				if match(c) != nil {
					return false
				}
			}
			return phase.name != "replace" || c.Status.Members[0].ID != old.Status.Members[0].ID
		})
		t.Logf("%s: killed %d times, after: %s", phase.name, len(cuts), strings.Join(cuts, "; "))
		if len(cuts) < phase.cuts {
			t.Errorf("%s: killed %d times, want at least %d: the knife is blunt", phase.name, len(cuts), phase.cuts)
		}
	}
	if got, want := strings.Join(b.guard.taken(), ", "),
		"add db-1, promote db-1, add db-2, promote db-2, remove db-0, add db-0, promote db-0, remove db-2, remove db-1"; got != want {
		t.Errorf("changes: %s\nwant %s", got, want)
	}
}

// surviveUntil starts the operator again whenever it was killed, until the
// condition holds, and returns after what it was killed.
func (b *bundle) surviveUntil(knife *blade, condition func(*v1.EtcdCluster) bool) (cuts []string) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), 2*time.Minute)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		_, err := await.Object(ctx, b.Client, steertest.Key(key), condition)
		done <- err
	}()
	for {
		select {
		case what := <-knife.cut:
			cuts = append(cuts, strings.TrimSpace(what))
			b.StopOperator()
			knife.revive()
			b.StartOperator()
		case err := <-done:
			if err != nil {
				b.Fatalf("killed %d times (%s): %v", len(cuts), strings.Join(cuts, "; "), err)
			}
			return cuts
		}
	}
}
