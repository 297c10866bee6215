// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package etcdcluster_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/examples/etcdcluster"
	v1 "github.com/steer-dev/steer/examples/etcdcluster/api/v1"
	"github.com/steer-dev/steer/steertest"
)

func TestMembersFollowTheSizeOneByOne(t *testing.T) {
	t.Parallel()
	b := setup(t)
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

func TestARestartInSteadyStateWritesNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.cluster("db", v1.EtcdClusterSpec{Size: 3})
	b.steady(key, 3)
	b.ExpectNoWrites()
}

// TestTheOperatorLeadsUnderItsRole fails where the generated role lacks what leader
// election needs.
func TestTheOperatorLeadsUnderItsRole(t *testing.T) {
	t.Parallel()
	b := setup(t, "--leader-elect")
	b.cluster("db", v1.EtcdClusterSpec{Size: 1})
	b.steady(key, 1)
	lease := client.NewMetadata(coordinationv1.SchemeGroupVersion.WithKind("Lease"))
	if err := b.Client.Get(b.Context(), client.ObjectKey{Namespace: b.Namespace, Name: etcdcluster.Name}, lease); err != nil {
		t.Error(err)
	}
}

func TestADeadMemberIsReplaced(t *testing.T) {
	t.Parallel()
	b := setup(t)
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
	families, err := b.Manager().Registry().Gather()
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
	b := setup(t)
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
	b := setup(t)
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

// TestAnOperatorThatIsKilledAfterEveryWriteGetsThere counts changes of etcd's
// members as writes too.
func TestAnOperatorThatIsKilledAfterEveryWriteGetsThere(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.guard.mu.Lock()
	b.guard.around = b.Outside
	b.guard.mu.Unlock()
	var replaced string
	for _, phase := range []struct {
		name string
		act  func()
		size int32
		cuts int // at least
	}{
		{"found", func() { b.cluster("db", v1.EtcdClusterSpec{Size: 1}) }, 1, 4},
		{"grow", func() { b.scale(3) }, 3, 10},
		{"replace", func() {
			var old v1.EtcdCluster
			if err := b.Client.Get(b.Context(), steertest.Key(key), &old); err != nil {
				t.Fatal(err)
			}
			replaced = old.Status.Members[0].ID
			if err := b.kubelet.Kill(b.Context(), "default", "db-0"); err != nil {
				t.Fatal(err)
			}
		}, 3, 6},
		{"shrink", func() { b.scale(1) }, 1, 6},
	} {
		isNew := steertest.Field(func(c *v1.EtcdCluster) bool { return c.Status.Members[0].ID != replaced }, true)
		killed := steertest.KillAfterEveryWrite[*v1.EtcdCluster](b.Env, key, phase.act, append(steady(phase.size), isNew)...)
		t.Logf("%s: killed %d times, after: %s", phase.name, len(killed), strings.Join(killed, "; "))
		if len(killed) < phase.cuts {
			t.Errorf("%s: killed %d times, want at least %d", phase.name, len(killed), phase.cuts)
		}
	}
	if got, want := strings.Join(b.guard.taken(), ", "),
		"add db-1, promote db-1, add db-2, promote db-2, remove db-0, add db-0, promote db-0, remove db-2, remove db-1"; got != want {
		t.Errorf("changes: %s\nwant %s", got, want)
	}
}
