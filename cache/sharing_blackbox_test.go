// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"fmt"
	"log/slog"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/cache"
	"github.com/steer-dev/steer/client"
)

// TestObjectsShareEqualPartsOnlyWhereNobodyChangesThem reads the same objects into
// caches that may share and such that may not.
func TestObjectsShareEqualPartsOnlyWhereTheyAreNotChanged(t *testing.T) {
	t.Parallel()
	w := newWorld(t, cache.Options{})
	const objects = 4
	for i := range objects {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("shared-", i), Namespace: "default", Labels: map[string]string{"app": "web"}}}
		if err := w.live.Create(w.env.Context(), cm); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		options cache.Options
		maps    int            // of labels, in memory
		apps    map[string]int // how many objects have which label
	}{
		"as it is":            {cache.Options{}, 1, map[string]int{"web": objects}},
		"mutation is watched": {cache.Options{DetectMutation: true}, objects, map[string]int{"web": objects}},
		"with a transform": {cache.Options{Transform: func(obj client.Object) (client.Object, error) {
			if obj.GetName() == "shared-1" {
				obj.GetLabels()["app"] = "changed"
			}
			return obj, nil
		}}, objects, map[string]int{"web": objects - 1, "changed": 1}},
	} {
		c.options.Log = slog.New(slog.DiscardHandler)
		one, err := cache.New(w.live, c.options)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(one.Stop)
		of := &world{t, w.env, w.live, one, nil}
		of.informer(&corev1.ConfigMap{})
		of.start()
		lister, err := cache.NewLister[*corev1.ConfigMap](one)
		if err != nil {
			t.Fatal(err)
		}
		all, err := lister.All(w.env.Context(), client.HasLabels{"app"})
		if err != nil {
			t.Fatal(err)
		}
		maps, apps := map[uintptr]bool{}, map[string]int{}
		for cm := range all {
			maps[reflect.ValueOf(cm.Labels).Pointer()] = true
			apps[cm.Labels["app"]]++
		}
		if len(maps) != c.maps || !reflect.DeepEqual(apps, c.apps) {
			t.Errorf("%s: %d maps of labels and %v, want %d and %v", name, len(maps), apps, c.maps, c.apps)
		}
	}
}
