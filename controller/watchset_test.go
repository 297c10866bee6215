// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/cache"
	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/controller"
)

func TestWatchesComeAndGoWhileTheControllerRuns(t *testing.T) {
	t.Parallel()
	env := newPlane(t)
	var watches controller.WatchSet[controller.Request]
	turns, seen := make(chan string, 100), make(chan string, 100)
	var informers *cache.Cache
	kill := start(t, env, func(m controller.Manager) error {
		informers = m.Deps().Informers.(*cache.Cache)
		return controller.AddRequests(m, "requests", controller.Func[controller.Request](func(_ context.Context, r controller.Request) (controller.Result, error) {
			turns <- r.Name
			return controller.Done(), nil
		}), controller.Typed(controller.From(&watches), controller.Watches(controller.Map(func(_ context.Context, w *Web) []controller.Request {
			seen <- w.Name
			return nil
		}))))
	})
	add := func() error {
		return watches.Add("maps", func() (controller.Source[controller.Request], error) {
			kind := client.Object(client.NewMetadata(corev1.SchemeGroupVersion.WithKind("ConfigMap")))
			return controller.Kind(informers, kind, controller.Self[client.Object]())
		})
	}
	createMap := func(name string) {
		t.Helper()
		create(t, env, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}})
	}
	next := func(want string) {
		t.Helper()
		select {
		case got := <-turns:
			if got != want {
				t.Errorf("%s was requested, not %s", got, want)
			}
		case <-env.Context().Done():
			t.Fatalf("%s was not requested", want)
		}
	}
	kinds := func() int { return len(informers.Informers()) }
	createMap("before")
	for range 2 { // the second time it does nothing
		if err := add(); err != nil {
			t.Fatal(err)
		}
	}
	next("before")
	createMap("during")
	next("during")
	if n := kinds(); n != 2 {
		t.Errorf("%d informers, not 2", n)
	}
	watches.Remove("maps")
	watches.Remove("maps")
	if n := kinds(); n != 1 {
		t.Errorf("%d informers after the removal, not 1", n)
	}
	createMap("after")
	if err := add(); err != nil { // shows everything that is there
		t.Fatal(err)
	}
	for got := map[string]bool{}; len(got) < 3; {
		select {
		case name := <-turns:
			got[name] = true
		case <-env.Context().Done():
			t.Fatal("not everything was requested")
		}
	}
	kill()
	if err := add(); err == nil {
		t.Error("a source was added to a controller that has ended")
	}
}
