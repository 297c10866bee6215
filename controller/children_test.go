// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/controller"
)

// pages is the reconciler of the tests: one ConfigMap per page.
func pages(set controller.Children[*corev1.ConfigMap]) controller.Func[*Web] {
	return func(ctx context.Context, w *Web) (controller.Result, error) {
		var desired []*corev1.ConfigMap
		for _, page := range w.Spec.Pages {
			desired = append(desired, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: page}, Data: map[string]string{"page": page}})
		}
		if err := set.Apply(ctx, w, desired); err != nil {
			return controller.Result{}, err
		}
		w.Status.Ready = len(desired)
		for _, c := range desired {
			if c.UID == "" {
				return controller.Result{}, errors.New("a child is not what the server has")
			}
		}
		return controller.Done(), nil
	}
}

func (m *fake) configMaps(t *testing.T) (names []string) {
	t.Helper()
	var list corev1.ConfigMapList
	if err := m.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	for _, c := range list.Items {
		names = append(names, c.Name)
	}
	return names
}

func withPages(pages ...string) *Web {
	w := web("a")
	w.Spec.Pages = pages
	return w
}

const annotation = controller.InventoryAnnotation + "web.configmap"

func TestChildrenAreAppliedOwnedAndPruned(t *testing.T) {
	t.Parallel()
	run(t, pages(controller.Children[*corev1.ConfigMap]{}), func(t *testing.T, m *fake) {
		m.create(t, withPages("one", "two"))
		synctest.Wait()
		// The inventory is written after the children, of which it has an owner's name
		// to find them by, and the status last.
		if diff := cmp.Diff([]string{"apply ConfigMap one", "apply ConfigMap two", "patch Web a", "patch Web/status a"}, m.log()); diff != "" {
			t.Error(diff)
		}
		w := m.web(t, "a")
		if got := w.Annotations[annotation]; got != `["/v1/ConfigMap/default/one","/v1/ConfigMap/default/two"]` {
			t.Errorf("inventory %s", got)
		}
		var one corev1.ConfigMap
		if err := m.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "one"}, &one); err != nil {
			t.Fatal(err)
		}
		if ref := metav1.GetControllerOf(&one); ref == nil || ref.UID != w.UID || ref.Kind != "Web" || ref.APIVersion != "example.com/v1" {
			t.Errorf("owner %+v", ref)
		}

		m.forgetLog()
		m.update(t, "a", func(w *Web) { w.Spec.Pages = []string{"two", "three"} })
		synctest.Wait()
		want := []string{"apply ConfigMap three", "delete ConfigMap one", "patch Web a", "patch Web/status a"}
		if diff := cmp.Diff(want, m.log()); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]string{"three", "two"}, m.configMaps(t)); diff != "" {
			t.Error(diff)
		}
		if got := m.web(t, "a").Status; got.Ready != 2 || got.ObservedGeneration != 2 {
			t.Errorf("%+v", got)
		}
	}, controller.Owns[*corev1.ConfigMap]())
}

// fourSets reconciles a Web with four sets of children.
func fourSets() (reconcile controller.Func[*Web], cleanup func(context.Context, *Web) (controller.FinalizerResult, error)) {
	var sets []controller.Children[*corev1.ConfigMap]
	for _, name := range []string{"one", "two", "three", "four"} {
		sets = append(sets, controller.Children[*corev1.ConfigMap]{Name: name})
	}
	reconcile = func(ctx context.Context, w *Web) (controller.Result, error) {
		for _, set := range sets {
			var desired []*corev1.ConfigMap
			if slices.Contains(w.Spec.Pages, set.Name) {
				desired = []*corev1.ConfigMap{{ObjectMeta: metav1.ObjectMeta{Name: set.Name}}}
			}
			if err := set.Apply(ctx, w, desired); err != nil {
				return controller.Result{}, err
			}
		}
		w.Status.Ready = len(w.Spec.Pages)
		return controller.Done(), nil
	}
	cleanup = func(ctx context.Context, w *Web) (controller.FinalizerResult, error) {
		for _, set := range sets {
			if result, err := set.Delete(ctx, w); err != nil || !result.Done() {
				return result, err
			}
		}
		return controller.Finalized(), nil
	}
	return reconcile, cleanup
}

func TestTheSetsOfAnAttemptWriteTheirInventoriesInOnePatch(t *testing.T) {
	t.Parallel()
	reconcile, cleanup := fourSets()
	run(t, reconcile, func(t *testing.T, m *fake) {
		w := withPages("one", "two", "three", "four")
		m.create(t, w)
		synctest.Wait()
		want := []string{
			"patch Web a", // the finalizer
			"apply ConfigMap one", "apply ConfigMap two", "apply ConfigMap three", "apply ConfigMap four",
			"patch Web a", "patch Web/status a",
		}
		if diff := cmp.Diff(want, m.log()); diff != "" {
			t.Error(diff)
		}
		m.forgetLog()
		m.update(t, "a", func(w *Web) { w.Spec.Pages = []string{"four"} })
		synctest.Wait()
		want = []string{"delete ConfigMap one", "delete ConfigMap two", "delete ConfigMap three", "patch Web a", "patch Web/status a"}
		if diff := cmp.Diff(want, m.log()); diff != "" {
			t.Error(diff)
		}
		m.delete(t, w)
		time.Sleep(time.Minute)
		synctest.Wait()
		if diff := cmp.Diff([]string{"delete ConfigMap four", "patch Web a"}, m.log()); diff != "" || !m.gone("a") {
			t.Errorf("a deletion writes more of the owner than the end of its finalizer: %s", diff)
		}
	}, controller.Owns[*corev1.ConfigMap](), controller.Finalizer("example.com/children", cleanup))
}

// TestChildrenThatNoInventoryListsArePruned loses the patch of the inventories, as when
// an operator is killed, until a child is not desired any more.
func TestChildrenThatNoInventoryListsArePruned(t *testing.T) {
	t.Parallel()
	reconcile, _ := fourSets()
	var mended atomic.Bool
	runOn(t, func(_ *testing.T, m *fake) {
		m.intercept = func(verb client.Verb, kind string, _ client.ObjectKey, sub string) error {
			if verb == client.VerbPatch && kind == "Web" && sub == "" && !mended.Load() {
				return errors.New("connection lost")
			}
			return nil
		}
	}, reconcile, func(t *testing.T, m *fake) {
		m.create(t, withPages("one", "two"))
		synctest.Wait()
		m.update(t, "a", func(w *Web) { w.Spec.Pages = []string{"two"} })
		mended.Store(true)
		time.Sleep(time.Minute)
		synctest.Wait()
		if diff := cmp.Diff([]string{"two"}, m.configMaps(t)); diff != "" {
			t.Error(diff)
		}
		if w := m.web(t, "a"); w.Annotations[controller.InventoryAnnotation+"web.one"] != "" || w.Annotations[controller.InventoryAnnotation+"web.two"] == "" {
			t.Errorf("the inventories are %v", w.Annotations)
		}
	}, controller.Owns[*corev1.ConfigMap]())
}

// TestAChildThatAppearsLateIsPruned is a new leader whose cache was behind: a former
// leader has created a child and ended before it was listed.
func TestAChildThatAppearsLateIsPruned(t *testing.T) {
	t.Parallel()
	run(t, pages(controller.Children[*corev1.ConfigMap]{}), func(t *testing.T, m *fake) {
		w := withPages("one")
		m.create(t, w)
		synctest.Wait()
		late := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "late", Annotations: map[string]string{controller.AppliedAnnotation: "web.configmap/1"},
		}}
		if err := controller.SetOwner(w, schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Web"}, late); err != nil {
			t.Fatal(err)
		}
		m.create(t, late)
		synctest.Wait()
		if diff := cmp.Diff([]string{"one"}, m.configMaps(t)); diff != "" {
			t.Error(diff)
		}
	}, controller.Owns[*corev1.ConfigMap]())
}

func TestChildrenThatAnotherClientChangedAreMended(t *testing.T) {
	t.Parallel()
	run(t, pages(controller.Children[*corev1.ConfigMap]{}), func(t *testing.T, m *fake) {
		m.create(t, withPages("one"))
		synctest.Wait()
		var one corev1.ConfigMap
		key := client.ObjectKey{Namespace: "default", Name: "one"}
		if err := m.Get(t.Context(), key, &one); err != nil {
			t.Fatal(err)
		}
		one.Data["page"] = "vandalised"
		if err := m.Update(t.Context(), &one); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if err := m.Get(t.Context(), key, &one); err != nil || one.Data["page"] != "one" {
			t.Errorf("%v %v", one.Data, err)
		}
		m.delete(t, &one)
		synctest.Wait()
		if diff := cmp.Diff([]string{"one"}, m.configMaps(t)); diff != "" {
			t.Error(diff)
		}
	}, controller.Owns[*corev1.ConfigMap]())
}

func TestNothingIsPrunedBeforeEverythingIsApplied(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newFake()
		var mended atomic.Bool
		m.intercept = func(verb client.Verb, _ string, key client.ObjectKey, _ string) error {
			if !mended.Load() && verb == client.VerbApply && key.Name == "two" {
				return errors.New("quota exceeded")
			}
			return nil
		}
		if err := controller.Add(m, pages(controller.Children[*corev1.ConfigMap]{}), controller.Owns[*corev1.ConfigMap]()); err != nil {
			t.Fatal(err)
		}
		m.start(t)
		defer m.end()
		m.create(t, withPages("one"))
		synctest.Wait()
		m.update(t, "a", func(w *Web) { w.Spec.Pages = []string{"two"} })
		synctest.Wait()
		if diff := cmp.Diff([]string{"one"}, m.configMaps(t)); diff != "" {
			t.Error(diff)
		}
		if got := m.web(t, "a").Annotations[annotation]; !strings.Contains(got, "one") || !strings.Contains(got, "two") {
			t.Errorf("inventory %s", got)
		}
		mended.Store(true)
		time.Sleep(time.Minute)
		synctest.Wait()
		if diff := cmp.Diff([]string{"two"}, m.configMaps(t)); diff != "" {
			t.Error(diff)
		}
	})
}

func TestOnlyOwnChildrenAreTouched(t *testing.T) {
	t.Parallel()
	yes := true
	run(t, pages(controller.Children[*corev1.ConfigMap]{}), func(t *testing.T, m *fake) {
		theirs := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "theirs", OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "v1", Kind: "Other", Name: "x", UID: "foreign", Controller: &yes},
		}}}
		m.create(t, theirs)
		w := withPages("theirs")
		m.create(t, w)
		synctest.Wait()
		if r := m.records()[0]; !strings.Contains(r.Error, "ConfigMap default/theirs: it exists and has another controlling owner") {
			t.Error(r.Error)
		}
		// It is in the inventory, but it was never ours: it is not deleted.
		m.update(t, "a", func(w *Web) { w.Spec.Pages = nil })
		synctest.Wait()
		if diff := cmp.Diff([]string{"theirs"}, m.configMaps(t)); diff != "" {
			t.Error(diff)
		}
		if got, ok := m.web(t, "a").Annotations[annotation]; ok {
			t.Errorf("inventory %s", got)
		}
	})
}

// behind is a manager whose cache still shows a child of an owner that has gone,
// until the server has been asked.
type behind struct {
	*fake
	stale corev1.ConfigMap
	asked atomic.Bool
}

func (b *behind) Deps() controller.Deps {
	deps := b.fake.Deps()
	deps.Client = staleReads{b.server, b}
	return deps
}

type staleReads struct {
	*server
	behind *behind
}

func (s staleReads) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if child, ok := obj.(*corev1.ConfigMap); ok && key == client.ObjectKeyFromObject(&s.behind.stale) && !s.behind.asked.Load() {
		if !client.ResolveGet(opts).Live {
			s.behind.stale.DeepCopyInto(child)
			return nil
		}
		s.behind.asked.Store(true)
	}
	return s.server.Get(ctx, key, obj, opts...)
}

func TestAChildOfAFormerOwnerInTheCacheIsCheckedWithTheServer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		yes := true
		b := &behind{fake: newFake(), stale: corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "one", UID: "old", OwnerReferences: []metav1.OwnerReference{
				{APIVersion: "example.com/v1", Kind: "Web", Name: "a", UID: "former", Controller: &yes},
			},
		}}}
		if err := controller.Add(b, pages(controller.Children[*corev1.ConfigMap]{}), controller.Owns[*corev1.ConfigMap]()); err != nil {
			t.Fatal(err)
		}
		b.start(t)
		defer b.end()
		b.create(t, withPages("one"))
		synctest.Wait()
		if !b.asked.Load() {
			t.Error("the server was not asked")
		}
		if diff := cmp.Diff([]string{"one"}, b.configMaps(t)); diff != "" {
			t.Error(diff)
		}
		for _, r := range b.records() {
			if r.Error != "" {
				t.Error(r)
			}
		}
	})
}

func TestAFinalizerDeletesChildrenWithoutOwnerReference(t *testing.T) {
	t.Parallel()
	elsewhere := controller.Children[*corev1.ConfigMap]{Name: "elsewhere"}
	run(t, func(ctx context.Context, w *Web) (controller.Result, error) {
		return controller.Done(), elsewhere.Apply(ctx, w, []*corev1.ConfigMap{
			{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "far", Finalizers: []string{"example.com/slow"}}},
		})
	}, func(t *testing.T, m *fake) {
		w := web("a")
		m.create(t, w)
		synctest.Wait()
		var far corev1.ConfigMap
		key := client.ObjectKey{Namespace: "other", Name: "far"}
		if err := m.Get(t.Context(), key, &far); err != nil || len(far.OwnerReferences) != 0 || far.Annotations[controller.OwnerAnnotation] == "" {
			t.Fatalf("%v %+v", err, far.ObjectMeta)
		}
		m.delete(t, w)
		synctest.Wait()
		if m.gone("a") {
			t.Fatal("the owner went before its child")
		}
		if err := m.Get(t.Context(), key, &far); err != nil || far.DeletionTimestamp == nil {
			t.Fatalf("%v %+v", err, far.ObjectMeta)
		}
		far.Finalizers = nil
		if err := m.Update(t.Context(), &far); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if !m.gone("a") || !apierrors.IsNotFound(m.Get(t.Context(), key, &far)) {
			t.Error("something is left over", m.records())
		}
	}, controller.Finalizer("example.com/children", func(ctx context.Context, w *Web) (controller.FinalizerResult, error) {
		return elsewhere.Delete(ctx, w)
	}))
}

func TestChildrenRefuseMisuse(t *testing.T) {
	t.Parallel()
	var set controller.Children[*corev1.ConfigMap]
	if err := set.Apply(t.Context(), web("a"), nil); err == nil || !strings.Contains(err.Error(), "does not belong to a reconcile") {
		t.Error(err)
	}
	desired := map[string][]*corev1.ConfigMap{
		"has no name":      {{}},
		"is desired twice": {{ObjectMeta: metav1.ObjectMeta{Name: "x"}}, {ObjectMeta: metav1.ObjectMeta{Name: "x"}}},
	}
	run(t, func(ctx context.Context, w *Web) (controller.Result, error) {
		for want, children := range desired {
			if err := set.Apply(ctx, w, children); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("want %q, got %v", want, err)
			}
		}
		if err := set.Apply(ctx, web("b"), nil); err == nil || !strings.Contains(err.Error(), "must be the object that is being reconciled") {
			t.Error(err)
		}
		return controller.Wait(), nil
	}, func(t *testing.T, m *fake) {
		m.create(t, web("a"))
		synctest.Wait()
		if slices.Contains(m.log(), "apply ConfigMap x") {
			t.Error(m.log())
		}
	})
}

// TestChildrenWorkInAnAttemptWithoutAManager is how code with children is tested alone.
func TestChildrenWorkInAnAttemptWithoutAManager(t *testing.T) {
	t.Parallel()
	server := newServer(addWeb, corev1.AddToScheme)
	w := web("a")
	if err := server.Create(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	ctx, err := controller.NewAttempt(t.Context(), controller.Deps{Client: server}, "webs", w)
	if err != nil {
		t.Fatal(err)
	}
	var set controller.Children[*corev1.ConfigMap]
	page := func(name string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"page": name}}
	}
	apply := func(want ...string) {
		t.Helper()
		var desired []*corev1.ConfigMap
		for _, name := range want {
			desired = append(desired, page(name))
		}
		if err := set.Apply(ctx, w, desired); err != nil {
			t.Fatal(err)
		}
		var list corev1.ConfigMapList
		if err := server.List(ctx, &list); err != nil {
			t.Fatal(err)
		}
		var got []string
		for i := range list.Items {
			got = append(got, list.Items[i].Name)
			if !metav1.IsControlledBy(&list.Items[i], w) {
				t.Errorf("%s is not owned by the object of the attempt", list.Items[i].Name)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
	apply("one", "two")
	apply("two")
	if err := set.Apply(ctx, web("other"), nil); err == nil || !strings.Contains(err.Error(), "the object that is being reconciled") {
		t.Errorf("another owner: %v", err)
	}
	for range 2 {
		if result, err := set.Delete(ctx, w); err != nil {
			t.Fatal(err)
		} else if result.Done() {
			return
		}
	}
	t.Error("the children are not gone after two deletions")
}

func TestNewAttemptNeedsAClient(t *testing.T) {
	t.Parallel()
	if _, err := controller.NewAttempt(t.Context(), controller.Deps{}, "webs", web("a")); err == nil || !strings.Contains(err.Error(), "Deps.Client is required") {
		t.Errorf("without a client: %v", err)
	}
	if _, err := controller.NewAttempt(t.Context(), controller.Deps{Client: newServer(addWeb)}, "pods", &corev1.Pod{}); !client.IsUnregistered(err) {
		t.Errorf("an object of no scheme: %v", err)
	}
}
