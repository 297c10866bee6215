// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/steer-dev/steer/apiserver/internal/recordcache"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/internal/jsontext"
	"github.com/steer-dev/steer/storage"
)

// TestListFailsIfSelectionFails: an object that cannot be decoded is not left out.
func TestListFailsIfSelectionFails(t *testing.T) {
	t.Parallel()
	f := newFixture(t, resource.DeletionRules{})
	f.in.Versions[0].Selectable = []resource.SelectableField{{Path: "data.a", Value: func(o resource.Object) string { return o.(*corev1.ConfigMap).Data["a"] }}}
	f.create("good", func(c *corev1.ConfigMap) { c.Data = map[string]string{"a": "b"} })
	if _, err := f.store.Commit(t.Context(), storage.Write{
		Key: f.in.Key("default", "unreadable"), Value: []byte(`{"apiVersion":"v0","kind":"ConfigMap","metadata":{"name":"unreadable"}}`), Expect: storage.Absent,
	}); err != nil {
		t.Fatal(err)
	}
	for selector, want := range map[string]string{
		"data.a=b": "which ConfigMap no longer has", "metadata.name=unreadable,data.a=b": "which ConfigMap no longer has", "metadata.name=good,data.a=b": "",
	} {
		options := &internalversion.ListOptions{FieldSelector: fields.ParseSelectorOrDie(selector)}
		req := &resource.Request{Resource: f.in.Resource, Version: &f.in.Versions[0], Namespace: "default"}
		sel, err := f.Select(req, f.in, options)
		if err != nil {
			t.Fatal(err)
		}
		page, err := f.List(t.Context(), sel, options)
		switch {
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v, want an error about %q", selector, err, want)
		case want == "" && (err != nil || len(page.Records) != 1):
			t.Errorf("%s: %+v, %v", selector, page, err)
		}
	}
}

// aged is a strategy under which objects of before have a key less.
type aged struct{ rules }

func (aged) Default(obj resource.Object) ([]string, error) {
	obj.(*corev1.ConfigMap).Data["defaulted"] = "yes"
	return nil, nil
}

// TestWithRevisionIsNotCached: the encoding could not be found again. The object is that of
// the record, except for the revision.
func TestWithRevisionIsNotCached(t *testing.T) {
	t.Parallel()
	for name, since := range map[string]storage.Revision{"stored as it is read": 0, "stored before the definition": 100} {
		f := newFixture(t, resource.DeletionRules{})
		v := &f.in.Versions[0]
		v.Strategy = aged{}
		f.create("a", func(c *corev1.ConfigMap) { c.Data = map[string]string{"a": "b"} })
		rec, err := f.Get(t.Context(), f.in, "default", "a", 0)
		if err != nil {
			t.Fatal(err)
		}
		f.in.Storage.Since = since
		moved, err := f.WithRevision(t.Context(), f.in, v, rec, 77)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Proto(t.Context(), f.in, v, moved); err != nil {
			t.Fatal(err)
		}
		if _, cached := recordcache.Cached(moved, v, recordcache.Proto); cached {
			t.Errorf("%s: the protobuf of a record that is not in the store is cached", name)
		}
		want, got := f.decode(rec), f.decode(moved)
		if want.ResourceVersion = "77"; got.String() != want.String() {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
		value, err := f.JSON(t.Context(), f.in, v, moved)
		if defaulted := jsontext.String(value, "data", "defaulted"); err != nil || (defaulted == "yes") != (since > 0) {
			t.Errorf("%s: the JSON is %s, %v", name, value, err)
		}
	}
}
