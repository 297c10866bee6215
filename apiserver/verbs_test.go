// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/steer-dev/steer/apiserver"
	"github.com/steer-dev/steer/apiserver/resource"
)

func mustCreate(t testing.TB, c dynamic.ResourceInterface, u *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	out, err := c.Create(t.Context(), u, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestGraceCanOnlyBecomeShorter(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	graceful := configMapResource()
	graceful.Deletion.Grace = func(_ resource.Object, asked *int64) int64 {
		if asked != nil {
			return *asked
		}
		return 30
	}
	if err := s.Install(graceful); err != nil {
		t.Fatal(err)
	}
	rt := s.RoundTripper(admin)
	const path = "/api/v1/namespaces/default/configmaps"
	raw(t, rt, http.MethodPost, path, []byte(`{"metadata":{"name":"a"}}`))
	for _, step := range []struct{ query, want string }{
		{"", `"deletionGracePeriodSeconds":30`}, {"?gracePeriodSeconds=60", `"deletionGracePeriodSeconds":30`},
		{"?gracePeriodSeconds=5", `"deletionGracePeriodSeconds":5`}, {"?gracePeriodSeconds=0", `"status":"Success"`},
	} {
		if got := send(t, rt, http.MethodDelete, path+"/a"+step.query, ""); got.code != 200 || !strings.Contains(got.body, step.want) {
			t.Errorf("delete%s: %d %s, want %s", step.query, got.code, got.body, step.want)
		}
	}
}

func TestGeneratedNamesAvoidThoseInUse(t *testing.T) {
	t.Parallel()
	stuck := &stuckEntropy{Entropy: apiserver.SeededEntropy(1)}
	c := dynamicClient(t, newServer(t, func(o *apiserver.Options) { o.Entropy = stuck })).Resource(widgets).Namespace("default")
	long := widget("", func(u *unstructured.Unstructured) { u.SetGenerateName(strings.Repeat("a", 70)) })
	first := mustCreate(t, c, long)
	if !regexp.MustCompile("^a{58}[bcdfghjklmnpqrstvwxz2456789]{5}$").MatchString(first.GetName()) {
		t.Errorf("generated name %q", first.GetName())
	}
	stuck.same = first.GetName()[58:]
	_, err := c.Create(t.Context(), long, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) || stuck.asked != 8 {
		t.Errorf("after %d attempts: %v", stuck.asked, err)
	}
	if seconds, _ := apierrors.SuggestsClientDelay(err); seconds != 1 {
		t.Errorf("retry after %d", seconds)
	}
}

// stuckEntropy returns the same suffix once it is set.
type stuckEntropy struct {
	apiserver.Entropy
	same  string
	asked int
}

func (e *stuckEntropy) Suffix(n int) string {
	if e.same == "" {
		return e.Entropy.Suffix(n)
	}
	e.asked++
	return e.same
}

func TestObjectsAreServedInEveryVersion(t *testing.T) {
	t.Parallel()
	client := dynamicClient(t, newServer(t))
	v1 := client.Resource(widgets).Namespace("default")
	v2 := client.Resource(schema.GroupVersionResource{Group: "example.com", Version: "v2", Resource: "widgets"}).Namespace("default")
	mustCreate(t, v2, widget("a", func(u *unstructured.Unstructured) { u.SetAPIVersion("example.com/v2") }))
	for want, c := range map[string]dynamic.ResourceInterface{"example.com/v1": v1, "example.com/v2": v2} {
		one, err := c.Get(t.Context(), "a", metav1.GetOptions{})
		if err != nil || one.GetAPIVersion() != want {
			t.Errorf("get: %v, %v", one, err)
		}
		list, err := c.List(t.Context(), metav1.ListOptions{})
		if err != nil || list.GetAPIVersion() != want || list.Items[0].GetAPIVersion() != want {
			t.Errorf("list: %v, %v", list, err)
		}
		if _, err := c.Patch(t.Context(), "a", types.MergePatchType, []byte(`{"spec":{"by":"`+want+`"}}`), metav1.PatchOptions{}); err != nil {
			t.Error(err)
		}
	}
}

// TestWritersNeverLoseUpdates: concurrent read-modify-write loops add up, and patches
// without a resourceVersion never conflict.
func TestWritersNeverLoseUpdates(t *testing.T) {
	t.Parallel()
	c := dynamicClient(t, newServer(t)).Resource(widgets).Namespace("default")
	mustCreate(t, c, widget("a"))
	var wg sync.WaitGroup
	const workers, rounds = 4, 20
	for worker := range workers {
		wg.Go(func() {
			for range rounds {
				for done := false; !done; {
					u, err := c.Get(t.Context(), "a", metav1.GetOptions{})
					if err != nil {
						t.Error(err)
						return
					}
					n, _, _ := unstructured.NestedInt64(u.Object, "spec", "count")
					_ = unstructured.SetNestedField(u.Object, n+1, "spec", "count")
					_, err = c.Update(t.Context(), u, metav1.UpdateOptions{})
					if done = err == nil; !done && !apierrors.IsConflict(err) {
						t.Error(err)
						return
					}
				}
				if _, err := c.Patch(t.Context(), "a", types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{"w%d":"x"}}}`, worker), metav1.PatchOptions{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	u, err := c.Get(t.Context(), "a", metav1.GetOptions{})
	if n, _, _ := unstructured.NestedInt64(u.Object, "spec", "count"); err != nil || n != workers*rounds || len(u.GetAnnotations()) != workers {
		t.Errorf("%d updates left %d, %v", workers*rounds, n, err)
	}
}
