// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package children_test

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/controller/internal/children"
)

func TestSetRefusesWhatItDidNotMake(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	theirs := func(name, manager string) {
		t.Helper()
		if err := w.Client.Create(t.Context(), page(name, "theirs"), client.FieldOwner(manager)); err != nil {
			t.Fatal(err)
		}
	}
	for name, manager := range map[string]string{"a": "kubectl-create", "mine": "web", "former": "old-web", "taken": "kubectl-create", "listed": "kubectl-create"} {
		theirs(name, manager)
	}
	far := page("far", "theirs")
	far.Namespace, far.Annotations = "kube-system", map[string]string{children.OwnerAnnotation: "another"}
	w.Create(far)
	w.Settled()
	s := w.set()
	err := s.Apply([]client.Object{page("a", "ours"), page("b", "ours")})
	refused := (*children.RefusedError)(nil)
	if !errors.As(err, &refused) {
		t.Fatalf("an object of a user: %v", err)
	}
	for _, want := range []string{"children pages: ConfigMap default/a: ", "written by kubectl-create", "field manager web", "TakeExisting", "Legacy"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %q: %v", want, err)
		}
	}
	if got := w.stored("a"); got.Data["text"] != "theirs" || len(got.OwnerReferences) != 0 {
		t.Errorf("a refused object was changed: %v", got)
	}
	if got := w.stored("b"); got.Data["text"] != "ours" {
		t.Errorf("the child beside a refused one: %v", got)
	}
	if err := s.Pending.Write(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := w.stored("owner").Annotations[children.InventoryAnnotation+"web.pages"]; got != `["/v1/ConfigMap/default/b"]` {
		t.Errorf("the inventory lists %s", got)
	}
	for name, edit := range map[string]func(*children.Set){
		"mine":   func(*children.Set) {},
		"former": func(s *children.Set) { s.Legacy = []string{"old-web"} },
		"taken":  func(s *children.Set) { s.TakeExisting = true },
		"listed": func(s *children.Set) { s.Formerly = []string{"web.old"} },
	} {
		w.change("owner", func(c *corev1.ConfigMap) {
			c.Annotations[children.InventoryAnnotation+"web.old"] = `["/v1/ConfigMap/default/listed"]`
		})
		w.owner = w.stored("owner")
		if err := w.apply(w.set(edit), page(name, "ours")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := w.stored(name); got.Data["text"] != "ours" || !metav1.IsControlledBy(got, w.owner) {
			t.Errorf("%s is not taken: %v", name, got)
		}
	}
	ours := page("far", "ours")
	ours.Namespace = "kube-system"
	if err := w.apply(w.set(func(s *children.Set) { s.TakeExisting = true }), ours); err == nil || !strings.Contains(err.Error(), "another controlling owner") {
		t.Errorf("an object that names another owner: %v", err)
	}
}

func TestSetThatCreatesOnlyLeavesWhatExists(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	once := func(s *children.Set) { s.Policy = children.CreateOnly }
	password := page("a", "first")
	if err := w.apply(w.set(once), password); err != nil || password.UID == "" {
		t.Fatalf("the first time: %v, %v", err, password)
	}
	w.expect("the first time", "create a")
	password = page("a", "second")
	if err := w.apply(w.set(once), password); err != nil || password.Data["text"] != "first" {
		t.Errorf("the second time: %v, %v", err, password)
	}
	w.change("a", func(c *corev1.ConfigMap) { c.Data["text"] = "rotated" })
	if err := w.apply(w.set(once), password); err != nil || password.Data["text"] != "rotated" {
		t.Errorf("after a change by another client: %v, %v", err, password)
	}
	w.expect("what exists")
	empty := w.set(once)
	if err := errors.Join(empty.Inventory.Include([]children.Ref{ref("a")}), empty.Apply(nil)); err != nil {
		t.Fatal(err)
	}
	w.expect("what is not desired any more", "delete a")
	w.Create(page("user", "theirs"))
	w.Settled()
	if err := w.apply(w.set(once), page("user", "ours")); err == nil || !strings.Contains(err.Error(), "TakeExisting") {
		t.Errorf("an object of a user: %v", err)
	}
	if err := w.apply(w.set(func(s *children.Set) { s.Policy, s.TakeExisting = children.CreateOnly, true }), page("user", "ours")); err != nil {
		t.Error(err)
	}
	w.expect("an object that a user made before")
}

func TestSetRecreatesWhatCannotBeChanged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	fixed := func(text string) *corev1.ConfigMap {
		c, yes := page("a", text), true
		c.Immutable = &yes
		return c
	}
	if err := w.apply(w.set(), fixed("one")); err != nil {
		t.Fatal(err)
	}
	first := w.stored("a")
	if err := w.apply(w.set(), fixed("two")); !apierrors.IsInvalid(err) {
		t.Errorf("without the policy: %v", err)
	}
	w.writes = nil
	recreate := func(s *children.Set) { s.Policy = children.Recreate }
	child := fixed("two")
	if err := w.apply(w.set(recreate), child); err != nil {
		t.Fatal(err)
	}
	w.expect("a field that cannot be changed", "apply a", "dry-run create", "delete a", "apply a")
	if got := w.stored("a"); got.UID == first.UID || got.Data["text"] != "two" || child.UID != got.UID {
		t.Errorf("the server has %v", got)
	}
	w.Settled()
	if err := w.apply(w.set(recreate), fixed("two")); err != nil {
		t.Error(err)
	}
	w.expect("the same child")

	wrong := fixed("three")
	wrong.Data["not a key"] = "x"
	if err := w.apply(w.set(recreate), wrong); !apierrors.IsInvalid(err) {
		t.Errorf("a child that is wrong by itself: %v", err)
	}
	w.expect("a child that is wrong by itself", "apply a", "dry-run create")

	w.change("a", func(c *corev1.ConfigMap) { c.Finalizers = []string{"example.com/hold"} })
	w.Settled()
	waiting := (*children.WaitingError)(nil)
	if err := w.apply(w.set(recreate), fixed("three")); !errors.As(err, &waiting) {
		t.Errorf("a former child that is held: %v", err)
	}
}
