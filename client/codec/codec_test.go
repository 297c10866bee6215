// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
)

// told reports whether an error says what is wanted; no error for "".
func told(err error, want string) bool {
	return err == nil && want == "" || err != nil && want != "" && strings.Contains(err.Error(), want)
}

// unencodable has no protobuf form, and cannot be written as JSON.
type unencodable struct {
	F func() `json:"f"`
}

func (u *unencodable) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

func (u *unencodable) DeepCopyObject() runtime.Object { return u }

// noItems is a list without a field for its items.
type noItems struct {
	metav1.TypeMeta
	metav1.ListMeta
}

func (l *noItems) DeepCopyObject() runtime.Object { return l }

func TestEncodedObjectsDecodeToThemselves(t *testing.T) {
	t.Parallel()
	for _, mediaType := range []string{JSON, Protobuf} {
		pod := benchPod()
		pod.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
		data, err := Encode(mediaType, pod)
		if err != nil {
			t.Fatal(err)
		}
		got := &corev1.Pod{Spec: corev1.PodSpec{NodeName: "before"}}
		if err := Decode(mediaType+"; charset=x", data, got, podKind); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(pod, got); diff != "" {
			t.Errorf("%s (-sent +got):\n%s", mediaType, diff)
		}
	}
}

func TestDecodeGivesListsAndItemsTheirKind(t *testing.T) {
	t.Parallel()
	listKind := corev1.SchemeGroupVersion.WithKind("PodList")
	list := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}, Items: []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, {ObjectMeta: metav1.ObjectMeta{Name: "b"}}}}
	for _, mediaType := range []string{JSON, Protobuf} {
		data, err := Encode(mediaType, list)
		if err != nil {
			t.Fatal(err)
		}
		var got corev1.PodList
		if err := Decode(mediaType, data, &got, listKind); err != nil {
			t.Fatal(err)
		}
		kinds := []string{got.Kind, got.Items[0].Kind, got.Items[1].Kind, got.Items[1].APIVersion}
		if want := []string{"PodList", "Pod", "Pod", "v1"}; !slices.Equal(kinds, want) {
			t.Errorf("%s: kinds %v, want %v", mediaType, kinds, want)
		}
	}
	// An answer with metadata alone has a kind of its own; callers mean theirs.
	partial := metav1.PartialObjectMetadata{}
	if err := Decode(JSON, []byte(`{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadata","metadata":{"name":"a"}}`), &partial, podKind); err != nil || partial.GroupVersionKind() != podKind || partial.Name != "a" {
		t.Errorf("metadata alone: %v, %v", partial, err)
	}
	// Items that are pointers have kinds, too; a list without items keeps its own.
	var pointers struct {
		corev1.PodList
		Items []*corev1.Pod `json:"items"`
	}
	if err := Decode(JSON, []byte(`{"items":[{"metadata":{"name":"a"}}]}`), &pointers, listKind); err != nil || pointers.Items[0].Kind != "Pod" {
		t.Errorf("pointers: %v, %v", pointers.Items, err)
	}
	var none noItems
	if err := Decode(JSON, []byte(`{}`), &none, listKind); err != nil || none.Kind != "PodList" {
		t.Errorf("without items: %v, %v", none, err)
	}
}

func TestDecodeReadsUnstructuredListsItemByItem(t *testing.T) {
	t.Parallel()
	kind := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "ThingList"}
	var list unstructured.UnstructuredList
	body := `{"apiVersion":"example.com/v1","kind":"ThingList","metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":"a"},"n":1},{"kind":"Other"}]}`
	if err := Decode(JSON, []byte(body), &list, kind); err != nil {
		t.Fatal(err)
	}
	want := unstructured.UnstructuredList{
		Object: map[string]any{"apiVersion": "example.com/v1", "kind": "ThingList", "metadata": map[string]any{"resourceVersion": "7"}},
		Items: []unstructured.Unstructured{
			{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Thing", "metadata": map[string]any{"name": "a"}, "n": int64(1)}},
			{Object: map[string]any{"kind": "Other"}},
		},
	}
	if diff := cmp.Diff(want, list); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var one unstructured.Unstructured
	if err := Decode(JSON, []byte(`{"kind":"Thing","a":[1,1.5]}`), &one, kind); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{"kind": "Thing", "a": []any{int64(1), 1.5}}, one.Object); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDecodeLeavesTheObjectAloneOnAnError(t *testing.T) {
	t.Parallel()
	thing := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Thing"}
	envelope := append([]byte(protoMagic), 0x12, 0x02, 0xff, 0xff)
	for name, c := range map[string]struct {
		contentType string
		body        []byte
		into        runtime.Object
		want        string
	}{
		"JSON":                {JSON, []byte(`{"metadata":{"name":"b"},"spec":3}`), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, "decode Thing: "},
		"no prefix":           {Protobuf, []byte("x"), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, "decode Thing: a protobuf answer does not begin with the prefix of Kubernetes"},
		"envelope is cut":     {Protobuf, []byte(protoMagic + "\x12\x09a"), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, "decode Thing: "},
		"message is cut":      {Protobuf, envelope, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, "decode Thing: "},
		"no protobuf form":    {Protobuf, []byte(protoMagic), &unencodable{}, "*codec.unencodable has no protobuf form, but the server sent one"},
		"nil":                 {JSON, []byte(`{}`), (*corev1.Pod)(nil), "decode into *v1.Pod: need a pointer"},
		"unstructured":        {JSON, []byte(`[]`), &unstructured.Unstructured{}, "decode Thing: "},
		"unstructured, after": {JSON, []byte(`{} {}`), &unstructured.Unstructured{}, "decode Thing: "},
		"item is no object":   {JSON, []byte(`{"items":[3]}`), &unstructured.UnstructuredList{}, "decode Thing: an item is not an object"},
	} {
		if err := Decode(c.contentType, c.body, c.into, thing); !told(err, c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if pod, ok := c.into.(*corev1.Pod); ok && pod != nil && pod.Name != "a" {
			t.Errorf("%s: the object has changed", name)
		}
	}
}

func TestEncodeRefusesWhatATypeHasNoFormFor(t *testing.T) {
	t.Parallel()
	if SpeaksProtobuf(&unencodable{}) || !SpeaksProtobuf(&corev1.Pod{}) {
		t.Error("pods have a protobuf form, other types need none")
	}
	for mediaType, want := range map[string]string{JSON: "encode *codec.unencodable: json: unsupported type", Protobuf: "encode *codec.unencodable: the type has no protobuf form"} {
		if _, err := Encode(mediaType, &unencodable{F: func() {}}); !told(err, want) {
			t.Errorf("%s: %v, want %q", mediaType, err, want)
		}
	}
	if _, err := ItemsOf(&corev1.Pod{}); !told(err, "*v1.Pod is not a list: it needs a field Items") {
		t.Errorf("items of a pod: %v", err)
	}
}

func TestUnmarshalJSONSpeaksTheDialectOfKubernetes(t *testing.T) {
	t.Parallel()
	var typed struct {
		Name string `json:"name"`
		Any  any    `json:"any"`
	}
	if err := UnmarshalJSON([]byte(`{"NAME":"x","any":1}`), &typed); err != nil || typed.Name != "" || typed.Any != int64(1) {
		t.Errorf("%v, %v", typed, err)
	}
	var untyped map[string]any
	if err := UnmarshalJSON([]byte(`{"a":1}`), &untyped); err != nil || untyped["a"] != int64(1) {
		t.Errorf("%v, %v", untyped, err)
	}
}

func TestEventsReadWhatServersSendInOddOrder(t *testing.T) {
	t.Parallel()
	frame := func(text string) []byte { return append([]byte{0, 0, 0, byte(len(text))}, text...) }
	for name, c := range map[string]struct {
		contentType string
		body        []byte
		event       watch.EventType
		name, want  string
	}{
		"object before its type":    {JSON, []byte(`{"object":{"metadata":{"name":"a"}},"type":"ADDED"}`), watch.Added, "a", ""},
		"more fields":               {JSON, []byte(`{"more":[1,{}],"type":"MODIFIED","object":{"metadata":{"name":"a"}}}`), watch.Modified, "a", ""},
		"escaped type":              {JSON, []byte(`{"type":"ADD\u0045D","object":{"metadata":{"name":"a"}}}`), watch.Added, "a", ""},
		"other type":                {JSON, []byte(`{"type":"OTHER","object":{"metadata":{"name":"a"}}}`), "OTHER", "a", ""},
		"early error":               {JSON, []byte(`{"object":{"kind":"Status","code":410},"type":"ERROR"}`), watch.Error, "", ""},
		"no object":                 {JSON, []byte(`{"type":"ADDED"}`), "", "", "a watch event without an object"},
		"type is no text":           {JSON, []byte(`{"type":3}`), "", "", "a watch event without an object"},
		"not an object":             {JSON, []byte(`[]`), "", "", "a watch event is not a JSON object"},
		"broken":                    {JSON, []byte(`{"type":"ADDED","object":{"metadata":`), "", "", "unexpected EOF"},
		"broken name":               {JSON, []byte(`{type`), "", "", "decode Pod"},
		"broken type":               {JSON, []byte(`{"type":x`), "", "", "decode Pod"},
		"broken early object":       {JSON, []byte(`{"object":x`), "", "", "decode Pod"},
		"broken other field":        {JSON, []byte(`{"more":x`), "", "", "decode Pod"},
		"frame over the limit":      {Protobuf, []byte{0xff, 0, 0, 0}, "", "", "a watch event of 4278190080 bytes is more than the limit of 67108864"},
		"frame that is no message":  {Protobuf, frame("\x0a\x09a"), "", "", "decode watch event: "},
		"object in another field":   {Protobuf, frame("\x12\x02\x12\x00"), "", "", "decode watch event: an object in field 2"},
		"object that is no message": {Protobuf, frame("\x12\x01\x0a"), "", "", "decode watch event: "},
		"cut frame":                 {Protobuf, []byte{0, 0, 0, 9}, "", "", "unexpected EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, err := NewEvents(c.contentType, strings.NewReader(string(c.body)), podKind, newPod, Options{}).Next()
			if !told(err, c.want) {
				t.Fatalf("error %v, want %q", err, c.want)
			}
			if err != nil {
				if errors.Is(err, io.EOF) {
					t.Error("a broken stream ends as a whole one")
				}
				return
			}
			if e.Type != c.event {
				t.Errorf("type %s", e.Type)
			}
			if pod, ok := e.Object.(*corev1.Pod); ok != (c.event != watch.Error) || ok && pod.Name != c.name {
				t.Errorf("object %v", e.Object)
			}
		})
	}
}
