// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package interop_test

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	theirs "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/steer-dev/steer"
	"github.com/steer-dev/steer/controller"
	"github.com/steer-dev/steer/interop"
	"github.com/steer-dev/steer/manager"
	"github.com/steer-dev/steer/steertest"
)

type nothing struct{}

func (nothing) Reconcile(context.Context, *corev1.ConfigMap) (controller.Result, error) {
	return controller.Done(), nil
}

func environment(t *testing.T) (*steertest.Env, theirs.Client) {
	t.Helper()
	env := steertest.New(t, steertest.Options{Operator: steer.Operator{
		Scheme: steer.Scheme{corev1.AddToScheme},
		Setup:  func(_ context.Context, m *manager.Manager) error { return controller.Add(m, nothing{}) },
	}})
	env.Settled() // the cache has started
	c, err := interop.Client(env.Manager().Client(), env.Config)
	if err != nil {
		t.Fatal(err)
	}
	return env, c
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{"app": "x"}}}
}

func TestALibraryOfControllerRuntimeWorksOnTheClient(t *testing.T) {
	t.Parallel()
	env, c := environment(t)
	ctx := env.Context()
	must := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	cm := configMap("a")
	for _, want := range []controllerutil.OperationResult{controllerutil.OperationResultCreated, controllerutil.OperationResultNone} {
		got, err := controllerutil.CreateOrUpdate(ctx, c, cm, func() error {
			cm.Data = map[string]string{"k": "1"}
			return nil
		})
		must("CreateOrUpdate", err)
		if got != want {
			t.Errorf("CreateOrUpdate: %s, want %s", got, want)
		}
	}
	before := cm.DeepCopy()
	cm.Data["k"] = "2"
	must("Patch", c.Patch(ctx, cm, theirs.MergeFromWithOptions(before, theirs.MergeFromWithOptimisticLock{})))
	if err := c.Patch(ctx, cm.DeepCopy(), theirs.MergeFromWithOptions(before, theirs.MergeFromWithOptimisticLock{})); !apierrors.IsConflict(err) {
		t.Errorf("a patch of what has changed: %v, want a conflict", err)
	}
	must("Apply", c.Apply(ctx, corev1ac.ConfigMap("b", "default").WithLabels(map[string]string{"app": "x"}), theirs.FieldOwner("test"), theirs.ForceOwnership))
	var list corev1.ConfigMapList
	must("List", c.List(ctx, &list, theirs.InNamespace("default"), theirs.MatchingLabels{"app": "x"}))
	if len(list.Items) != 2 {
		t.Errorf("%d ConfigMaps are listed right after the writes, want 2", len(list.Items))
	}
	must("dry run", c.Delete(ctx, configMap("a"), theirs.DryRunAll))
	must("Get", c.Get(ctx, theirs.ObjectKeyFromObject(cm), cm))
	if cm.Data["k"] != "2" {
		t.Errorf("data %v", cm.Data)
	}
	must("DeleteAllOf", c.DeleteAllOf(ctx, &corev1.ConfigMap{}, theirs.InNamespace("default"), theirs.MatchingLabels{"app": "x"}))
	if err := c.Get(ctx, theirs.ObjectKeyFromObject(cm), cm); !apierrors.IsNotFound(err) {
		t.Errorf("after its deletion: %v", err)
	}
	if namespaced, err := c.IsObjectNamespaced(cm); err != nil || !namespaced {
		t.Errorf("namespaced %v, %v", namespaced, err)
	}
	gvk, err := c.GroupVersionKindFor(cm)
	must("GroupVersionKindFor", err)
	mapping, err := c.RESTMapper().RESTMapping(gvk.GroupKind())
	must("RESTMapping", err)
	if mapping.Resource.Resource != "configmaps" {
		t.Errorf("resource %s", mapping.Resource)
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	must("status", c.Status().Patch(ctx, ns, theirs.RawPatch("application/merge-patch+json", []byte(`{"status":{"conditions":[]}}`))))
	err = c.Get(ctx, theirs.ObjectKeyFromObject(cm), cm, &theirs.GetOptions{Raw: &metav1.GetOptions{ResourceVersion: "1"}})
	if err == nil || !strings.Contains(err.Error(), "not supported") {
		t.Errorf("a read at a revision: %v", err)
	}
}

func TestEventsOfALibraryAreSent(t *testing.T) {
	t.Parallel()
	env, _ := environment(t)
	cm := configMap("a")
	env.Create(cm)
	interop.EventRecorder(env.Manager().Deps().Events, "library").Eventf(cm, corev1.EventTypeWarning, "Odd", "%d things", 2)
	list := steertest.WaitList(env, func(l *corev1.EventList) bool { return len(l.Items) == 1 })
	if e := list.Items[0]; e.Type != corev1.EventTypeWarning || e.Reason != "Odd" || e.Message != "2 things" || e.InvolvedObject.Name != "a" {
		t.Errorf("%+v", e)
	}
}
