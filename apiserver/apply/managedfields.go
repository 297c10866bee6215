// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/managedfields"

	"github.com/steer-dev/steer/apiserver/internal/doc"
	"github.com/steer-dev/steer/internal/jsontext"
)

// maxManagerName is the longest manager name, in bytes.
const maxManagerName = 128

// ManagerName returns the manager of a write: the fieldManager option, or else the
// User-Agent up to the first slash, without characters that cannot be printed.
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

// printable reports whether a text is printable ASCII.
func printable(text string) bool {
	for i := range len(text) {
		if text[i] < ' ' || text[i] > '~' {
			return false
		}
	}
	return true
}

// KeepTimes gives obj the managedFields of old if the objects differ only in the times
// of managedFields: a write without changes must stay one. It compares everything but
// resourceVersion and does not change old.
func KeepTimes(old, obj Object) {
	was, isDoc := old.(*doc.Doc)
	is, alsoDoc := obj.(*doc.Doc)
	if !isDoc || !alsoDoc {
		keepTimesOfTyped(old, obj)
		return
	}
	record := doc.ManagedFields(was)
	before, known := record.Text()
	after, alsoKnown := doc.ManagedFields(is).Text()
	if known && alsoKnown && before != after && sameButTimes(before, after) && was.EqualBeyondMetadata(is) && sameMetadata(was, is) {
		doc.SetManagedFields(is, record)
	}
}

// sameMetadata compares metadata but for managedFields and the resourceVersion.
func sameMetadata(a, b *doc.Doc) bool {
	x, isX := doc.Metadata(a)
	y, isY := doc.Metadata(b)
	without := func(metadata map[string]any) map[string]any {
		out := maps.Clone(metadata)
		delete(out, "resourceVersion")
		return out
	}
	return isX && isY && jsontext.Equal(without(x), without(y))
}

// sameButTimes compares two raw managedFields except for their times.
func sameButTimes(a, b jsontext.Text) bool {
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

func sameEntryButTime(a, b jsontext.Text) bool {
	if !a.IsObject() || !b.IsObject() {
		return false
	}
	x, y := a.Reader(), b.Reader()
	member := func(r *jsontext.Reader) (name string, value jsontext.Text) {
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

// Restore sets managedFields back to before if those in obj cannot be parsed, for
// example because an outdated mutating webhook changed them. It returns the warning for
// the client, empty if there is nothing to restore.
func Restore(obj Object, before []metav1.ManagedFieldsEntry) (warning string) {
	if slices.Equal(obj.GetManagedFields(), before) {
		return "" // not changed
	}
	err := managedfields.ValidateManagedFields(obj.GetManagedFields())
	if err == nil {
		return ""
	}
	obj.SetManagedFields(before)
	return fmt.Sprintf(".metadata.managedFields was in an invalid state after admission; "+
		"this could be caused by an outdated mutating admission controller; please fix your requests: %v", err)
}
