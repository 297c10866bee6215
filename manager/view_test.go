// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/steer-dev/steer/cache"
	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/controller"
	"github.com/steer-dev/steer/manager"
	"github.com/steer-dev/steer/steertest"
)

// sight is what a controller saw of the ConfigMap x: the object, and a read.
type sight struct{ object, read string }

// watcher notes what it sees.
func watcher(c client.Client, seen chan sight) controller.Func[*corev1.ConfigMap] {
	return func(ctx context.Context, obj *corev1.ConfigMap) (controller.Result, error) {
		if obj.Name != "x" {
			return controller.Done(), nil
		}
		var read corev1.ConfigMap
		err := c.Get(ctx, client.ObjectKeyFromObject(obj), &read)
		seen <- sight{obj.Data["big"], read.Data["big"]}
		return controller.Done(), err
	}
}

func coreScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme, err := client.NewScheme(corev1.AddToScheme)
	if err != nil {
		t.Fatal(err)
	}
	return scheme
}

func TestAViewHoldsItsKindsOtherwiseThanTheManager(t *testing.T) {
	t.Parallel()
	whole, slim, metadata := make(chan sight, 16), make(chan sight, 16), make(chan string, 16)
	drop := func(obj client.Object) (client.Object, error) {
		obj.(*corev1.ConfigMap).Data = nil
		return obj, nil
	}
	env := steertest.New(t, steertest.Options{
		Scheme: coreScheme(t),
		Setup: func(_ context.Context, m *manager.Manager) error {
			if err := controller.Add(m, watcher(m.Client(), whole), controller.Name("whole")); err != nil {
				return err
			}
			view, err := m.View(cache.KindOptions{Object: &corev1.ConfigMap{}, Transform: drop})
			if err != nil {
				return err
			}
			if err := controller.Add(view, watcher(view.Client(), slim), controller.Name("slim")); err != nil {
				return err
			}
			return controller.Add(m, controller.Func[*metav1.PartialObjectMetadata](func(_ context.Context, obj *metav1.PartialObjectMetadata) (controller.Result, error) {
				if obj.Name == "x" {
					metadata <- obj.Labels["color"]
				}
				return controller.Done(), nil
			}), controller.Name("metadata"), controller.OfKind(corev1.SchemeGroupVersion.WithKind("ConfigMap")),
				controller.Where(func(e controller.Event[*metav1.PartialObjectMetadata]) bool { return e.Object.Labels["color"] != "" }))
		},
	})
	env.Create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "x", Labels: map[string]string{"color": "red"}}, Data: map[string]string{"big": "data"}})
	env.Settled()
	if len(whole) == 0 || len(slim) == 0 || len(metadata) == 0 {
		t.Fatalf("reconciled whole %d times, slim %d times, by metadata %d times", len(whole), len(slim), len(metadata))
	}
	if got := <-whole; got != (sight{"data", "data"}) {
		t.Errorf("the whole object was seen as %+v", got)
	}
	if got := <-slim; got != (sight{}) {
		t.Errorf("the transformed object was seen as %+v", got)
	}
	if got := <-metadata; got != "red" {
		t.Errorf("the metadata was seen with color %q", got)
	}
}

func TestAViewSeesTheWritesOfTheOthers(t *testing.T) {
	t.Parallel()
	env := steertest.New(t, steertest.Options{
		Scheme: coreScheme(t),
		Setup: func(_ context.Context, m *manager.Manager) error {
			_, err := m.Cache().Informer(&corev1.Secret{})
			return err
		},
	})
	env.Settled()
	view, err := env.Manager().View(cache.KindOptions{Object: &corev1.ConfigMap{}}) // of a manager that runs
	if err != nil {
		t.Fatal(err)
	}
	informer, err := view.Cache().Informer(&corev1.ConfigMap{})
	if err != nil {
		t.Fatal(err)
	}
	if err := informer.WaitForSync(env.Context()); err != nil {
		t.Fatal(err)
	}
	read := func(c client.Client, obj client.Object) {
		t.Helper()
		if err := c.Get(env.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
			t.Error(err)
		}
	}
	ofManager := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: env.Namespace, Name: "x"}}
	if err := env.Manager().Client().Create(env.Context(), ofManager); err != nil {
		t.Fatal(err)
	}
	read(view.Client(), ofManager)
	ofView := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: env.Namespace, Name: "y"}}
	if err := view.Client().Create(env.Context(), ofView); err != nil {
		t.Fatal(err)
	}
	read(env.Manager().Client(), ofView)
	read(view.Client(), ofView) // a kind that the view has in common with the manager
}

func TestInformersOfOneKindAreMeasuredApart(t *testing.T) {
	t.Parallel()
	env := steertest.New(t, steertest.Options{
		Scheme: coreScheme(t),
		Setup: func(_ context.Context, m *manager.Manager) error {
			kind := cache.KindOptions{Object: &corev1.ConfigMap{}}
			first, err := m.View(kind)
			if err != nil {
				return err
			}
			second, err := m.View(kind)
			if err != nil {
				return err
			}
			metadata := client.NewMetadata(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
			for _, c := range []*cache.Cache{m.Cache(), first.Cache(), second.Cache()} {
				for _, obj := range []client.Object{metadata, &corev1.ConfigMap{}} {
					if _, err := c.Informer(obj); err != nil {
						return err
					}
				}
			}
			return nil
		},
	})
	env.Settled()
	families, err := env.Manager().Registry().Gather()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, family := range families {
		if family.GetName() != "informer_store_resource_version" {
			continue
		}
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				if label.GetName() == "name" {
					names = append(names, label.GetValue())
				}
			}
		}
	}
	want := []string{
		"configmaps", "configmaps-metadata", "configmaps-view-1", "configmaps-view-1-metadata", "configmaps-view-2", "configmaps-view-2-metadata",
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("informers in the metrics (-want +got):\n%s", diff)
	}
}
