// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package steertest_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer"
	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/controller"
	"github.com/steer-dev/steer/manager"
	"github.com/steer-dev/steer/steertest"
)

// childrenOf is how many children an owner has here.
const childrenOf = 10

// herd keeps ConfigMaps for every ServiceAccount with the label herd.
func herd() steer.Operator {
	return steer.Operator{Scheme: steer.Scheme{corev1.AddToScheme}, Setup: func(_ context.Context, m *manager.Manager) error {
		set := controller.Children[*corev1.ConfigMap]{}
		return controller.Add(m, controller.Func[*corev1.ServiceAccount](func(ctx context.Context, owner *corev1.ServiceAccount) (controller.Result, error) {
			if owner.Labels["herd"] == "" {
				return controller.Done(), nil
			}
			var desired []*corev1.ConfigMap
			for i := range childrenOf {
				desired = append(desired, &corev1.ConfigMap{
					ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(owner.Name, "-", i), Labels: map[string]string{}},
					Data:       map[string]string{"owner": owner.Name},
				})
			}
			return controller.Done(), set.Apply(ctx, owner, desired)
		}), controller.Owns[*corev1.ConfigMap](), controller.Concurrency(4))
	}}
}

func TestTenThousandChildrenAreSentNothingAfterARestart(t *testing.T) {
	t.Parallel()
	objects := 10_000
	if raceDetector {
		objects = 1_000
	}
	env := steertest.New(t, steertest.Options{Operator: herd(), Timeout: 2 * time.Minute})
	for i := range objects / childrenOf {
		env.Create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("owner-", i), Labels: map[string]string{"herd": "yes"}}})
	}
	env.Settled()
	var children corev1.ConfigMapList
	if err := env.Client.List(env.Context(), &children, client.InNamespace(env.Namespace)); err != nil {
		t.Fatal(err)
	}
	if len(children.Items) != objects {
		t.Errorf("%d children, want %d", len(children.Items), objects)
	}
	env.ExpectNoWrites()
}

// renumbering writes the number of its run into the ConfigMap x.
type renumbering struct {
	client client.Client
	run    string
}

func (r *renumbering) Reconcile(ctx context.Context, c *corev1.ConfigMap) (controller.Result, error) {
	if c.Name != "x" || c.Data["run"] == r.run {
		return controller.Done(), nil
	}
	after := c.DeepCopy()
	after.Data = map[string]string{"run": r.run}
	return controller.Done(), r.client.Patch(ctx, after, client.MergeFrom(c))
}

func TestAWriteAfterARestartIsListed(t *testing.T) {
	t.Parallel()
	runs := 0
	got := fails(t, func(tb testing.TB) {
		env := steertest.New(tb, steertest.Options{Operator: steer.Operator{
			Scheme: steer.Scheme{corev1.AddToScheme},
			Setup: func(_ context.Context, m *manager.Manager) error {
				runs++
				return controller.Add(m, &renumbering{m.Client(), fmt.Sprint(runs)})
			},
		}})
		env.Create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "x"}})
		env.ExpectNoWrites()
	})
	want := "writes of the operator after a restart, with nothing to do: 1\n  PATCH /api/v1/namespaces/default/configmaps/x"
	if !strings.Contains(got, want) {
		t.Errorf("want %q, got %q", want, got)
	}
}
