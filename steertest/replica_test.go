// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package steertest_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/controller"
	"github.com/steer-dev/steer/manager"
	"github.com/steer-dev/steer/steertest"
)

// TestReplicasTakeTheLeaseOver has one replica after another lead: the first releases its
// lease, the second dies with it.
func TestReplicasTakeTheLeaseOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		op, _ := elected()
		env := steertest.New(t, steertest.Options{Operator: op, Args: []string{"--leader-elect"}})
		env.Settled()
		holder := func() string {
			return *steertest.Wait(env, env.Namespace+"/elected", func(l *coordinationv1.Lease) bool {
				return l.Spec.HolderIdentity != nil && *l.Spec.HolderIdentity != ""
			}).Spec.HolderIdentity
		}
		leads := func(r *steertest.Replica) bool {
			select {
			case <-r.Manager().Elected():
				return true
			default:
				return false
			}
		}
		first, standby := holder(), env.StartReplica()
		env.Settled()
		if leads(standby) {
			t.Fatal("two replicas lead")
		}
		began := time.Now()
		env.StopOperator()
		env.Settled()
		if took := time.Since(began); !leads(standby) || holder() == first || took > 5*time.Second {
			t.Errorf("the replica leads after %s: %t", took, leads(standby))
		}
		last := env.StartReplica()
		began = time.Now()
		standby.Kill()
		env.Create(configMap("source"))
		env.Settled()
		steertest.Wait(env, "default/copy", func(*corev1.ConfigMap) bool { return true })
		if took := time.Since(began); !leads(last) || took < 5*time.Second {
			t.Errorf("the last replica leads after %s: %t; a lease of a process that died has to expire", took, leads(last))
		}
	})
}

// TestReplicasWithoutElectionAllReconcile counts who reconciles, before and after the end of one.
func TestReplicasWithoutElectionAllReconcile(t *testing.T) {
	t.Parallel()
	env := steertest.New(t, steertest.Options{Scheme: scheme(t), Setup: setup})
	other := env.StartReplica()
	env.Create(configMap("source"))
	env.Settled()
	for name, m := range map[string]*manager.Manager{"operator": env.Manager(), "replica": other.Manager()} {
		n := 0
		for range m.Recorder().Records() {
			n++
		}
		if n == 0 {
			t.Errorf("the %s has reconciled nothing", name)
		}
	}
	other.Stop()
	other.Stop()
	env.Settled()
}

func TestAnOperatorIsKilledAfterEveryWriteUntilItsObjectIsGone(t *testing.T) {
	t.Parallel()
	forgets := func(_ context.Context, m *manager.Manager) error {
		k := keeper{m.Client()}
		return controller.Add(m, controller.Func[*corev1.ConfigMap](func(context.Context, *corev1.ConfigMap) (controller.Result, error) {
			return controller.Done(), nil
		}), controller.Finalizer("example.com/tell", func(ctx context.Context, cm *corev1.ConfigMap) (controller.FinalizerResult, error) {
			if cm.Name != "source" {
				return controller.Finalized(), nil
			}
			told := &corev1.Secret{}
			told.Namespace, told.Name, told.Data = cm.Namespace, "told", map[string][]byte{"a": []byte("1")}
			return controller.Finalized(), k.Apply(ctx, told, client.FieldOwner("keeper"))
		}))
	}
	env := steertest.New(t, steertest.Options{Scheme: scheme(t), Setup: forgets})
	env.Create(configMap("source"))
	env.Settled()
	killed := steertest.KillAfterEveryWriteUntilGone[*corev1.ConfigMap](env, "default/source", func() {
		if err := env.Client.Delete(env.Context(), configMap("source")); err != nil {
			t.Error(err)
		}
	})
	if got := strings.Join(killed, "; "); got != "apply Secret told; patch ConfigMap source" {
		t.Errorf("killed after %s", got)
	}
	steertest.Wait(env, "default/told", func(*corev1.Secret) bool { return true })
}

// TestUpdateReadsAgainOnConflict changes the object under the feet of the first try.
func TestUpdateReadsAgainOnConflict(t *testing.T) {
	t.Parallel()
	env := steertest.New(t, steertest.Options{Scheme: scheme(t)})
	pod := &corev1.Pod{}
	pod.Name, pod.Spec.Containers = "a", []corev1.Container{{Name: "a", Image: "a"}}
	env.Create(pod)
	tries := 0
	got := steertest.Update(env, "a", func(p *corev1.Pod) {
		if tries++; tries == 1 {
			steertest.Update(env, "a", func(p *corev1.Pod) { p.Labels = map[string]string{"theirs": "1"} })
		}
		if p.Labels == nil {
			p.Labels = map[string]string{}
		}
		p.Labels["ours"], p.Status.Phase = "1", corev1.PodRunning
	})
	if tries != 2 || got.Labels["theirs"] != "1" || got.Labels["ours"] != "1" || got.Status.Phase != corev1.PodRunning {
		t.Errorf("%d tries, labels %v, phase %s", tries, got.Labels, got.Status.Phase)
	}
	if message := fails(t, func(tb testing.TB) {
		env := steertest.New(tb, steertest.Options{Scheme: scheme(t)})
		steertest.Update(env, "none", func(*corev1.Pod) {})
	}); !strings.Contains(message, "update *v1.Pod default/none: ") {
		t.Error(message)
	}
}

// TestVirtualTimeoutBoundsWaitsInABubble waits for what never comes, in either time.
func TestVirtualTimeoutBoundsWaitsInABubble(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		message := fails(t, func(tb testing.TB) {
			env := steertest.New(tb, steertest.Options{Scheme: scheme(t), Timeout: time.Second, VirtualTimeout: 3 * time.Hour})
			steertest.Wait(env, "never", func(*corev1.ConfigMap) bool { return true })
		})
		if took := time.Since(began); took.Round(time.Hour) != 3*time.Hour || !strings.Contains(message, "nothing came of it in 3h0m0s") {
			t.Errorf("after %s: %s", took, message)
		}
	})
}
