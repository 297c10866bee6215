// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/steer-dev/steer/apiserver/internal/recordcache"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/storage"
)

// selection returns the selection of a list in a namespace; empty: in all.
func (f *fixture) selection(namespace string, o *internalversion.ListOptions) (*Selection, error) {
	return f.Select(&resource.Request{Resource: f.in.Resource, Version: &f.in.Versions[0], Namespace: namespace}, f.in, o)
}

// list returns the page of a list as text: names, revision, whether there is another page
// and how many objects it has.
func (f *fixture) list(namespace string, o internalversion.ListOptions) (text, next string, err error) {
	f.Helper()
	sel, err := f.selection(namespace, &o)
	if err != nil {
		return "", "", err
	}
	page, err := f.List(f.Context(), sel, &o)
	if err != nil {
		return "", "", err
	}
	var names []string
	for _, rec := range page.Records {
		names = append(names, rec.Key.Name)
	}
	text = fmt.Sprintf("%s at %d", strings.Join(names, " "), page.Revision)
	if page.Continue != "" {
		text += " and more"
	}
	if page.Remaining != nil {
		text += fmt.Sprint(" ", *page.Remaining)
	}
	return text, page.Continue, nil
}

// fill stores objects whose names are given as "namespace/name", at revisions from 1 on.
func (f *fixture) fill(names ...string) {
	f.Helper()
	for _, name := range names {
		namespace, name, _ := strings.Cut(name, "/")
		obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"name": name}}, Data: map[string]string{"k": name}}
		op := f.write("create", "", WriteOptions{})
		op.Request.Namespace = namespace
		if _, err := op.Create(f.Context(), obj); err != nil {
			f.Fatal(err)
		}
	}
}

func TestListPagesShowOneRevision(t *testing.T) {
	t.Parallel()
	labelled := labels.SelectorFromSet(labels.Set{"name": "a"})
	for name, c := range map[string]struct {
		namespace string
		options   internalversion.ListOptions
		pages     []string
	}{
		"all namespaces":       {"", internalversion.ListOptions{Limit: 3}, []string{"x/a x/b y/a at 4 and more 1", "y/c at 4"}},
		"one namespace":        {"y", internalversion.ListOptions{Limit: 1}, []string{"y/a at 4 and more 1", "y/c at 4"}},
		"a full page":          {"x", internalversion.ListOptions{Limit: 2}, []string{"x/a x/b at 4"}},
		"selected":             {"", internalversion.ListOptions{Limit: 1, LabelSelector: labelled}, []string{"x/a at 4 and more", "y/a at 4 and more", " at 4"}},
		"any revision":         {"", internalversion.ListOptions{Limit: 1, ResourceVersion: "0"}, []string{"x/a x/b y/a y/c at 4"}},
		"an older revision":    {"", internalversion.ListOptions{Limit: 1, ResourceVersion: "2"}, []string{"x/a at 2 and more 1", "x/b at 2"}},
		"not older than":       {"", internalversion.ListOptions{ResourceVersion: "2"}, []string{"x/a x/b y/a y/c at 4"}},
		"exactly":              {"", internalversion.ListOptions{ResourceVersion: "3", ResourceVersionMatch: metav1.ResourceVersionMatchExact}, []string{"x/a x/b y/a at 3"}},
		"a page not older":     {"", internalversion.ListOptions{ResourceVersion: "2", Limit: 9, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan}, []string{"x/a x/b y/a y/c at 4"}},
		"one name":             {"x", internalversion.ListOptions{FieldSelector: fields.ParseSelectorOrDie("metadata.name=b")}, []string{"x/b at 4"}},
		"a name in all":        {"", internalversion.ListOptions{FieldSelector: fields.ParseSelectorOrDie("metadata.name=a")}, []string{"x/a y/a at 4"}},
		"a name and a label":   {"x", internalversion.ListOptions{LabelSelector: labelled, FieldSelector: fields.ParseSelectorOrDie("metadata.name=b")}, []string{" at 4"}},
		"two names":            {"x", internalversion.ListOptions{FieldSelector: fields.ParseSelectorOrDie("metadata.name=b,metadata.name=a")}, []string{" at 4"}},
		"not a name":           {"x", internalversion.ListOptions{FieldSelector: fields.ParseSelectorOrDie("metadata.name!=b")}, []string{"x/a at 4"}},
		"an absent name":       {"x", internalversion.ListOptions{FieldSelector: fields.ParseSelectorOrDie("metadata.name=z")}, []string{" at 4"}},
		"a namespace":          {"", internalversion.ListOptions{FieldSelector: fields.ParseSelectorOrDie("metadata.namespace=y")}, []string{"y/a y/c at 4"}},
		"not a namespace":      {"", internalversion.ListOptions{FieldSelector: fields.ParseSelectorOrDie("metadata.namespace!=y")}, []string{"x/a x/b at 4"}},
		"a field and its name": {"y", internalversion.ListOptions{FieldSelector: fields.ParseSelectorOrDie("data.k=c,metadata.name!=a")}, []string{"y/c at 4"}},
	} {
		f := newFixture(t, resource.DeletionRules{})
		f.in.Versions[0].Selectable = []resource.SelectableField{{Path: "data.k", Keys: []string{"data", "k"}}}
		f.fill("x/a", "x/b", "y/a", "y/c")
		for i, want := range c.pages {
			got, next, err := f.list(c.namespace, c.options)
			if err != nil || got != want {
				t.Errorf("%s: page %d is %s, want %s: %v", name, i+1, got, want, err)
			}
			c.options.Continue = next
			c.options.ResourceVersion = ""
			f.fill(fmt.Sprint("y/b", i)) // pages do not show what is written between them
		}
	}
}

func TestListRefusesWhatItCannotSelect(t *testing.T) {
	t.Parallel()
	f := newFixture(t, resource.DeletionRules{})
	f.fill("x/a", "x/b")
	_, next, err := f.list("x", internalversion.ListOptions{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		options internalversion.ListOptions
		edit    func(*resource.Version)
		want    string
	}{
		"a revision that is no number": {options: internalversion.ListOptions{ResourceVersion: "x"}, want: `invalid resource version: resourceVersion: Invalid value: "x": strconv.ParseUint: parsing "x": invalid syntax`},
		"a token and a revision":       {options: internalversion.ListOptions{Continue: next, ResourceVersion: "1"}, want: "specifying resource version is not allowed when using continue"},
		"a field of a kind without any": {
			options: internalversion.ListOptions{FieldSelector: fields.ParseSelectorOrDie("data.k=v")},
			want:    `"data.k" is not a known field selector: only "metadata.name", "metadata.namespace"`,
		},
		"an unknown field": {
			options: internalversion.ListOptions{FieldSelector: fields.ParseSelectorOrDie("data.other=v")},
			edit:    func(v *resource.Version) { v.Selectable = []resource.SelectableField{{Path: "data.k"}} },
			want:    "field label not supported: data.other",
		},
		"a field of a kind with a message": {
			options: internalversion.ListOptions{FieldSelector: fields.ParseSelectorOrDie("data.other=v")},
			edit:    func(v *resource.Version) { v.FieldSelectorMessage = "no field %q here" },
			want:    `no field "data.other" here`,
		},
	} {
		f := newFixture(t, resource.DeletionRules{})
		if c.edit != nil {
			c.edit(&f.in.Versions[0])
		}
		if got, _, err := f.list("x", c.options); !apierrors.IsBadRequest(err) || err.Error() != c.want {
			t.Errorf("%s: %s, %v, want %s", name, got, err, c.want)
		}
	}
}

func TestSelectionOfClusterScopedObjectsHasNoNamespace(t *testing.T) {
	t.Parallel()
	f := newFixture(t, resource.DeletionRules{})
	f.in.Namespaced = false
	f.fill("/a", "/b")
	if got, _, err := f.list("", internalversion.ListOptions{FieldSelector: fields.ParseSelectorOrDie("metadata.name=b")}); err != nil || got != "/b at 2" && got != "b at 2" {
		t.Errorf("%s, %v", got, err)
	}
	byNamespace := internalversion.ListOptions{FieldSelector: fields.ParseSelectorOrDie("metadata.namespace=x")}
	if got, _, err := f.list("", byNamespace); err != nil || got != " at 2" {
		t.Errorf("a typed kind without fields: %s, %v", got, err)
	}
	f.in.Versions[0].Selectable = []resource.SelectableField{{Path: "data.k"}}
	if _, _, err := f.list("", byNamespace); !apierrors.IsBadRequest(err) {
		t.Errorf("a kind with fields: %v", err)
	}
}

// TestListAfterCompactionNamesTheNextStep: a continued list gets a token with which it goes
// on at the newest revision.
func TestListAfterCompactionNamesTheNextStep(t *testing.T) {
	t.Parallel()
	f := newFixture(t, resource.DeletionRules{})
	f.fill("x/a", "x/b")
	_, next, err := f.list("x", internalversion.ListOptions{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	f.fill("x/c")
	if err := f.store.Compact(t.Context(), 3); err != nil {
		t.Fatal(err)
	}
	_, _, err = f.list("x", internalversion.ListOptions{ResourceVersion: "1", ResourceVersionMatch: metav1.ResourceVersionMatchExact})
	if !apierrors.IsResourceExpired(err) || err.Error() != tooOldList {
		t.Errorf("a list at a compacted revision: %v", err)
	}
	_, _, err = f.list("x", internalversion.ListOptions{Limit: 1, Continue: next})
	var status *apierrors.StatusError
	if !apierrors.IsResourceExpired(err) || !errors.As(err, &status) || status.ErrStatus.Message != tooOldContinue {
		t.Fatalf("the next page of a compacted list: %v", err)
	}
	if got, _, err := f.list("x", internalversion.ListOptions{Limit: 5, Continue: status.ErrStatus.ListMeta.Continue}); err != nil || got != "x/b x/c at 3" {
		t.Errorf("the list goes on with %s, %v", got, err)
	}
	_, _, err = f.list("x", internalversion.ListOptions{ResourceVersion: "9", ResourceVersionMatch: metav1.ResourceVersionMatchExact})
	if !apierrors.IsTimeout(err) || !apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge) {
		t.Errorf("a list at a future revision: %v", err)
	}
}

func TestGetReadsAtLeastTheRevision(t *testing.T) {
	t.Parallel()
	f := newFixture(t, resource.DeletionRules{})
	f.fill("x/a")
	if rec, err := f.Get(t.Context(), f.in, "x", "a", 1); err != nil || rec.Modified != 1 {
		t.Errorf("%v, %v", rec, err)
	}
	if _, err := f.Get(t.Context(), f.in, "y", "a", 0); !apierrors.IsNotFound(err) || err.Error() != `configmaps "a" not found` {
		t.Errorf("an absent object: %v", err)
	}
	_ = f.store.Close()
	if _, err := f.Get(t.Context(), f.in, "x", "a", 5); !errors.Is(err, storage.ErrClosed) {
		t.Errorf("a revision that a closed store does not reach: %v", err)
	}
}

func TestWatchAndCandidatesAreThoseOfTheSelection(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		namespace, fields string
		want              string // records that both yield; a watch of one name may yield more
	}{
		"all":           {"", "", "x/a x/b y/a"},
		"one namespace": {"x", "", "x/a x/b"},
		"one object":    {"x", "metadata.name=b", "x/b"},
		"one absent":    {"y", "metadata.name=b", ""},
		"a name in all": {"", "metadata.name=a", "x/a x/b y/a"},
	} {
		f := newFixture(t, resource.DeletionRules{})
		sel, err := f.selection(c.namespace, &internalversion.ListOptions{FieldSelector: fields.ParseSelectorOrDie(c.fields)})
		if err != nil {
			t.Fatal(err)
		}
		cursor, err := f.Watch(sel, 0)
		if err != nil {
			t.Fatal(err)
		}
		f.fill("x/a", "x/b", "y/a")
		if got := names(func(yield func(*storage.Record) bool) { sel.Candidates(f.store.Latest())(yield) }); got != c.want {
			t.Errorf("%s: candidates are %s, want %s", name, got, c.want)
		}
		if c.want == "" { // nothing arrives
			cursor.Close()
			continue
		}
		batch, err := cursor.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got := names(func(yield func(*storage.Record) bool) {
			for _, e := range batch.Events {
				if !yield(e.Record) {
					return
				}
			}
		})
		cursor.Close()
		if got != c.want {
			t.Errorf("%s: a watch gets %s, want %s", name, got, c.want)
		}
	}
}

// names returns the names of the keys of records.
func names(records func(func(*storage.Record) bool)) string {
	var out []string
	for rec := range records {
		out = append(out, rec.Key.Name)
	}
	return strings.Join(out, " ")
}

// TestMetadataOfRecordsIsProtobuf: of any kind, with the same fields as its JSON.
func TestMetadataOfRecordsIsProtobuf(t *testing.T) {
	t.Parallel()
	f := newFixture(t, resource.DeletionRules{})
	created := f.create("a", func(c *corev1.ConfigMap) { c.Labels = map[string]string{"a": "b"} })
	rec := f.store.Get(f.in.Key("default", "a"))
	for range 2 {
		raw, err := f.MetadataProto(t.Context(), f.in, &f.in.Versions[0], rec)
		if err != nil {
			t.Fatal(err)
		}
		var got metav1.PartialObjectMetadata
		if err := got.Unmarshal(raw); err != nil || got.ObjectMeta.String() != created.ObjectMeta.String() {
			t.Errorf("%v, want %v: %v", got.ObjectMeta, created.ObjectMeta, err)
		}
		if _, cached := recordcache.Cached(rec, &f.in.Versions[0], recordcache.MetadataProto); !cached {
			t.Error("the protobuf of the metadata is not cached")
		}
	}
	odd := &storage.Record{Key: rec.Key, Value: []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":7}}`), Modified: 9}
	if _, err := f.MetadataProto(t.Context(), f.in, &f.in.Versions[0], odd); err == nil || !strings.HasPrefix(err.Error(), "read stored metadata: ") {
		t.Errorf("metadata that cannot be read: %v", err)
	}
}
