// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package doc_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"

	"github.com/steer-dev/steer/apiserver/internal/doc"
	"github.com/steer-dev/steer/internal/jsontext"
)

const widget = `{"spec":{"b":[1,{"x":null}],"a":"é<"},"kind":"Widget","apiVersion":"example.com/v1","fraction":1.0,"status":null,` +
	`"metadata":{"name":"a","managedFields":[{"manager":"m","fieldsV1":{"f:a":{}}}],"labels":{"a":"b"},"generation":3}}`

func parse(t *testing.T, text string) *doc.Doc {
	t.Helper()
	d, err := doc.Parse([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return d
}

func decode(t *testing.T, text string) map[string]any {
	t.Helper()
	var content map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts([]byte(text), &content); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return content
}

func TestContentIsACopyAndSetContentTheWayBack(t *testing.T) {
	t.Parallel()
	d, whole := parse(t, widget), decode(t, widget)
	if diff := cmp.Diff(whole, d.Content()); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	changed := d.Content()
	changed["spec"].(map[string]any)["a"] = "changed"
	changed["metadata"].(map[string]any)["labels"].(map[string]any)["a"] = "changed"
	if diff := cmp.Diff(whole, d.Content()); diff != "" {
		t.Errorf("a change of a copy shows (-want +got):\n%s", diff)
	}
	other := d.Copy()
	other.SetContent(changed)
	if diff := cmp.Diff(changed, other.Content()); diff != "" {
		t.Errorf("set (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(whole, d.Content()); diff != "" || other.Equal(d) {
		t.Errorf("the original of a changed copy (-want +got):\n%s", diff)
	}
	part := d.Content("spec", "metadata", "none")
	if diff := cmp.Diff(map[string]any{"spec": whole["spec"], "metadata": whole["metadata"]}, part); diff != "" {
		t.Errorf("some members (-want +got):\n%s", diff)
	}
	delete(part, "spec")
	d.SetContent(part, "spec", "metadata", "none")
	delete(whole, "spec")
	if diff := cmp.Diff(whole, d.Content()); diff != "" {
		t.Errorf("without spec (-want +got):\n%s", diff)
	}
	d.SetContent(nil, "metadata")
	delete(whole, "metadata")
	if diff := cmp.Diff(whole, d.Content()); diff != "" || d.Has("metadata") {
		t.Errorf("without metadata (-want +got):\n%s", diff)
	}
}

// object is what both forms have.
type object interface {
	metav1.Object
	schema.ObjectKind
}

func TestMetadataIsThatOfUnstructuredObjects(t *testing.T) {
	t.Parallel()
	at := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	seconds, yes := int64(30), true
	changes := map[string]func(object){
		"kind":     func(o object) { o.SetGroupVersionKind(schema.GroupVersionKind{Group: "g", Version: "v", Kind: "K"}) },
		"names":    func(o object) { o.SetName("n"); o.SetGenerateName("g"); o.SetNamespace("s"); o.SetSelfLink("l") },
		"no names": func(o object) { o.SetName(""); o.SetGenerateName(""); o.SetNamespace(""); o.SetSelfLink("") },
		"identity": func(o object) {
			o.SetUID("u")
			o.SetResourceVersion("7")
			o.SetGeneration(4)
			o.SetCreationTimestamp(at)
		},
		"none": func(o object) {
			o.SetUID("")
			o.SetResourceVersion("")
			o.SetGeneration(0)
			o.SetCreationTimestamp(metav1.Time{})
		},
		"deletion":   func(o object) { o.SetDeletionTimestamp(&at); o.SetDeletionGracePeriodSeconds(&seconds) },
		"life":       func(o object) { o.SetDeletionTimestamp(nil); o.SetDeletionGracePeriodSeconds(nil) },
		"texts":      func(o object) { o.SetLabels(map[string]string{"x": "y"}); o.SetAnnotations(map[string]string{}) },
		"no texts":   func(o object) { o.SetLabels(nil); o.SetAnnotations(nil) },
		"finalizers": func(o object) { o.SetFinalizers([]string{"f"}) },
		"no more":    func(o object) { o.SetFinalizers(nil); o.SetOwnerReferences(nil); o.SetManagedFields(nil) },
		"owners": func(o object) {
			o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "A", Name: "a", UID: "b", Controller: &yes}})
		},
		"managers": func(o object) {
			o.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "m", Time: &at, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:x":{}}`)}})
		},
		"nobody": func(o object) { o.SetManagedFields([]metav1.ManagedFieldsEntry{}) },
	}
	for _, text := range []string{
		widget, `{}`, `{"metadata":{}}`, `{"metadata":"text"}`, `{"metadata":null}`, `{"kind":1,"apiVersion":null,"metadata":{"name":1,"labels":{"a":null},"generation":"x","finalizers":[1],"ownerReferences":{}}}`,
		`{"apiVersion":"a/b/c","kind":"\u003c","metadata":{"creationTimestamp":"2026-01-02T03:04:05Z","deletionTimestamp":"2026-01-02T03:04:05Z","deletionGracePeriodSeconds":1,"finalizers":["a"],"uid":"u"}}`,
	} {
		for name, change := range changes {
			d, u := parse(t, text), &unstructured.Unstructured{Object: decode(t, text)}
			change(d)
			change(u)
			if diff := cmp.Diff(u.Object, d.Content()); diff != "" {
				t.Errorf("%s: %s (-unstructured +doc):\n%s", text, name, diff)
			}
			if diff := cmp.Diff(fieldsOf(u), fieldsOf(d)); diff != "" {
				t.Errorf("%s: %s is read (-unstructured +doc):\n%s", text, name, diff)
			}
		}
	}
}

// fieldsOf reads all metadata.
func fieldsOf(o interface {
	metav1.Object
	runtime.Object
}) []any {
	created := o.GetCreationTimestamp()
	return []any{
		o.GetObjectKind().GroupVersionKind(), o.GetName(), o.GetGenerateName(), o.GetNamespace(), o.GetSelfLink(), o.GetUID(), o.GetResourceVersion(), o.GetGeneration(),
		created, o.GetDeletionTimestamp(), o.GetDeletionGracePeriodSeconds(), o.GetLabels(), o.GetAnnotations(), o.GetFinalizers(), o.GetOwnerReferences(), o.GetManagedFields(),
	}
}

func TestLibrariesConvertWhatADocIs(t *testing.T) {
	t.Parallel()
	d := parse(t, widget)
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(d)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(decode(t, string(encode(t, d))), content); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var again doc.Doc
	if err := json.Unmarshal(encode(t, d), &again); err != nil || again.GetName() != "a" {
		t.Errorf("decoded as %v: %v", again.Content(), err)
	}
}

func encode(t *testing.T, d *doc.Doc) []byte {
	t.Helper()
	text, err := d.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// FuzzDoc: an object has the content that the library decodes, however it was made, and its
// encoding is that of encoding/json.
func FuzzDoc(f *testing.F) {
	for _, text := range []string{
		widget, `{}`, `null`, `{"a":1,"a":2}`, `{"metadata":{"a":1},"metadata":{}}`, `{"metadata":1,"metadata":{}}`, `{"metadata":{"managedFields":1,"managedFields":2}}`,
		`{"metadata":{"b":1,"a":2},"s":{"b":[ {"z":1,"a":"<&>\"\\\n\u0041\/"} ],"a":{"c":{},"b":{ }},"é":"é\u2028"},"n":[1.0,1.5,-0,1e30,0.10],"u":{"b":1,"a":2,"a":3}}`,
		`{"a":{"b":{"z":1,"y":{"b":2,"a":3},"x":[]}},"c":{"d":10000000000000000000,"e":-7},"f":"","g":null,"h":"\u007f"}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var want map[string]any
		strict, libraryErr := kjson.UnmarshalStrict(text, &want)
		if plain, ok := doc.ParseFast(text); ok && (libraryErr != nil || len(strict) > 0 || want == nil) {
			t.Fatalf("takes %q as %v, the library says %v, %v", text, plain.Content(), libraryErr, strict)
		}
		d, err := doc.Parse(text)
		if (err == nil) != (libraryErr == nil) {
			t.Fatalf("%q: %v, the library says %v", text, err, libraryErr)
		}
		if err != nil {
			return
		}
		if want == nil {
			want = map[string]any{}
		}
		made := doc.New(runtime.DeepCopyJSON(want))
		canonical, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range []*doc.Doc{d, made, d.Copy()} {
			if diff := cmp.Diff(want, d.Content()); diff != "" {
				t.Fatalf("%q (-library +doc):\n%s", text, diff)
			}
			if got := encode(t, d); string(got) != string(canonical) {
				t.Fatalf("%q: encoded to %s, want %s", text, got, canonical)
			}
			if !d.Equal(made) || !made.Equal(d) || d.Len() != len(want) {
				t.Fatalf("%q: %v differs from %v", text, d.Content(), made.Content())
			}
		}
		var names []string
		doc.Each(d, made, func(name string, a, b doc.Value) bool {
			names = append(names, name)
			x, known := a.Text()
			y, alsoKnown := b.Text()
			if x != y || known != alsoKnown {
				t.Errorf("%q: %s is %q when parsed and %q when encoded", text, name, x, y)
			}
			if !known {
				return true
			}
			r := x.Reader()
			if diff := cmp.Diff(want[name], walked(&r)); diff != "" || !jsontext.Equal(want[name], x) {
				t.Errorf("%q (-decoded +walked):\n%s", text, diff)
			}
			return true
		})
		if !slices.IsSorted(names) {
			t.Errorf("%q: the members are %q", text, names)
		}
	})
}

// walked decodes the current value of a reader with all of its methods.
func walked(r *jsontext.Reader) any {
	switch r.Kind() {
	case '{':
		out := map[string]any{}
		for name, ok := r.Member(); ok; name, ok = r.Member() {
			out[name] = walked(r)
		}
		return out
	case '[':
		out := []any{}
		for r.Element() {
			out = append(out, walked(r))
		}
		return out
	case '"':
		return r.Text()
	case 't', 'f', 'n':
		return r.Take().Decode()
	}
	whole, fraction, isFraction := r.Number()
	if isFraction {
		return fraction
	}
	return whole
}
