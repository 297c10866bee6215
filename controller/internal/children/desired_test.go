// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/steer-dev/steer/client"
)

func TestMarksAreReadAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	for _, m := range []mark{{}, {set: "web.pages", body: 1}, {set: "web.pages", body: 1 << 63, deviation: 0xabc}} {
		child := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"other": "x"}}}
		shared := child.Annotations
		m.put(child)
		if got := markOf(child); got != m || child.Annotations["other"] != "x" {
			t.Errorf("%v is read as %v; all annotations are %v", m, got, child.Annotations)
		}
		if len(shared) != 1 {
			t.Errorf("the map of the caller is changed: %v", shared)
		}
	}
	for text, want := range map[string]mark{
		"": {}, "web.pages": {set: "web.pages"}, "web.pages/zz/1": {set: "web.pages", deviation: 1}, "web.pages/2/3/4": {set: "web.pages", body: 2, deviation: 3},
	} {
		child := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{AppliedAnnotation: text}}}
		if got := markOf(child); got != want {
			t.Errorf("%q is read as %v, want %v", text, got, want)
		}
	}
}

func TestDeviationIsWhatTheServerHasInstead(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ have, want, expect string }{
		"equal":                             {`{"a":1,"b":["x"]}`, `{"a":1,"b":["x"]}`, `null`},
		"the server has more":               {`{"a":1,"b":2}`, `{"a":1}`, `null`},
		"the server has more in an element": {`{"l":[{"a":1,"b":2}]}`, `{"l":[{"a":1}]}`, `null`},
		"another value":                     {`{"a":{"b":1}}`, `{"a":{"b":2}}`, `{"a":{"b":[1]}}`},
		"a value is missing":                {`{}`, `{"a":1}`, `{"a":[null]}`},
		"another element":                   {`{"l":["x","y"]}`, `{"l":["x","z"]}`, `{"l":{"1":["y"]}}`},
		"an added element":                  {`{"l":["x","y"]}`, `{"l":["x"]}`, `{"l":[["x","y"]]}`},
		"a missing element":                 {`{"l":[]}`, `{"l":["x"]}`, `{"l":[[]]}`},
		"a value instead of an object":      {`{"a":1}`, `{"a":{"b":1}}`, `{"a":[1]}`},
		"an object instead of a list":       {`{"a":{"b":1}}`, `{"a":[1]}`, `{"a":[{"b":1}]}`},
		"a number as text":                  {`{"a":"1"}`, `{"a":1}`, `{"a":["1"]}`},
		"an empty object that is not there": {`{}`, `{"a":{}}`, `{"a":[null]}`},
	} {
		var have, want any
		if json.Unmarshal([]byte(tt.have), &have) != nil || json.Unmarshal([]byte(tt.want), &want) != nil {
			t.Fatal(name)
		}
		got, err := json.Marshal(deviation(have, want))
		if err != nil || string(got) != tt.expect {
			t.Errorf("%s: %s, want %s; %v", name, got, tt.expect, err)
		}
	}
}

func TestDeviationComparesNumbersByValue(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		have, want any
		equal      bool
	}{
		{int64(1), float64(1), true}, {uint8(1), int64(1), true}, {float64(1.5), int64(1), false}, {"1", int64(1), false}, {int64(1), "1", false},
		{true, true, true}, {true, int64(1), false}, {nil, nil, true}, {nil, int64(0), false},
	} {
		if got := deviation(tt.have, tt.want) == nil; got != tt.equal {
			t.Errorf("%T %v and %T %v are equal: %v", tt.have, tt.have, tt.want, tt.want, got)
		}
	}
}

func TestDeviationOfAnObjectLeavesStatusAndKindOut(t *testing.T) {
	t.Parallel()
	obj := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
	body := map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "a"}, "status": map[string]any{"phase": "Pending"}}
	if got, err := deviationOf(obj, body); got != 0 || err != nil {
		t.Errorf("it deviates: %x, %v", got, err)
	}
	body["metadata"] = map[string]any{"name": "b"}
	one, err := deviationOf(obj, body)
	if one == 0 || err != nil {
		t.Errorf("another name is no deviation: %v", err)
	}
	obj.Name = "c"
	if other, err := deviationOf(obj, body); other == one || other == 0 || err != nil {
		t.Errorf("two deviations have the hash %x; %v", one, err)
	}
}

func TestStringDataBecomesData(t *testing.T) {
	t.Parallel()
	data := map[string][]byte{"a": []byte("1"), "b": []byte("2")}
	typed := &corev1.Secret{Data: data, StringData: map[string]string{"b": "3", "c": "4"}}
	storeStringData(typed)
	if diff := cmp.Diff(&corev1.Secret{Data: map[string][]byte{"a": []byte("1"), "b": []byte("3"), "c": []byte("4")}}, typed); diff != "" {
		t.Error(diff)
	}
	if len(data) != 2 || string(data["b"]) != "2" {
		t.Errorf("the map of the caller is changed: %v", data)
	}
	content := map[string]any{"data": map[string]any{"a": "MQ=="}, "stringData": map[string]any{"c": "4"}}
	untyped := &unstructured.Unstructured{Object: content}
	storeStringData(untyped)
	if diff := cmp.Diff(map[string]any{"data": map[string]any{"a": "MQ==", "c": "NA=="}}, untyped.Object); diff != "" {
		t.Error(diff)
	}
	if content["stringData"] == nil {
		t.Error("the object of the caller is changed")
	}
	for _, without := range []client.Object{&corev1.Secret{Data: data}, &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{"a": "MQ=="}}}} {
		before := without.DeepCopyObject()
		storeStringData(without)
		if diff := cmp.Diff(before, without); diff != "" {
			t.Errorf("without stringData: %s", diff)
		}
	}
}

func TestBodyIsWhatAnAuthorWrites(t *testing.T) {
	t.Parallel()
	now := metav1.Now()
	got, err := bodyOf(&corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Name: "a", Labels: map[string]string{"l": "1"}, UID: "1", ResourceVersion: "2", Generation: 3, CreationTimestamp: now,
			DeletionTimestamp: &now, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}},
		},
		Spec: corev1.PodSpec{NodeName: "n"}, Status: corev1.PodStatus{Phase: corev1.PodRunning},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"metadata": map[string]any{"name": "a", "labels": map[string]any{"l": "1"}},
		"spec":     map[string]any{"nodeName": "n", "containers": nil},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
