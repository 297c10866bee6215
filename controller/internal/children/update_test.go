// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package children_test

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/controller/internal/children"
)

func TestCreateOrUpdateSendsWhatDiffers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	update := func(what, text string, wantCreated, wantUpdated bool, writes ...string) {
		t.Helper()
		obj := configMap("a")
		created, updated, err := children.CreateOrUpdate(t.Context(), w.client, obj, func() error {
			if obj.Data == nil {
				obj.Data = map[string]string{}
			}
			obj.Data["text"] = text
			return nil
		})
		if err != nil || created != wantCreated || updated != wantUpdated {
			t.Errorf("%s: created %v, updated %v, %v", what, created, updated, err)
		}
		if obj.Annotations[children.AppliedAnnotation] == "" || obj.ResourceVersion != w.stored("a").ResourceVersion {
			t.Errorf("%s: the object is not what the server has: %v", what, obj)
		}
		w.expect(what, writes...)
	}
	update("a missing object", "one", true, false, "create a")
	update("the same", "one", false, false)
	update("another text", "two", false, true, "update a")
	w.change("a", func(c *corev1.ConfigMap) { c.Data["their"] = "field" })
	update("a field of another client", "two", false, false)
	w.change("a", func(c *corev1.ConfigMap) { c.Data["text"] = "theirs" })
	update("a text of another client", "two", false, true, "update a")
}

func TestCreateOrUpdateSettlesWithAServerThatKeepsSomethingElse(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	update := func(what string, writes ...string) {
		t.Helper()
		obj := configMap("a")
		if _, _, err := children.CreateOrUpdate(t.Context(), w.client, obj, func() error {
			obj.Data = map[string]string{"text": "sent"}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		w.expect(what, writes...)
	}
	w.alter = func(obj client.Object) { obj.(*corev1.ConfigMap).Data["text"] = "kept" }
	update("a deviation", "create a", "update a")
	w.alter = nil
	w.change("a", func(c *corev1.ConfigMap) { c.Data["text"] = "kept" }) // as a webhook leaves it
	update("the deviation that the mark has")
	w.change("a", func(c *corev1.ConfigMap) { c.Data["text"] = "theirs" })
	update("another deviation", "update a")
}

func TestCreateOrUpdateRefusesWhatItCannotDo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	broken := errors.New("broken")
	obj := configMap("a")
	if _, _, err := children.CreateOrUpdate(t.Context(), w.client, obj, func() error { return broken }); !errors.Is(err, broken) {
		t.Errorf("the error of the function: %v", err)
	}
	_, _, err := children.CreateOrUpdate(t.Context(), w.client, obj, func() error { obj.Name = "b"; return nil })
	if err == nil || !strings.Contains(err.Error(), "the function renamed default/a to default/b") {
		t.Errorf("another name: %v", err)
	}
	w.expect("what is refused")
}
