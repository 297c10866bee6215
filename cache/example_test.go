// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/steer-dev/steer/cache"
	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/internal/exampletest"
	"github.com/steer-dev/steer/steertest"
)

// withCache calls body with a cache, and a client that reads from it, of a new control
// plane with some objects. An operator gets both from its manager.
func withCache(options cache.Options, body func(ctx context.Context, c *cache.Cache, cl client.Client), objects ...client.Object) {
	exampletest.Run(func(t testing.TB) {
		scheme, err := client.NewScheme(corev1.AddToScheme)
		check(err)
		env := steertest.New(t, steertest.Options{Scheme: scheme, Objects: objects})
		live, err := client.New(env.Config, client.Options{Scheme: scheme})
		check(err)
		c, err := cache.New(live, options)
		check(err)
		defer c.Stop()
		body(t.Context(), c, cache.NewClient(live, c))
	})
}

// start starts the cache with the watches of some kinds.
func start(ctx context.Context, c *cache.Cache, kinds ...client.Object) {
	for _, kind := range kinds {
		_, err := c.Informer(kind)
		check(err)
	}
	check(c.Start(ctx))
	check(c.WaitForSync(ctx))
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func labelled(name, app string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{"app": app}}}
}

// A kind is declared with Informer; after WaitForSync its reads come from memory.
func ExampleNew() {
	withCache(cache.Options{}, func(ctx context.Context, c *cache.Cache, _ client.Client) {
		_, err := c.Informer(&corev1.ConfigMap{})
		check(err)
		check(c.Start(ctx))
		check(c.WaitForSync(ctx))

		var list corev1.ConfigMapList
		check(c.List(ctx, &list, client.InNamespace("default"), client.MatchingLabels{"app": "web"}))
		fmt.Println(len(list.Items))
	}, labelled("a", "web"), labelled("b", "db"))
	// Output: 1
}

// A cached read after a write shows the write, also before the watch has delivered it.
func ExampleNewClient() {
	withCache(cache.Options{}, func(ctx context.Context, c *cache.Cache, cl client.Client) {
		start(ctx, c, &corev1.ConfigMap{})

		obj := labelled("settings", "web")
		check(cl.Create(ctx, obj))
		obj.Data = map[string]string{"color": "blue"}
		check(cl.Update(ctx, obj))

		var read corev1.ConfigMap
		check(cl.Get(ctx, client.ObjectKeyFromObject(obj), &read)) // from memory
		fmt.Println(read.Data["color"])
	})
	// Output: blue
}

// A handler gets an Added event for every object that is there, and then the changes.
func ExampleInformer() {
	withCache(cache.Options{}, func(ctx context.Context, c *cache.Cache, cl client.Client) {
		informer, err := c.Informer(&corev1.ConfigMap{})
		check(err)
		events := make(chan string, 10)
		informer.AddHandler(func(e cache.Event) {
			if obj := e.Object; obj.GetNamespace() == "default" {
				events <- fmt.Sprint(e.Type, " ", obj.GetName())
			}
		})
		check(c.Start(ctx))
		fmt.Println(<-events)
		check(cl.Delete(ctx, labelled("a", "web")))
		fmt.Println(<-events)
	}, labelled("a", "web"))
	// Output:
	// added a
	// deleted a
}

// An index answers lists by what a function makes of each object.
func ExampleCache_IndexField() {
	pod := func(name, node string) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
			Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "main", Image: "nginx"}}},
		}
	}
	withCache(cache.Options{}, func(ctx context.Context, c *cache.Cache, _ client.Client) {
		check(c.IndexField(&corev1.Pod{}, "spec.nodeName", func(obj client.Object) []string {
			return []string{obj.(*corev1.Pod).Spec.NodeName}
		}))
		start(ctx, c, &corev1.Pod{})
		var pods corev1.PodList
		check(c.List(ctx, &pods, client.MatchingFields{"spec.nodeName": "node-1"}))
		for _, pod := range pods.Items {
			fmt.Println(pod.Name)
		}
	}, pod("a", "node-1"), pod("b", "node-2"))
	// Output: a
}

// A lister reads one kind with its Go type. All iterates without copies: what it
// yields is shared and must not be changed.
func ExampleLister() {
	withCache(cache.Options{}, func(ctx context.Context, c *cache.Cache, _ client.Client) {
		lister, err := cache.NewLister[*corev1.ConfigMap](c)
		check(err)
		start(ctx, c, &corev1.ConfigMap{})

		obj, err := lister.Get(ctx, client.ObjectKey{Namespace: "default", Name: "a"})
		check(err)
		fmt.Println(obj.Name, obj.Labels)

		all, err := lister.All(ctx, client.InNamespace("default"), client.HasLabels{"app"})
		check(err)
		count := 0
		for range all {
			count++
		}
		fmt.Println(count)
	}, labelled("a", "web"), labelled("b", "db"))
	// Output:
	// a map[app:web]
	// 2
}

// A selection limits what of a kind is watched and held.
func ExampleKindOptions() {
	web := cache.KindOptions{Object: &corev1.ConfigMap{}, Labels: labels.SelectorFromSet(labels.Set{"app": "web"})}
	withCache(cache.Options{ByKind: []cache.KindOptions{web}}, func(ctx context.Context, c *cache.Cache, _ client.Client) {
		start(ctx, c, &corev1.ConfigMap{})
		var list corev1.ConfigMapList
		check(c.List(ctx, &list, client.InNamespace("default")))
		fmt.Println(len(list.Items), list.Items[0].Name)
	}, labelled("a", "web"), labelled("b", "db"))
	// Output: 1 a
}

// A transform changes objects before they are stored, for example to save memory.
func ExampleTransform() {
	withoutData := func(obj client.Object) (client.Object, error) {
		if cm, ok := obj.(*corev1.ConfigMap); ok {
			cm.Data, cm.BinaryData = nil, nil
		}
		return obj, nil
	}
	settings := labelled("a", "web")
	settings.Data = map[string]string{"color": "red"}
	withCache(cache.Options{Transform: withoutData}, func(ctx context.Context, c *cache.Cache, cl client.Client) {
		start(ctx, c, settings)
		var cached, live corev1.ConfigMap
		check(cl.Get(ctx, client.ObjectKeyFromObject(settings), &cached))
		check(cl.Get(ctx, client.ObjectKeyFromObject(settings), &live, client.Live))
		fmt.Println(len(cached.Data), len(live.Data))
	}, settings)
	// Output: 0 1
}

// Reads of kinds without an informer are requests, unless that is to be an error.
func ExampleUndeclared() {
	withCache(cache.Options{Undeclared: cache.UndeclaredError}, func(ctx context.Context, c *cache.Cache, cl client.Client) {
		check(c.Start(ctx))
		var secret corev1.Secret
		err := cl.Get(ctx, client.ObjectKey{Namespace: "default", Name: "token"}, &secret)
		var missing *cache.NotDeclaredError
		fmt.Println(errors.As(err, &missing))
	})
	// Output: true
}
