// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package children_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/controller/internal/children"
)

func TestSetAppliesAChildOnlyWhenSomethingDiffers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	apply := func(text string) {
		t.Helper()
		child := page("a", text)
		if err := w.apply(w.set(), child); err != nil {
			t.Fatal(err)
		}
		if child.UID == "" || child.Data["text"] != text {
			t.Errorf("the child is not what the server has: %v", child)
		}
	}
	apply("one")
	w.expect("a new child", "apply a")
	apply("one")
	w.expect("the same child")
	apply("two")
	w.expect("another body", "apply a")
	w.change("a", func(c *corev1.ConfigMap) { c.Data["text"] = "theirs" })
	apply("two")
	w.expect("a field that another client changed", "apply a")
	w.change("a", func(c *corev1.ConfigMap) { c.Labels = map[string]string{"their": "label"} })
	apply("two")
	w.expect("a field that is not in the body")
	if got := w.stored("a"); got.Data["text"] != "two" || !metav1.IsControlledBy(got, w.owner) {
		t.Errorf("the server has %v", got)
	}
	if err := w.apply(w.set(func(s *children.Set) { s.FullName = "web.other" }), page("a", "two")); err != nil {
		t.Error(err)
	}
	w.expect("the same child in another set", "apply a")
}

func TestSetSettlesWithAServerThatKeepsSomethingElse(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const kept = "kept"
	w.alter = func(obj client.Object) { obj.(*corev1.ConfigMap).Data["text"] = kept }
	if err := w.apply(w.set(), page("a", "sent")); err != nil {
		t.Fatal(err)
	}
	w.expect("a deviation", "apply a", "apply a")
	w.alter = nil
	w.change("a", func(c *corev1.ConfigMap) { c.Data["text"] = kept }) // as a webhook leaves it
	if err := w.apply(w.set(), page("a", "sent")); err != nil {
		t.Fatal(err)
	}
	w.expect("the deviation that the mark has")
	w.alter = func(obj client.Object) { obj.(*corev1.ConfigMap).Data["text"] = kept }
	if err := w.apply(w.set(), page("a", "sent later")); err != nil {
		t.Fatal(err)
	}
	w.expect("another body that the server keeps as before", "apply a")
	w.alter = nil
	w.change("a", func(c *corev1.ConfigMap) { c.Data["text"] = "theirs" })
	if err := w.apply(w.set(), page("a", "sent")); err != nil {
		t.Fatal(err)
	}
	w.expect("another deviation", "apply a")
}

func TestSetAdoptsChildren(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	child := page("a", "x")
	child.Namespace = ""
	if at, err := w.set().Adopt(child); err != nil || at != ref("a") || !metav1.IsControlledBy(child, w.owner) || child.Annotations != nil {
		t.Errorf("in the namespace of the owner: %v, %v, %v", at, child, err)
	}
	child = page("a", "x")
	child.Namespace, child.Annotations = "other", map[string]string{"k": "v"}
	shared := child.Annotations
	if at, err := w.set().Adopt(child); err != nil || at.Key.Namespace != "other" || len(child.OwnerReferences) != 0 ||
		child.Annotations[children.OwnerAnnotation] != string(w.owner.UID) || child.Annotations["k"] != "v" || len(shared) != 1 {
		t.Errorf("in another namespace: %v, %v, %v", at, child, err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
	if at, err := w.set().Adopt(namespace); err != nil || at.Key.Namespace != "" || len(namespace.OwnerReferences) != 0 || namespace.Annotations[children.OwnerAnnotation] == "" {
		t.Errorf("in no namespace: %v, %v, %v", at, namespace, err)
	}
	clusterWide := w.set(func(s *children.Set) {
		s.Owner, s.OwnerGVK = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "9"}}, corev1.SchemeGroupVersion.WithKind("Node")
	})
	child = page("a", "x")
	if _, err := clusterWide.Adopt(child); err != nil || len(child.OwnerReferences) != 1 || child.OwnerReferences[0].Kind != "Node" {
		t.Errorf("of a cluster-scoped owner: %v, %v", child, err)
	}
	if _, err := w.set().Adopt(page("", "x")); err == nil || !strings.Contains(err.Error(), "children pages: a ConfigMap has no name") {
		t.Errorf("without a name: %v", err)
	}
	theirs := page("a", "x")
	theirs.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(configMap("other"), corev1.SchemeGroupVersion.WithKind("ConfigMap"))}
	theirs.OwnerReferences[0].UID = "7"
	if _, err := w.set().Adopt(theirs); err == nil || !strings.Contains(err.Error(), "a is controlled by ConfigMap other already") {
		t.Errorf("of another owner: %v", err)
	}
}

func TestSetRefusesChildrenOfOtherOwnersAndWaitsForDeletedOnes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other := configMap("other")
	w.Create(other)
	foreign := page("a", "theirs")
	foreign.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(other, corev1.SchemeGroupVersion.WithKind("ConfigMap"))}
	w.Create(foreign)
	w.Settled()
	err := w.apply(w.set(), page("a", "mine"))
	if of := (*children.Error)(nil); !errors.As(err, &of) || of.Set != "pages" || of.Key != ref("a").Key || !strings.Contains(err.Error(), "children pages: ConfigMap default/a: it exists and has another controlling owner") {
		t.Errorf("a child of another owner: %v", err)
	}
	leaving := page("b", "old")
	leaving.Finalizers = []string{"example.com/hold"}
	w.Create(leaving)
	if err := w.Client.Delete(t.Context(), leaving); err != nil {
		t.Fatal(err)
	}
	w.Settled()
	err = w.apply(w.set(), page("b", "new"))
	if waiting := (*children.WaitingError)(nil); !errors.As(err, &waiting) {
		t.Errorf("a child that is being deleted: %v", err)
	}
	w.expect("what is refused")
}

func TestSetDeletesOnlyItsOwnChildren(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.set()
	far := page("far", "x")
	far.Namespace = "kube-system"
	var refs []children.Ref
	for _, child := range []*corev1.ConfigMap{page("a", "x"), far, page("held", "x")} {
		at, err := s.Adopt(child)
		if err != nil || w.apply(s, child) != nil {
			t.Fatal(err)
		}
		refs = append(refs, at)
	}
	w.change("held", func(c *corev1.ConfigMap) { c.Finalizers = []string{"example.com/hold"} })
	w.Create(page("foreign", "x"))
	w.Settled()
	w.writes = nil
	del := func(at children.Ref, gone bool, want ...string) {
		t.Helper()
		got, err := s.Delete(at)
		if err != nil || got != gone {
			t.Errorf("%s: gone is %v, want %v; %v", at, got, gone, err)
		}
		w.expect(at.String(), want...)
	}
	del(ref("missing"), true)
	del(ref("foreign"), true)
	del(refs[0], false, "delete a")
	del(refs[0], true)
	del(refs[1], false, "delete far")
	del(refs[1], true)
	del(refs[2], false, "delete held")
	del(refs[2], false)
	if diff := cmp.Diff([]string{"foreign", "held", "owner"}, w.names()); diff != "" {
		t.Error(diff)
	}
}

func TestSetStoresItsInventoryWhenItHasChanged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.change("owner", func(c *corev1.ConfigMap) {
		c.Annotations = map[string]string{children.InventoryAnnotation + "web.old": `["/v1/ConfigMap/default/b"]`}
	})
	w.owner = w.stored("owner")
	s := w.set(func(s *children.Set) { s.Formerly = []string{"web.old"} })
	if err := errors.Join(s.Inventory.Include([]children.Ref{ref("a")}), s.Store(), s.Store()); err != nil {
		t.Fatal(err)
	}
	other := w.set(func(o *children.Set) { o.FullName, o.Pending = "web.other", s.Pending })
	if err := errors.Join(other.Inventory.Include([]children.Ref{ref("c")}), other.Store()); err != nil {
		t.Fatal(err)
	}
	w.expect("what can wait for the end of the attempt")
	if err := errors.Join(s.Pending.Write(t.Context()), s.Pending.Write(t.Context())); err != nil {
		t.Fatal(err)
	}
	w.expect("the end of an attempt of two sets", "patch owner")
	want := map[string]string{
		children.InventoryAnnotation + "web.pages": `["/v1/ConfigMap/default/a","/v1/ConfigMap/default/b"]`,
		children.InventoryAnnotation + "web.other": `["/v1/ConfigMap/default/c"]`,
	}
	stored := w.stored("owner")
	if diff := cmp.Diff(want, stored.Annotations); diff != "" {
		t.Error(diff)
	}
	if w.owner.ResourceVersion != stored.ResourceVersion || cmp.Diff(want, w.owner.Annotations) != "" {
		t.Errorf("the owner of the caller is of revision %s with %v", w.owner.ResourceVersion, w.owner.Annotations)
	}
	s.Inventory.Remove(ref("a"))
	w.change("owner", func(c *corev1.ConfigMap) { c.Data = map[string]string{"k": "v"} })
	if err := errors.Join(s.Store(), s.Pending.Write(t.Context())); !apierrors.IsConflict(err) {
		t.Errorf("on an older owner: %v", err)
	}
}

func TestSetStoresItsInventoryBeforeItCreatesWhatNothingElseFinds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	far := page("far", "x")
	far.Namespace = "kube-system"
	for name, tt := range map[string]struct {
		child client.Object
		kinds []client.Object
		want  []string
	}{
		"a watched kind":              {page("near", "x"), []client.Object{&corev1.ConfigMap{}}, []string{"apply near"}},
		"a kind that is not watched":  {page("unwatched", "x"), nil, []string{"patch owner", "apply unwatched"}},
		"a child without a reference": {far, []client.Object{&corev1.ConfigMap{}}, []string{"patch owner", "apply far"}},
	} {
		s := w.set(func(s *children.Set) { s.FullName, s.Kinds = "web."+tt.child.GetName(), tt.kinds })
		if err := s.Apply([]client.Object{tt.child}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		w.expect(name, tt.want...)
	}
}

func TestSetRecoversChildrenThatNoInventoryLists(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for set, name := range map[string]string{"web.pages": "mine", "web.old": "former", "web.other": "others", "": "unmarked"} {
		if err := w.apply(w.set(func(s *children.Set) { s.FullName = set }), page(name, "x")); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.apply(w.set(), page("wanted", "x")); err != nil {
		t.Fatal(err)
	}
	w.Create(page("foreign", "x"))
	w.change("unmarked", func(c *corev1.ConfigMap) { delete(c.Annotations, children.AppliedAnnotation) })
	for name, tt := range map[string]struct {
		edit func(*children.Set)
		want []children.Ref
	}{
		"a set of several": {func(s *children.Set) {}, []children.Ref{ref("mine")}},
		"with former name": {func(s *children.Set) { s.Formerly = []string{"web.old"} }, []children.Ref{ref("former"), ref("mine")}},
		"the only set":     {func(s *children.Set) { s.Whole = true }, []children.Ref{ref("mine"), ref("unmarked")}},
		"another manager":  {func(s *children.Set) { s.Whole, s.Controller = true, "someone" }, []children.Ref{ref("mine")}},
		"a legacy manager": {func(s *children.Set) { s.Whole, s.Controller, s.Legacy = true, "someone", []string{"web"} }, []children.Ref{ref("mine"), ref("unmarked")}},
	} {
		s := w.set(tt.edit)
		if err := s.Recover(map[children.Ref]bool{ref("wanted"): true}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(tt.want, s.Inventory.Beyond(nil)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	listed := w.set(func(s *children.Set) { s.Whole = true })
	if err := errors.Join(listed.Inventory.Include([]children.Ref{ref("wanted")}), listed.Store(), listed.Pending.Write(t.Context())); err != nil {
		t.Fatal(err)
	}
	again := w.set(func(s *children.Set) { s.Whole = true })
	if err := again.Recover(nil); err != nil || len(again.Inventory.Beyond(nil)) != 2 {
		t.Errorf("beside an inventory, unmarked children are claimed: %v, %v", again.Inventory.Beyond(nil), err)
	}
	known := w.set(func(s *children.Set) { s.Memory = listed.Memory })
	if err := known.Recover(nil); err != nil || len(known.Inventory.Beyond(nil)) != 1 {
		t.Errorf("an inventory that this process has written is searched again: %v, %v", known.Inventory.Beyond(nil), err)
	}
}

func TestSetLeavesChildrenOfOtherInventoriesAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.set()
	if err := w.apply(s, page("a", "x")); err != nil {
		t.Fatal(err)
	}
	other := w.set(func(s *children.Set) { s.FullName = "web.other" })
	if err := errors.Join(other.Inventory.Include([]children.Ref{ref("a")}), other.Store(), other.Pending.Write(t.Context())); err != nil {
		t.Fatal(err)
	}
	again := w.set()
	if err := again.Recover(nil); err != nil || !again.Inventory.Empty() {
		t.Errorf("%v, %v", again.Inventory.Beyond(nil), err)
	}
}

func TestSetTakesFieldsOverFromLegacyManagers(t *testing.T) {
	t.Parallel()
	for _, legacy := range [][]string{nil, {"former-operator"}} {
		w := newWorld(t)
		old := page("a", "old")
		old.Data["stale"] = "yes"
		if err := w.Client.Create(t.Context(), old, client.FieldOwner("former-operator")); err != nil {
			t.Fatal(err)
		}
		w.Settled()
		if err := w.apply(w.set(func(s *children.Set) { s.Legacy, s.TakeExisting = legacy, legacy == nil }), page("a", "new")); err != nil {
			t.Fatal(err)
		}
		got := w.stored("a").Data
		if got["text"] != "new" || (got["stale"] == "") != (legacy != nil) {
			t.Errorf("legacy %v: %v", legacy, got)
		}
	}
}
