// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/steer-dev/steer/cache"
	"github.com/steer-dev/steer/client"
)

// loseUpdate writes name so that only the server knows what has become of it.
func (r *rig) loseUpdate(t *testing.T, name, value string) {
	t.Helper()
	r.lose(t, func() error {
		return r.client.Update(context.Background(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}, Data: v(value)})
	})
}

// lose writes so that the answer gets lost.
func (r *rig) lose(t *testing.T, write func() error) {
	t.Helper()
	r.server.LoseAnswers(true)
	defer r.server.LoseAnswers(false)
	if err := write(); err == nil {
		t.Fatal("the answer has arrived")
	}
}

// reads is how often the server has been read.
func (r *rig) reads() (n int) {
	for _, request := range r.server.Requests() {
		if strings.HasPrefix(request, http.MethodGet) && strings.Contains(request, "/configmaps") && !strings.Contains(request, "watch=") {
			n++
		}
	}
	return n
}

// askOnce reads so often, and fails if any read but the first asks the server.
func (r *rig) askOnce(t *testing.T, times int, read func()) {
	t.Helper()
	for i := range times {
		before := r.reads()
		read()
		if n := r.reads() - before; i > 0 && n != 0 {
			t.Fatalf("read %d asks the server %d times, want none", i, n)
		}
	}
}

func TestListByAnIndexAsksTheServerForWhatItCanSelect(t *testing.T) {
	inBubble(t, cache.Options{}, func(t *testing.T, r *rig) {
		ctx := context.Background()
		for _, name := range []string{"a", "b", "c"} {
			r.server.Put("configmaps", "default", name, v("1"), nil)
		}
		r.informer(&corev1.ConfigMap{})
		if err := r.cache.IndexField(&corev1.ConfigMap{}, "data", func(obj client.Object) []string { return []string{obj.(*corev1.ConfigMap).Data["v"]} }); err != nil {
			t.Fatal(err)
		}
		r.start()
		r.synced()
		synctest.Wait()
		r.server.Hold(true)
		var page corev1.ConfigMapList
		if err := r.client.List(ctx, &page, client.Limit(1)); err != nil || page.Continue == "" {
			t.Fatalf("first page: %v, continue %q", err, page.Continue)
		}
		r.loseUpdate(t, "b", "2")
		r.loseUpdate(t, "none", "2")
		var l corev1.ConfigMapList
		if err := r.client.List(ctx, &l, client.MatchingFields{"data": "2"}); err != nil || len(l.Items) != 1 || l.Items[0].Name != "b" {
			t.Fatalf("by index: %v, %v", l.Items, err)
		}
		r.loseUpdate(t, "c", "3")
		if err := r.client.List(ctx, &l, client.Continue(page.Continue)); err != nil || len(l.Items) != 2 || l.Items[1].Data["v"] != "3" {
			t.Fatalf("second page: %v, %v", l.Items, err)
		}
		before := r.reads()
		if err := r.client.List(ctx, &l); err != nil || len(l.Items) != 3 {
			t.Fatalf("list: %v, %v", l.Items, err)
		}
		if n := r.reads() - before; n != 0 {
			t.Fatalf("%d reads of the server once it has been asked, want none", n)
		}
	})
}

func TestWhatIsMissingIsAskedForOnce(t *testing.T) {
	inBubble(t, cache.Options{}, func(t *testing.T, r *rig) {
		ctx := context.Background()
		inf := r.informer(&corev1.ConfigMap{})
		lister, err := cache.NewLister[*corev1.ConfigMap](r.cache)
		if err != nil {
			t.Fatal(err)
		}
		r.start()
		r.synced()
		synctest.Wait()
		r.server.Put("configmaps", "default", "z", v("1"), nil)
		r.server.Hold(true)
		r.server.Delete("configmaps", "default", "z") // so that the watch is behind
		r.loseUpdate(t, "a", "2")
		r.askOnce(t, 3, func() {
			if err := r.client.Get(ctx, key("a"), &corev1.ConfigMap{}); !apierrors.IsNotFound(err) {
				t.Fatalf("got %v, want NotFound", err)
			}
		})
		if _, err := lister.All(ctx); err != nil {
			t.Fatal(err)
		}
		r.server.Hold(false)
		synctest.Wait()
		if st := inf.Status(); st.Overlay != 0 {
			t.Fatalf("status %+v, want no overlay", st)
		}
	})
}

func TestWhatTheSelectorRejectsIsNotFoundThoughTheServerHasIt(t *testing.T) {
	for name, kind := range map[string]cache.KindOptions{
		"a label": {Labels: labels.SelectorFromSet(labels.Set{"app": "x"})},
		"a name":  {Fields: fields.OneTermEqualSelector("metadata.name", "b")},
	} {
		t.Run(name, func(t *testing.T) {
			kind.Object = &corev1.ConfigMap{}
			inBubble(t, cache.Options{ByKind: []cache.KindOptions{kind}}, func(t *testing.T, r *rig) {
				r.informer(&corev1.ConfigMap{})
				r.start()
				r.synced()
				synctest.Wait()
				r.server.Hold(true)
				r.server.Put("configmaps", "default", "a", v("1"), nil)
				r.loseUpdate(t, "a", "2")
				r.askOnce(t, 2, func() {
					if err := r.client.Get(context.Background(), key("a"), &corev1.ConfigMap{}); !apierrors.IsNotFound(err) {
						t.Fatalf("got %v, want NotFound", err)
					}
				})
			})
		})
	}
}

// TestWhatTheServerSelectsIsAskedForOnce is about a selection by a field of which only the
// server knows the value.
func TestWhatTheServerSelectsIsAskedForOnce(t *testing.T) {
	kind := cache.KindOptions{Object: &widget{}, Fields: fields.OneTermEqualSelector("spec.color", "red")}
	inBubble(t, cache.Options{ByKind: []cache.KindOptions{kind}}, func(t *testing.T, r *rig) {
		ctx := context.Background()
		r.server.ServeWidgets(true)
		r.informer(&widget{})
		r.start()
		r.synced()
		synctest.Wait()
		r.server.Hold(true)
		for _, color := range []string{"red", "blue"} {
			w := &widget{ObjectMeta: metav1.ObjectMeta{Name: color, Namespace: "default"}, Spec: widgetSpec{Color: color}}
			r.lose(t, func() error { return r.client.Create(ctx, w) })
			before := len(r.server.Requests())
			for i := range 2 {
				var got widget
				switch err := r.client.Get(ctx, key(color), &got); {
				case color == "red" && (err != nil || got.Spec.Color != color):
					t.Errorf("read %d: %v, %v", i, got.Spec, err)
				case color == "blue" && !apierrors.IsNotFound(err):
					t.Errorf("read %d of what is not selected: %v, %v", i, got.Spec, err)
				}
			}
			if n := len(r.server.Requests()) - before; n != 1 {
				t.Errorf("%s: %d requests for two reads, want one", color, n)
			}
		}
	})
}

// TestDeletionOfAllIsNotForgottenWithItsAnswer reads what may be gone.
func TestDeletionOfAllIsNotForgottenWithItsAnswer(t *testing.T) {
	inBubble(t, cache.Options{}, func(t *testing.T, r *rig) {
		ctx := context.Background()
		r.server.Put("configmaps", "default", "a", v("1"), nil)
		r.informer(&corev1.ConfigMap{})
		r.start()
		r.synced()
		synctest.Wait()
		r.server.Hold(true)
		r.lose(t, func() error { return r.client.DeleteAllOf(ctx, &corev1.ConfigMap{}, client.InNamespace("default")) })
		if err := r.client.Get(ctx, key("a"), &corev1.ConfigMap{}); !apierrors.IsNotFound(err) {
			t.Errorf("got %v, want NotFound", err)
		}
	})
}

func TestTerseDeletionOfAllHidesWhatItMayHaveDeleted(t *testing.T) {
	inBubble(t, cache.Options{}, func(t *testing.T, r *rig) {
		ctx := context.Background()
		for _, name := range []string{"a", "b"} {
			r.server.Put("configmaps", "default", name, v("1"), nil)
		}
		r.informer(&corev1.ConfigMap{})
		r.start()
		r.synced()
		synctest.Wait()
		r.server.Hold(true)
		r.server.Delete("configmaps", "default", "b")
		r.server.Put("configmaps", "default", "b", v("another incarnation"), nil)
		r.loseUpdate(t, "a", "2") // a list does not know
		r.server.AnswerTersely(true)
		if err := r.client.DeleteAllOf(ctx, &corev1.ConfigMap{}, client.InNamespace("default")); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"a", "b"} {
			if err := r.client.Get(ctx, key(name), &corev1.ConfigMap{}); !apierrors.IsNotFound(err) {
				t.Fatalf("%s: %v, want NotFound", name, err)
			}
		}
	})
}
