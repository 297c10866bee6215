// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package definition_test

import (
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/steer-dev/steer/cache/internal/definition"
	"github.com/steer-dev/steer/cache/internal/form"
	"github.com/steer-dev/steer/client"
)

// What reads give is tested in package cache: TestModelReadsAreOfOneDefinition.

func part(name, app string) client.Object {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: name, Namespace: "n", Labels: map[string]string{"app": app}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}},
	}}
}

func TestSelectsLeavesToTheServerWhatOnlyItKnows(t *testing.T) {
	t.Parallel()
	app := labels.SelectorFromSet(labels.Set{"app": "x"})
	for name, c := range map[string]struct {
		options definition.Options
		want    definition.Verdict
	}{
		"everything":                     {definition.Options{}, definition.Selected},
		"a label":                        {definition.Options{Labels: app}, definition.Selected},
		"another label":                  {definition.Options{Labels: labels.SelectorFromSet(labels.Set{"app": "y"})}, definition.Rejected},
		"a name":                         {definition.Options{Fields: fields.OneTermEqualSelector("metadata.name", "a")}, definition.Selected},
		"another name":                   {definition.Options{Fields: fields.OneTermNotEqualSelector("metadata.name", "a")}, definition.Rejected},
		"a namespace":                    {definition.Options{Fields: fields.OneTermEqualSelector("metadata.namespace", "n")}, definition.Selected},
		"a field":                        {definition.Options{Labels: app, Fields: fields.OneTermEqualSelector("spec.color", "red")}, definition.Unclear},
		"a field, but the label decides": {definition.Options{Labels: labels.Nothing(), Fields: fields.OneTermEqualSelector("spec.color", "red")}, definition.Rejected},
	} {
		d := definition.Definition{Options: c.options}
		if got := d.Selects(part("a", "x")); got != c.want {
			t.Errorf("%s: verdict %d, want %d", name, got, c.want)
		}
	}
}

func TestWrittenIsWhatWouldBeKept(t *testing.T) {
	t.Parallel()
	newItem := func() client.Object { return &metav1.PartialObjectMetadata{} }
	d := definition.Definition{Place: form.Place{Form: form.Metadata}, NewItem: newItem}
	obj := part("a", "x")
	if got := d.Written(obj); got == nil || got.GetManagedFields() != nil || obj.GetManagedFields() == nil {
		t.Errorf("kept %v of %v, want a copy without managedFields", got, obj)
	}
	d.ManagedFields = true
	d.Transform = func(obj client.Object) (client.Object, error) {
		obj.SetLabels(nil)
		return obj, nil
	}
	if got := d.Written(obj); got == nil || got.GetManagedFields() == nil || got.GetLabels() != nil || obj.GetLabels() == nil {
		t.Errorf("kept %v of %v, want what the transform makes of a copy", got, obj)
	}
	d.Transform = func(client.Object) (client.Object, error) { return nil, errors.New("no") }
	if got := d.Written(obj); got != nil {
		t.Errorf("kept %v, want nothing: the transform has failed", got)
	}
}

func TestFieldsOfIndexesDoNotGoToTheServer(t *testing.T) {
	t.Parallel()
	d := definition.Definition{Indexes: func() map[string]func(client.Object) []string {
		return map[string]func(client.Object) []string{"spec.color": func(client.Object) []string { return nil }}
	}}
	text := func(s fields.Selector) string {
		if s == nil {
			return ""
		}
		return s.String()
	}
	for selector, want := range map[string][2]string{
		"":                               {"", ""},
		"spec.color=red":                 {"spec.color=red", ""},
		"metadata.name=a":                {"", "metadata.name=a"},
		"spec.color!=red,spec.size=1":    {"spec.color!=red", "spec.size=1"},
		"metadata.ownerReferences.uid=u": {"metadata.ownerReferences.uid=u", ""},
	} {
		o := &client.ListOptions{}
		if selector != "" {
			o.FieldSelector = fields.ParseSelectorOrDie(selector)
		}
		own, servers := d.FieldsOf(o)
		if got := [2]string{text(own), text(servers)}; got != want {
			t.Errorf("%q: %q, want %q", selector, got, want)
		}
	}
}
