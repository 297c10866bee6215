// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package resource_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/apiserver/resource"
)

// widget returns an object of a group and version.
func widget(apiVersion, size string) *resource.Doc {
	return resource.NewDoc(map[string]any{
		"apiVersion": apiVersion, "kind": "Widget", "metadata": map[string]any{"name": "a"}, "size": size,
	})
}

// grow appends to the size.
func grow(d *resource.Doc, with string) {
	content := d.Content("size")
	content["size"] = content["size"].(string) + with
	d.SetContent(content, "size")
}

// appending returns a conversion that appends a version to the size, or the error of it.
func appending(fails error) func(context.Context, []resource.Object, string) ([]resource.Object, error) {
	return func(_ context.Context, objects []resource.Object, version string) ([]resource.Object, error) {
		var out []resource.Object
		for _, obj := range objects {
			d := obj.(*resource.Doc).Copy()
			grow(d, ">"+version)
			out = append(out, d)
		}
		return out, fails
	}
}

func TestConvertToTranslatesWithinAResource(t *testing.T) {
	t.Parallel()
	r := widgets()
	was := widget("example.com/v1", "1")
	if got, err := r.ConvertTo(t.Context(), was, r, "v1"); err != nil || got != resource.Object(was) {
		t.Errorf("an object in the version is converted to %v: %v", got, err)
	}
	for name, c := range map[string]struct {
		convert func(context.Context, []resource.Object, string) ([]resource.Object, error)
		want    *resource.Doc
	}{
		"without a conversion": {nil, widget("example.com/v2", "1")},
		"with a conversion":    {appending(nil), widget("example.com/v2", "1>v2")},
	} {
		r.Convert = c.convert
		got, err := r.ConvertTo(t.Context(), was, r, "v2")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(widget("example.com/v1", "1"), was); diff != "" {
			t.Errorf("%s, the original (-want +got):\n%s", name, diff)
		}
	}
}

func TestConvertToTranslatesBetweenResourcesOfTheSameObjects(t *testing.T) {
	t.Parallel()
	main := widgets()
	main.Convert = appending(nil)
	alias := widgets()
	alias.Group = "old.example.com"
	alias.Convert = appending(nil)
	mark := func(with string) func(resource.Object) resource.Object {
		return func(obj resource.Object) resource.Object {
			grow(obj.(*resource.Doc), with)
			return obj
		}
	}
	alias.Storage.Alias = &resource.Alias{Kind: main.GroupVersionKind("v1"), Load: mark(">loaded"), Save: mark(">saved")}
	for _, c := range []struct {
		name     string
		from, to *resource.Resource
		was      *resource.Doc
		version  string
		want     *resource.Doc
	}{
		{"to the alias", main, alias, widget("example.com/v1", "1"), "v1", widget("old.example.com/v1", "1>loaded")},
		{"from the alias", alias, main, widget("old.example.com/v1", "1"), "v1", widget("example.com/v1", "1>saved")},
		{
			"through the storage version", main, alias, widget("example.com/v2", "1"), "v2",
			widget("old.example.com/v2", "1>v1>loaded>v2"),
		},
	} {
		before := c.was.Copy()
		got, err := c.from.ConvertTo(t.Context(), c.was, c.to, c.version)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
		if diff := cmp.Diff(before, c.was); diff != "" {
			t.Errorf("%s, the original (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestConvertAllKeepsTheOrder(t *testing.T) {
	t.Parallel()
	r := widgets()
	was := []resource.Object{widget("example.com/v1", "1"), widget("example.com/v2", "2")}
	for name, c := range map[string]struct {
		convert func(context.Context, []resource.Object, string) ([]resource.Object, error)
		want    []resource.Object
	}{
		"without a conversion": {nil, []resource.Object{widget("example.com/v2", "1"), widget("example.com/v2", "2")}},
		"with a conversion":    {appending(nil), []resource.Object{widget("example.com/v1", "1>v2"), widget("example.com/v2", "2>v2")}},
	} {
		r.Convert = c.convert
		got, err := r.ConvertAll(t.Context(), was, "v2")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestConvertToReportsConversionsThatFail(t *testing.T) {
	t.Parallel()
	down := errors.New("down")
	fails, loses, other := widgets(), widgets(), widgets()
	fails.Convert = appending(down)
	loses.Convert = func(context.Context, []resource.Object, string) ([]resource.Object, error) { return nil, nil }
	other.Plural = "gears"
	for name, c := range map[string]struct {
		from, to *resource.Resource
		version  string
		want     string
	}{
		"the conversion fails":       {fails, fails, "v2", "down"},
		"an object is lost":          {loses, loses, "v2", "convert Widget to v2: got 0 objects for 1"},
		"before the other resource":  {fails, other, "v1", "down"},
		"after the other resource":   {other, fails, "v2", "down"},
		"to what needs none, at all": {widgets(), fails, "v1", ""},
	} {
		obj := widget("example.com/v2", "1")
		if c.from == c.to {
			obj = widget("example.com/v1", "1")
		}
		got, err := c.from.ConvertTo(t.Context(), obj, c.to, c.version)
		switch {
		case c.want == "" && err != nil, c.want != "" && (err == nil || !strings.HasSuffix(err.Error(), c.want) || got != nil):
			t.Errorf("%s: %v, %v, want %q", name, got, err, c.want)
		}
	}
}

func TestResourceNamesWhatItStores(t *testing.T) {
	t.Parallel()
	r, core := widgets(), widgets()
	core.Group, core.Namespaced = "", true
	for _, c := range []struct {
		r       *resource.Resource
		version string
		key     string
	}{
		{r, "example.com/v1", "example.com/widgets a"},
		{core, "v1", "example.com/widgets ns/a"},
	} {
		key := c.r.Key("ns", "a")
		if got := c.r.APIVersion(&c.r.Versions[0]); got != c.version || key.Bucket+" "+key.Name != c.key {
			t.Errorf("%s at %q, want %s at %q", got, key, c.version, c.key)
		}
	}
	if got, want := r.StoredKind(), (schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}); got != want {
		t.Errorf("stored as %v, want %v", got, want)
	}
	kind := schema.GroupVersionKind{Group: "new.example.com", Version: "v3", Kind: "Gear"}
	r.Storage.Alias = &resource.Alias{Kind: kind}
	if got := r.StoredKind(); got != kind {
		t.Errorf("an alias is stored as %v, want %v", got, kind)
	}
}
