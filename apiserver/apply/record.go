// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/managedfields"

	"github.com/steer-dev/steer/apiserver/internal/wire"
)

// maxManagerName is the longest name of a manager, in bytes.
const maxManagerName = 128

// ManagerName returns the name under which a write is recorded: what the client
// asked for with the fieldManager option, or else its User-Agent up to the first
// slash, without characters that cannot be printed.
func ManagerName(option, userAgent string) string {
	if option != "" {
		return option
	}
	name, _, _ := strings.Cut(userAgent, "/")
	if len(name) <= maxManagerName && printable(name) {
		return name
	}
	var out strings.Builder
	for _, r := range name {
		if !unicode.IsPrint(r) {
			continue
		}
		if out.Len()+utf8.RuneLen(r) > maxManagerName {
			break
		}
		out.WriteRune(r)
	}
	return out.String()
}

// printable reports whether a text is plain ASCII that can be printed.
func printable(text string) bool {
	for i := range len(text) {
		if text[i] < ' ' || text[i] > '~' {
			return false
		}
	}
	return true
}

// KeepTimes gives obj the record of old if they differ in nothing but the times
// of the record: a write that changes nothing must not be recorded either, or it
// would not be recognised as one. It compares everything but resourceVersion and
// leaves old alone.
func KeepTimes(old, obj Object) {
	was, isUnstructured := old.(*unstructured.Unstructured)
	is, alsoUnstructured := obj.(*unstructured.Unstructured)
	if isUnstructured && alsoUnstructured {
		before, has, known := frozenRecord(was)
		after, alsoHas, alsoKnown := frozenRecord(is)
		if known && alsoKnown && has && alsoHas {
			if before != after && sameButTimes(before, after) {
				keepTimes(was.Object, is.Object)
			}
			return
		}
		wire.Thaw(was.Object)
		wire.Thaw(is.Object)
	}
	keepTimesOfTyped(old, obj)
}

// sameButTimes compares two records but for their times.
func sameButTimes(a, b wire.Frozen) bool {
	if a[0] != '[' || b[0] != '[' {
		return false
	}
	x, y := a.Reader(), b.Reader()
	for {
		inA, inB := x.Element(), y.Element()
		if !inA || !inB {
			return inA == inB
		}
		if p, q := x.Take(), y.Take(); p != q && !sameEntryButTime(p, q) {
			return false
		}
	}
}

func sameEntryButTime(a, b wire.Frozen) bool {
	if !a.IsObject() || !b.IsObject() {
		return false
	}
	x, y := a.Reader(), b.Reader()
	member := func(r *wire.Reader) (name string, value wire.Frozen) {
		for {
			name, ok := r.Member()
			if !ok {
				return "", ""
			}
			if value = r.Take(); name != "time" {
				return name, value
			}
		}
	}
	for {
		name, value := member(&x)
		other, otherValue := member(&y)
		if name != other || value != otherValue {
			return false
		}
		if value == "" {
			return true
		}
	}
}

// keepTimes is KeepTimes for unstructured objects whose records differ in times alone.
func keepTimes(old, obj map[string]any) {
	for name, value := range obj {
		if other, ok := old[name]; name != "metadata" && (!ok || !wire.Equal(value, other)) {
			return
		}
	}
	for name := range old {
		if _, ok := obj[name]; !ok {
			return
		}
	}
	was, is := old["metadata"].(map[string]any), obj["metadata"].(map[string]any)
	for name, value := range is {
		if other, ok := was[name]; name != "managedFields" && name != "resourceVersion" && (!ok || !wire.Equal(value, other)) {
			return
		}
	}
	for name := range was {
		if _, ok := is[name]; !ok && name != "resourceVersion" {
			return
		}
	}
	is["managedFields"] = was["managedFields"]
}

func keepTimesOfTyped(old, obj Object) {
	before, after := old.GetManagedFields(), obj.GetManagedFields()
	if len(before) != len(after) {
		return
	}
	same := true
	for i := range before {
		a, b := before[i], after[i]
		same = same && a.Time.Equal(b.Time)
		a.Time, b.Time = nil, nil
		if !equality.Semantic.DeepEqual(a, b) {
			return
		}
	}
	if same {
		return
	}
	revision := obj.GetResourceVersion()
	obj.SetManagedFields(before)
	obj.SetResourceVersion(old.GetResourceVersion())
	if !equality.Semantic.DeepEqual(old, obj) {
		obj.SetManagedFields(after)
	}
	obj.SetResourceVersion(revision)
}

// rawRecord returns the record of an unstructured object, decoded, and whether
// there is one. ok is false when it cannot be told.
func rawRecord(obj Object) (entries []any, has, ok bool) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return nil, false, false
	}
	value, has := u.Object["metadata"]
	if !has {
		return nil, false, true
	}
	metadata, ok := value.(map[string]any)
	if !ok {
		return nil, false, false
	}
	if value, has = metadata["managedFields"]; !has {
		return nil, false, true
	}
	if frozen, ok := value.(wire.Frozen); ok {
		value = frozen.Thaw()
	}
	entries, ok = value.([]any)
	return entries, true, ok
}

// Restore puts the record before back if what is in obj now cannot be read, as
// happens when an outdated mutating webhook has been at it. It returns the
// warning for the client, empty if the record is fine.
func Restore(obj Object, before []metav1.ManagedFieldsEntry) (warning string) {
	if slices.Equal(obj.GetManagedFields(), before) {
		return "" // nobody has been at it
	}
	err := managedfields.ValidateManagedFields(obj.GetManagedFields())
	if err == nil {
		return ""
	}
	obj.SetManagedFields(before)
	return fmt.Sprintf(".metadata.managedFields was in an invalid state after admission; "+
		"this could be caused by an outdated mutating admission controller; please fix your requests: %v", err)
}
