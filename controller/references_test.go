// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/controller"
)

// pageKeys are the ConfigMaps that a Web names.
func pageKeys(w *Web) (keys []client.ObjectKey) {
	for _, name := range w.Spec.Pages {
		ns, name, ok := strings.Cut(name, "/")
		if !ok {
			ns, name = "", ns
		}
		keys = append(keys, client.ObjectKey{Namespace: ns, Name: name})
	}
	return keys
}

func TestReferencesRequestWhatNamesTheChangedObject(t *testing.T) {
	t.Parallel()
	var turns []string
	run(t, func(_ context.Context, w *Web) (controller.Result, error) {
		turns = append(turns, w.Name)
		return controller.Wait(), nil
	}, func(t *testing.T, m *fake) {
		expect := func(what string, want ...string) {
			t.Helper()
			synctest.Wait()
			if diff := cmp.Diff(want, turns); diff != "" {
				t.Errorf("%s: %s", what, diff)
			}
			turns = nil
		}
		page := func(namespace, name string) *corev1.ConfigMap {
			return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		}
		a, b := web("a"), web("b")
		a.Spec.Pages = []string{"shared", "elsewhere/far", ""}
		b.Spec.Pages = []string{"shared"}
		m.create(t, a, b)
		expect("the objects", "a", "b")
		m.create(t, page("default", "shared"))
		expect("what both name", "a", "b")
		m.create(t, page("elsewhere", "far"), page("other", "shared"), page("default", "unnamed"))
		expect("what one names", "a")
		m.update(t, "b", func(w *Web) { w.Spec.Pages = []string{"unnamed"} })
		expect("a change of the names", "b")
		shared := page("default", "shared")
		if err := m.Get(t.Context(), client.ObjectKeyFromObject(shared), shared); err != nil {
			t.Fatal(err)
		}
		m.delete(t, shared)
		expect("a deletion", "a")
		m.delete(t, m.web(t, "a"))
		synctest.Wait()
		turns = nil
		m.create(t, page("default", "shared"))
		expect("what is not named any more")
	}, controller.References[*corev1.ConfigMap](pageKeys))
}

func TestReferencesRefuseAFunctionOfAnotherKind(t *testing.T) {
	t.Parallel()
	reconcile := controller.Func[*corev1.ConfigMap](func(context.Context, *corev1.ConfigMap) (controller.Result, error) {
		return controller.Done(), nil
	})
	err := controller.Add(newFake(), reconcile, controller.References[*corev1.Node](pageKeys))
	if err == nil || !strings.Contains(err.Error(), "takes a *controller_test.Web, which Reconcile does not") {
		t.Error(err)
	}
}
