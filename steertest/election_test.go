// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package steertest_test

import (
	"context"
	"flag"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/steer-dev/steer"
	"github.com/steer-dev/steer/controller"
	"github.com/steer-dev/steer/manager"
	"github.com/steer-dev/steer/steertest"
)

// elected is an operator whose flag and scheme are its own.
func elected() (op steer.Operator, text *string) {
	text = new(string)
	return steer.Operator{
		Name:   "elected",
		Scheme: steer.Scheme{corev1.AddToScheme, coordinationv1.AddToScheme},
		Flags:  func(set *flag.FlagSet) { set.StringVar(text, "text", "none", "what is said") },
		Setup: func(_ context.Context, m *manager.Manager) error {
			return controller.Add(m, keeper{m.Client()})
		},
	}, text
}

func TestTheOperatorUnderTestLeadsByALease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		op, text := elected()
		env := steertest.New(t, steertest.Options{Operator: op, Args: []string{"--leader-elect", "--text=hello"}})
		holder := func() string {
			lease := steertest.Wait(env, env.Namespace+"/elected", func(l *coordinationv1.Lease) bool {
				return l.Spec.HolderIdentity != nil && *l.Spec.HolderIdentity != ""
			})
			return *lease.Spec.HolderIdentity
		}
		env.Settled()
		first, began := holder(), time.Now()
		env.StopOperator()
		env.StartOperator()
		env.Create(configMap("source"))
		env.Settled()
		steertest.Wait(env, "default/copy", func(*corev1.ConfigMap) bool { return true })
		if second := holder(); first == second {
			t.Errorf("%s holds the lease after a restart: the next process did not take it", first)
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("the next process led after %s of virtual time: the lease was not released", took)
		}
		if *text != "hello" {
			t.Errorf("the flag of the operator is %q", *text)
		}
	})
}

func TestTheLeaseIsNoWriteOfAnOperatorWithNothingToDo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		op, _ := elected()
		op.Setup = func(_ context.Context, m *manager.Manager) error {
			return controller.Add(m, controller.Func[*corev1.ConfigMap](func(context.Context, *corev1.ConfigMap) (controller.Result, error) {
				return controller.Done(), nil
			}))
		}
		env := steertest.New(t, steertest.Options{Operator: op, Args: []string{"--leader-elect"}})
		env.ExpectNoWrites()
	})
}

func TestAnOperatorWithoutTheRightsOnItsLeaseFailsTheTest(t *testing.T) {
	t.Parallel()
	message := fails(t, func(tb testing.TB) {
		op, _ := elected()
		env := steertest.New(tb, steertest.Options{Operator: op, Args: []string{"--leader-elect"}, Role: role(t, "get, list, watch, create, patch")})
		env.Create(configMap("source"))
		steertest.Wait(env, "default/copy", func(*corev1.ConfigMap) bool { return true })
	})
	if want := "`steer generate rbac:roleName=NAME,leaderElection=true`"; !strings.Contains(message, want) {
		t.Errorf("message %s\nwithout %s", message, want)
	}
}
