// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// ownerWith is an owner with inventories, by the name of their set.
func ownerWith(inventories map[string]string) *corev1.ConfigMap {
	owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "owner", UID: "1", Annotations: map[string]string{"other": "x"}}}
	for set, text := range inventories {
		owner.Annotations[InventoryAnnotation+set] = text
	}
	return owner
}

// refOf is a child from "group/version/Kind/namespace/name".
func refOf(text string) Ref {
	p := strings.Split(text, "/")
	return Ref{schema.GroupVersionKind{Group: p[0], Version: p[1], Kind: p[2]}, types.NamespacedName{Namespace: p[3], Name: p[4]}}
}

func refsOf(texts ...string) (out []Ref) {
	for _, text := range texts {
		out = append(out, refOf(text))
	}
	return out
}

func TestInventoryIsWrittenAsASortedListAndReadAgain(t *testing.T) {
	t.Parallel()
	inv, err := ReadInventory(ownerWith(nil).Annotations, "web.pages")
	if err != nil || !inv.Empty() {
		t.Fatal("an owner without an inventory has children", err)
	}
	if err := inv.Include(refsOf("/v1/ConfigMap/default/b", "apps/v1/Deployment/default/web", "/v1/ConfigMap/default/a", "/v1/Namespace//n")); err != nil {
		t.Fatal(err)
	}
	annotations, err := inv.encode()
	if err != nil {
		t.Fatal(err)
	}
	const text = `["/v1/ConfigMap/default/a","/v1/ConfigMap/default/b","/v1/Namespace//n","apps/v1/Deployment/default/web"]`
	if diff := cmp.Diff(map[string]any{InventoryAnnotation + "web.pages": text}, annotations); diff != "" {
		t.Error(diff)
	}
	again, err := ReadInventory(ownerWith(map[string]string{"web.pages": text}).Annotations, "web.pages")
	if err != nil || again.changed || !again.found {
		t.Errorf("read again: changed %v, found %v, %v", again.changed, again.found, err)
	}
	if diff := cmp.Diff(refsOf("/v1/ConfigMap/default/a", "/v1/ConfigMap/default/b", "/v1/Namespace//n", "apps/v1/Deployment/default/web"), again.Beyond(nil)); diff != "" {
		t.Error(diff)
	}
}

func TestInventoryRefusesADamagedAnnotation(t *testing.T) {
	t.Parallel()
	for text, says := range map[string]string{
		`["/v1/ConfigMap/default/a"`:    "unexpected end of JSON input",
		`{"a": 1}`:                      "cannot unmarshal object",
		`["/v1/ConfigMap/default"]`:     `"/v1/ConfigMap/default" is not group/version/Kind/namespace/name`,
		`["/v1/ConfigMap/default/a/b"]`: "is not group/version/Kind/namespace/name",
	} {
		_, err := ReadInventory(ownerWith(map[string]string{"web.pages": text}).Annotations, "web.pages")
		if err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), "inventory.steer.dev/web.pages") {
			t.Errorf("%s: %v", text, err)
		}
		if _, err := ReadInventory(ownerWith(map[string]string{"web.old": text}).Annotations, "web.pages", "web.old"); err == nil {
			t.Errorf("%s: a former inventory is accepted", text)
		}
	}
}

func TestInventoryTakesOverThoseOfFormerNames(t *testing.T) {
	t.Parallel()
	owner := ownerWith(map[string]string{
		"web.pages": `["/v1/ConfigMap/default/a"]`, "web.old": `["/v1/ConfigMap/default/a","/v1/ConfigMap/default/b"]`,
		"web.other": `["/v1/ConfigMap/default/c"]`,
	})
	inv, err := ReadInventory(owner.Annotations, "web.pages", "web.old", "web.gone", "web.pages")
	if err != nil {
		t.Fatal(err)
	}
	if !inv.changed {
		t.Error("the former inventory is not taken off the owner")
	}
	if same, err := ReadInventory(owner.Annotations, "web.other", "web.other", "web.gone"); err != nil || same.changed {
		t.Errorf("a former name that is the present one changes the inventory; %v", err)
	}
	annotations, err := inv.encode()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{
		InventoryAnnotation + "web.pages": `["/v1/ConfigMap/default/a","/v1/ConfigMap/default/b"]`,
		InventoryAnnotation + "web.old":   nil,
	}, annotations); diff != "" {
		t.Error(diff)
	}
	others, err := inv.others(owner.Annotations)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(refsOf("/v1/ConfigMap/default/c"), others.refs); diff != "" {
		t.Errorf("of the other sets: %s", diff)
	}
}

func TestInventoryChanges(t *testing.T) {
	t.Parallel()
	const a, b = "/v1/ConfigMap/default/a", "apps/v1/Deployment/default/b"
	for name, tt := range map[string]struct {
		do      func(*Inventory)
		want    []Ref
		changed bool
	}{
		"what is listed is included":    {func(i *Inventory) { _ = i.Include(refsOf(a)) }, refsOf(a, b), false},
		"what is new is included":       {func(i *Inventory) { _ = i.Include(refsOf("/v1/ConfigMap/default/c")) }, refsOf(a, b, "/v1/ConfigMap/default/c"), true},
		"another version is included":   {func(i *Inventory) { _ = i.Include(refsOf("apps/v2/Deployment/default/b")) }, refsOf(a, "apps/v2/Deployment/default/b"), true},
		"what is listed is added":       {func(i *Inventory) { i.add(refOf(a)) }, refsOf(a, b), false},
		"another version is added":      {func(i *Inventory) { i.add(refOf("apps/v2/Deployment/default/b")) }, refsOf(a, b), false},
		"what is new is added":          {func(i *Inventory) { i.add(refOf("/v1/Secret/default/a")) }, refsOf(a, b, "/v1/Secret/default/a"), true},
		"what is listed is removed":     {func(i *Inventory) { i.Remove(refOf(a)) }, refsOf(b), true},
		"another version is removed":    {func(i *Inventory) { i.Remove(refOf("apps/v2/Deployment/default/b")) }, refsOf(a), true},
		"what is not listed is removed": {func(i *Inventory) { i.Remove(refOf("/v1/ConfigMap/other/a")) }, refsOf(a, b), false},
		"all is removed":                {func(i *Inventory) { i.Remove(refOf(a)); i.Remove(refOf(b)) }, nil, true},
	} {
		inv, err := ReadInventory(ownerWith(map[string]string{"s": fmt.Sprintf("[%q,%q]", a, b)}).Annotations, "s")
		if err != nil {
			t.Fatal(err)
		}
		tt.do(&inv)
		if diff := cmp.Diff(tt.want, inv.Beyond(nil)); diff != "" || inv.changed != tt.changed || inv.Empty() != (tt.want == nil) {
			t.Errorf("%s: changed %v, empty %v: %s", name, inv.changed, inv.Empty(), diff)
		}
		if tt.want != nil {
			if left := inv.Beyond(map[Ref]bool{tt.want[0]: true}); len(left) != len(tt.want)-1 {
				t.Errorf("%s: beyond the first there are %v", name, left)
			}
		} else if annotations, _ := inv.encode(); annotations[InventoryAnnotation+"s"] != nil {
			t.Errorf("%s: an empty inventory stays on the owner: %v", name, annotations)
		}
	}
}

func TestInventoryIsBounded(t *testing.T) {
	t.Parallel()
	var refs []Ref
	for i := range 5000 {
		refs = append(refs, refOf(fmt.Sprintf("/v1/ConfigMap/default/a-name-of-a-page-%04d", i)))
	}
	inv := Inventory{set: "s"}
	if err := inv.Include(refs[:2500]); err != nil {
		t.Errorf("2500 children: %v", err)
	}
	if err := inv.Include(refs); err == nil || !strings.Contains(err.Error(), "5000 children do not fit into the inventory of one object: split the set") {
		t.Errorf("5000 children: %v", err)
	}
}
