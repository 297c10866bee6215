// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/client"
)

// InventoryAnnotation is the prefix of the annotations that list the children of
// an object; the names of the controller and the set follow.
const InventoryAnnotation = "inventory.steer.dev/"

// maxInventory bounds one annotation, in bytes; all annotations of an object
// together may have twice as much.
const maxInventory = 128 << 10

// Ref names a child.
type Ref struct {
	GVK schema.GroupVersionKind
	Key types.NamespacedName
}

func (r Ref) String() string {
	return r.GVK.Kind + " " + client.FormatKey(r.Key)
}

// Inventory is the list of the children of a set, as it is written in an
// annotation of the owner: a JSON list of "group/version/Kind/namespace/name".
type Inventory struct {
	set     string
	former  []string // annotations of former names, which go with the next write
	refs    []Ref
	found   bool // there was an annotation
	changed bool
}

// ReadInventory reads the list of a set from the annotations of its owner, and takes
// over those that it has under former names.
func ReadInventory(annotations map[string]string, set string, formerly ...string) (Inventory, error) {
	inv := Inventory{set: set}
	if err := inv.read(annotations, set); err != nil {
		return inv, err
	}
	for _, name := range formerly {
		if _, ok := annotations[InventoryAnnotation+name]; !ok || name == set {
			continue
		}
		if err := inv.read(annotations, name); err != nil {
			return inv, err
		}
		inv.former = append(inv.former, name)
		inv.changed = true
	}
	return inv, nil
}

func (inv *Inventory) read(annotations map[string]string, set string) error {
	text := annotations[InventoryAnnotation+set]
	if text == "" {
		return nil
	}
	inv.found = true
	var list []string
	err := json.Unmarshal([]byte(text), &list)
	for _, entry := range list {
		parts := strings.Split(entry, "/")
		if len(parts) != 5 {
			err = fmt.Errorf("%q is not group/version/Kind/namespace/name", entry)
			break
		}
		ref := Ref{
			GVK: schema.GroupVersionKind{Group: parts[0], Version: parts[1], Kind: parts[2]},
			Key: types.NamespacedName{Namespace: parts[3], Name: parts[4]},
		}
		if inv.find(ref) < 0 {
			inv.refs = append(inv.refs, ref)
		}
	}
	if err != nil {
		return fmt.Errorf("children %s: read annotation %s: %w: repair it, or remove it and delete what is left over by hand", set, InventoryAnnotation+set, err)
	}
	return nil
}

// others are the children that other inventories of the owner have.
func (inv *Inventory) others(annotations map[string]string) (*Inventory, error) {
	out := &Inventory{set: inv.set}
	for annotation := range annotations {
		name, ok := strings.CutPrefix(annotation, InventoryAnnotation)
		if !ok || name == inv.set || slices.Contains(inv.former, name) {
			continue
		}
		if err := out.read(annotations, name); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// has reports whether a child is in the list.
func (inv *Inventory) has(ref Ref) bool { return inv.find(ref) >= 0 }

// add adds a child unless it is in the list.
func (inv *Inventory) add(ref Ref) {
	if !inv.has(ref) {
		inv.refs = append(inv.refs, ref)
		inv.changed = true
	}
}

// Include adds what is not in the list.
func (inv *Inventory) Include(refs []Ref) error {
	for _, ref := range refs {
		switch i := inv.find(ref); {
		case i < 0:
			inv.refs = append(inv.refs, ref)
			inv.changed = true
		case inv.refs[i] != ref:
			inv.refs[i] = ref // another version of the same kind
			inv.changed = true
		}
	}
	value, err := inv.text()
	if err == nil && len(value) > maxInventory {
		err = fmt.Errorf("children %s: %d children do not fit into the inventory of one object: split the set, or give the object a middle layer", inv.set, len(inv.refs))
	}
	return err
}

// Beyond returns what is in the list and not among the wanted.
func (inv *Inventory) Beyond(wanted map[Ref]bool) (out []Ref) {
	for _, ref := range inv.refs {
		if !wanted[ref] {
			out = append(out, ref)
		}
	}
	return out
}

// Remove takes a child off the list.
func (inv *Inventory) Remove(ref Ref) {
	if i := inv.find(ref); i >= 0 {
		inv.refs = slices.Delete(inv.refs, i, i+1)
		inv.changed = true
	}
}

// find looks for a child; another version of its kind is the same child.
func (inv *Inventory) find(ref Ref) int {
	return slices.IndexFunc(inv.refs, func(r Ref) bool {
		return r.Key == ref.Key && r.GVK.GroupKind() == ref.GVK.GroupKind()
	})
}

// encode returns the annotations to write: nil takes one away.
func (inv *Inventory) encode() (map[string]any, error) {
	annotations := map[string]any{}
	for _, name := range inv.former {
		annotations[InventoryAnnotation+name] = nil
	}
	annotations[InventoryAnnotation+inv.set] = nil
	if len(inv.refs) > 0 {
		text, err := inv.text()
		if err != nil {
			return nil, err
		}
		annotations[InventoryAnnotation+inv.set] = text
	}
	return annotations, nil
}

func (inv *Inventory) text() (string, error) {
	list := make([]string, len(inv.refs))
	for i, r := range inv.refs {
		list[i] = strings.Join([]string{r.GVK.Group, r.GVK.Version, r.GVK.Kind, r.Key.Namespace, r.Key.Name}, "/")
	}
	slices.Sort(list)
	data, err := json.Marshal(list)
	return string(data), err
}

// Empty reports that no children are left.
func (inv *Inventory) Empty() bool { return len(inv.refs) == 0 }
