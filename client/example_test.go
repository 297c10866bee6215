// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/internal/exampletest"
	"github.com/steer-dev/steer/steertest"
)

// withClient calls body with a client of a new control plane, which stands for any
// cluster. An operator gets its client from its manager.
func withClient(body func(ctx context.Context, c client.Client)) {
	exampletest.Run(func(t testing.TB) {
		scheme, err := client.NewScheme(corev1.AddToScheme, appsv1.AddToScheme, autoscalingv1.AddToScheme)
		check(err)
		env := steertest.New(t, steertest.Options{Scheme: scheme})
		c, err := client.New(env.Config, client.Options{Scheme: scheme, FieldOwner: "example"})
		check(err)
		body(t.Context(), c)
	})
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func exampleConfigMap(name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Data: data}
}

// A client needs the configuration of a cluster and a scheme with the Go types.
func ExampleNew() {
	exampletest.Run(func(t testing.TB) {
		config := steertest.New(t, steertest.Options{}).Config // or of a kubeconfig file
		scheme, err := client.NewScheme(corev1.AddToScheme)
		check(err)
		c, err := client.New(config, client.Options{Scheme: scheme})
		check(err)

		var ns corev1.Namespace
		check(c.Get(t.Context(), client.ObjectKey{Name: "default"}, &ns))
		fmt.Println(ns.Kind, ns.Name, ns.Status.Phase)
	})
	// Output: Namespace default Active
}

// After a write the object is what the server stored.
func ExampleWriter() {
	withClient(func(ctx context.Context, c client.Client) {
		settings := exampleConfigMap("settings", map[string]string{"color": "red"})
		check(c.Create(ctx, settings))
		fmt.Println("created:", settings.UID != "", settings.ResourceVersion != "")

		settings.Data["color"] = "blue"
		check(c.Update(ctx, settings))

		check(c.Delete(ctx, settings))
		err := c.Get(ctx, client.ObjectKeyFromObject(settings), settings)
		fmt.Println("not found:", apierrors.IsNotFound(err))
	})
	// Output:
	// created: true true
	// not found: true
}

// Options select what is listed.
func ExampleReader() {
	withClient(func(ctx context.Context, c client.Client) {
		for _, app := range []string{"web", "web", "db"} {
			obj := exampleConfigMap("", nil)
			obj.GenerateName, obj.Labels = app+"-", map[string]string{"app": app}
			check(c.Create(ctx, obj))
		}
		var list corev1.ConfigMapList
		check(c.List(ctx, &list, client.InNamespace("default"), client.MatchingLabels{"app": "web"}))
		fmt.Println(len(list.Items))
	})
	// Output: 2
}

// A long list can be read in pages.
func ExampleLimit() {
	withClient(func(ctx context.Context, c client.Client) {
		for i := range 5 {
			check(c.Create(ctx, exampleConfigMap(fmt.Sprintf("page-%d", i), nil)))
		}
		var page corev1.ConfigMapList
		for {
			check(c.List(ctx, &page, client.InNamespace("default"), client.Limit(2), client.Continue(page.Continue)))
			fmt.Println(len(page.Items))
			if page.Continue == "" {
				return
			}
		}
	})
	// Output:
	// 2
	// 2
	// 1
}

// A merge patch sends what has changed since a copy was made.
func ExampleMergeFrom() {
	withClient(func(ctx context.Context, c client.Client) {
		settings := exampleConfigMap("settings", map[string]string{"color": "red", "size": "big"})
		check(c.Create(ctx, settings))

		before := settings.DeepCopy()
		settings.Data["color"] = "blue"
		patch := client.MergeFrom(before)
		data, err := patch.Data(settings)
		check(err)
		fmt.Println(string(data))

		check(c.Patch(ctx, settings, patch))
		fmt.Println(settings.Data)
	})
	// Output:
	// {"data":{"color":"blue"}}
	// map[color:blue size:big]
}

// With an optimistic lock a patch fails if the object has changed since it was read.
func ExampleOptimisticLock() {
	withClient(func(ctx context.Context, c client.Client) {
		settings := exampleConfigMap("settings", map[string]string{"color": "red"})
		check(c.Create(ctx, settings))
		before := settings.DeepCopy()

		settings.Data["color"] = "green" // another writer is faster
		check(c.Update(ctx, settings))

		after := before.DeepCopy()
		after.Data["color"] = "blue"
		err := c.Patch(ctx, after, client.MergeFrom(before, client.OptimisticLock))
		fmt.Println("conflict:", apierrors.IsConflict(err))
	})
	// Output: conflict: true
}

// Apply claims the fields that it sends. A field of another owner is a conflict unless
// it is taken over by force.
func ExampleForceOwnership() {
	withClient(func(ctx context.Context, c client.Client) {
		check(c.Apply(ctx, exampleConfigMap("settings", map[string]string{"color": "red"}), client.FieldOwner("ann")))

		err := c.Apply(ctx, exampleConfigMap("settings", map[string]string{"color": "blue"}), client.FieldOwner("ben"))
		fmt.Println("conflict:", apierrors.IsConflict(err))

		taken := exampleConfigMap("settings", map[string]string{"color": "blue"})
		check(c.Apply(ctx, taken, client.FieldOwner("ben"), client.ForceOwnership))
		fmt.Println(taken.Data["color"])
	})
	// Output:
	// conflict: true
	// blue
}

// The status is a subresource: a write of the object leaves it alone.
func ExampleStatusWriter() {
	withClient(func(ctx context.Context, c client.Client) {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "nginx"}}},
		}
		check(c.Create(ctx, pod))
		pod.Status.Phase = corev1.PodRunning
		check(c.Status().Update(ctx, pod))
		check(c.Get(ctx, client.ObjectKeyFromObject(pod), pod))
		fmt.Println(pod.Status.Phase)
	})
	// Output: Running
}

// A subresource with a type of its own is read into a second object.
func ExampleSubResourceClient() {
	withClient(func(ctx context.Context, c client.Client) {
		labels := map[string]string{"app": "web"}
		set := &appsv1.ReplicaSet{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
			Spec: appsv1.ReplicaSetSpec{
				Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: labels},
					Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "nginx"}}},
				},
			},
		}
		check(c.Create(ctx, set))

		var scale autoscalingv1.Scale
		check(c.SubResource("scale").Get(ctx, set, &scale))
		scale.Spec.Replicas = 3
		check(c.SubResource("scale").Update(ctx, set, client.WithSubResourceBody(&scale)))

		check(c.Get(ctx, client.ObjectKeyFromObject(set), set))
		fmt.Println(*set.Spec.Replicas)
	})
	// Output: 3
}

// Kinds without a Go type are unstructured.
func ExampleNewUnstructured() {
	withClient(func(ctx context.Context, c client.Client) {
		obj := client.NewUnstructured(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
		obj.SetNamespace("default")
		obj.SetName("settings")
		check(unstructured.SetNestedField(obj.Object, "red", "data", "color"))
		check(c.Create(ctx, obj))

		color, _, err := unstructured.NestedString(obj.Object, "data", "color")
		fmt.Println(obj.GetKind(), color, err)
	})
	// Output: ConfigMap red <nil>
}

// A metadata-only object is read and watched without its content.
func ExampleNewMetadata() {
	withClient(func(ctx context.Context, c client.Client) {
		obj := exampleConfigMap("settings", map[string]string{"color": "red"})
		obj.Labels = map[string]string{"app": "web"}
		check(c.Create(ctx, obj))

		meta := client.NewMetadata(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
		check(c.Get(ctx, client.ObjectKeyFromObject(obj), meta))
		fmt.Println(meta.Kind, meta.Labels)
	})
	// Output: ConfigMap map[app:web]
}

// A dry run validates and defaults an object, and stores nothing.
func ExampleDryRunAll() {
	withClient(func(ctx context.Context, c client.Client) {
		obj := exampleConfigMap("settings", nil)
		check(c.Create(ctx, obj, client.DryRunAll))
		err := c.Get(ctx, client.ObjectKeyFromObject(obj), obj)
		fmt.Println(client.IgnoreNotFound(err) == nil, apierrors.IsNotFound(err))
	})
	// Output: true true
}

// A missing object is often no error.
func ExampleIgnoreNotFound() {
	withClient(func(ctx context.Context, c client.Client) {
		err := c.Delete(ctx, exampleConfigMap("gone", nil))
		fmt.Println(err)
		fmt.Println(client.IgnoreNotFound(err))
	})
	// Output:
	// delete ConfigMap default/gone: configmaps "gone" not found
	// <nil>
}

// Preconditions delete an object only as it was read.
func ExamplePreconditionsOf() {
	withClient(func(ctx context.Context, c client.Client) {
		read := exampleConfigMap("settings", nil)
		check(c.Create(ctx, read))
		changed := read.DeepCopy()
		changed.Data = map[string]string{"color": "red"}
		check(c.Update(ctx, changed))

		err := c.Delete(ctx, read, client.PreconditionsOf(read))
		fmt.Println("conflict:", apierrors.IsConflict(err))
	})
	// Output: conflict: true
}

// DeleteAllOf deletes what its options select.
func ExampleDeleteAllOfOption() {
	withClient(func(ctx context.Context, c client.Client) {
		for i := range 3 {
			obj := exampleConfigMap(fmt.Sprintf("cm-%d", i), nil)
			obj.Labels = map[string]string{"odd": fmt.Sprint(i%2 == 1)}
			check(c.Create(ctx, obj))
		}
		check(c.DeleteAllOf(ctx, &corev1.ConfigMap{}, client.InNamespace("default"), client.MatchingLabels{"odd": "false"}))
		var left corev1.ConfigMapList
		check(c.List(ctx, &left, client.InNamespace("default"), client.HasLabels{"odd"}))
		fmt.Println(len(left.Items), left.Items[0].Name)
	})
	// Output: 1 cm-1
}

// The key of an object in no namespace has no slash in a message.
func ExampleFormatKey() {
	fmt.Println(client.FormatKey(client.ObjectKey{Namespace: "default", Name: "web"}))
	fmt.Println(client.FormatKey(client.ObjectKey{Name: "acme"}))
	// Output:
	// default/web
	// acme
}
