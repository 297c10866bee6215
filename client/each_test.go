// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/client/interceptor"
	"github.com/steer-dev/steer/steertest"
)

// TestEachSeesEveryCall makes each call of a client once, through a function
// that notes it and one that refuses it.
func TestEachSeesEveryCall(t *testing.T) {
	t.Parallel()
	scheme, err := client.NewScheme(corev1.AddToScheme)
	if err != nil {
		t.Fatal(err)
	}
	env := steertest.New(t, steertest.Options{Scheme: scheme})
	var seen []string
	refused := errors.New("refused")
	refuse := false
	c := interceptor.New(env.Client, interceptor.Each(func(_ context.Context, call client.Call, do func() error) error {
		seen = append(seen, strings.TrimSpace(strings.Join([]string{string(call.Verb), call.GVK.Kind, call.Key.Name, call.SubResource}, " ")))
		if refuse {
			return refused
		}
		return do()
	}))
	ctx := t.Context()
	pod := func() *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "nginx"}}},
		}
	}
	patch := client.RawPatch(types.MergePatchType, []byte(`{}`))
	owner := client.FieldOwner("test")
	all := func() []error {
		watch, watched := c.Watch(ctx, &corev1.PodList{}, client.InNamespace("default"))
		if watch != nil {
			watch.Stop()
		}
		created := pod()
		return []error{
			watched,
			c.Create(ctx, created),
			c.Get(ctx, client.ObjectKeyFromObject(pod()), pod()),
			c.List(ctx, &corev1.PodList{}),
			c.Update(ctx, created),
			c.Patch(ctx, pod(), patch),
			c.Apply(ctx, pod(), owner, client.ForceOwnership),
			c.Status().Patch(ctx, pod(), patch),
			c.Status().Update(ctx, pod()),
			c.Status().Apply(ctx, pod(), owner, client.ForceOwnership),
			c.SubResource("status").Get(ctx, pod(), pod()),
			c.Delete(ctx, pod()),
			c.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace("default")),
			c.SubResource("eviction").Create(ctx, pod(), pod()),
		}
	}
	want := []string{
		"watch Pod", "create Pod a", "get Pod a", "list Pod", "update Pod a", "patch Pod a", "apply Pod a",
		"patch Pod a status", "update Pod a status", "apply Pod a status", "get Pod a status",
		"delete Pod a", "deletecollection Pod", "create Pod a eviction",
	}
	for i, err := range all()[:13] { // the last call has nothing left to evict
		if err != nil {
			t.Errorf("%s: %v", want[i], err)
		}
	}
	if !slices.Equal(seen, want) {
		t.Errorf("seen %q\nwant %q", seen, want)
	}
	refuse = true
	for i, err := range all() {
		if !errors.Is(err, refused) {
			t.Errorf("%s: %v, want what the function returned", want[i], err)
		}
	}
}
