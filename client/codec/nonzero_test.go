// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
)

// broken cannot be written.
type broken struct{ A int }

func (broken) MarshalJSON() ([]byte, error) { return nil, errors.New("broken") }

type inner struct {
	A string `json:"a"`
	B int    `json:"b,omitempty"`
}

type embedded struct {
	Deep string `json:"deep"`
}

func TestNonZeroLeavesOutWhatIsZeroInGo(t *testing.T) {
	t.Parallel()
	type forms struct {
		embedded
		*inner
		Text     string `json:"text"`
		Untagged string
		Dash     string `json:"-"`
		DashName string `json:"-,"` //nolint:staticcheck // encoding/json names it "-"
		hidden   string
		Pointer  *int                 `json:"pointer"`
		Struct   inner                `json:"struct"`
		Kept     inner                `json:"kept,omitempty"`
		Ptr      *inner               `json:"ptr,omitempty"`
		Map      map[string]inner     `json:"map"`
		Empty    map[string]string    `json:"empty,omitempty"`
		Told     map[string]string    `json:"told"`
		List     []inner              `json:"list"`
		None     []string             `json:"none,omitempty"`
		Some     []string             `json:"some"`
		Bytes    []byte               `json:"bytes"`
		Array    [2]int               `json:"array"`
		Keys     map[int]string       `json:"keys"`
		Any      any                  `json:"any"`
		Anys     []any                `json:"anys"`
		Nils     map[string]*int      `json:"nils"`
		Time     metav1.Time          `json:"time"`
		Quantity resource.Quantity    `json:"quantity"`
		Port     intstr.IntOrString   `json:"port"`
		Ports    []intstr.IntOrString `json:"ports"`
		Float    float64              `json:"float"`
		Bool     bool                 `json:"bool"`
	}
	zero := 0
	for name, c := range map[string]struct {
		in   any
		want string
		err  string
	}{
		"all zero":           {in: &forms{}, want: `{}`},
		"all zero, hidden":   {in: &forms{hidden: "x"}, want: `{}`},
		"embedded":           {in: forms{embedded: embedded{"d"}, inner: &inner{A: "a"}}, want: `{"deep":"d","a":"a"}`},
		"texts":              {in: &forms{Text: "t", Untagged: "u", Dash: "d", DashName: "n"}, want: `{"text":"t","Untagged":"u","-":"n"}`},
		"a pointer to zero":  {in: &forms{Pointer: &zero, Ptr: &inner{}}, want: `{"pointer":0,"ptr":{}}`},
		"struct in part":     {in: &forms{Struct: inner{B: 1}, Kept: inner{A: "a"}}, want: `{"struct":{"b":1},"kept":{"a":"a"}}`},
		"maps":               {in: &forms{Map: map[string]inner{"a": {}, "b": {A: "x"}}, Empty: map[string]string{}, Told: map[string]string{}, Keys: map[int]string{1: ""}}, want: `{"map":{"a":{},"b":{"a":"x"}},"told":{},"keys":{"1":""}}`},
		"zero values inside": {in: &forms{Told: map[string]string{"a": ""}, Nils: map[string]*int{"a": nil}, Anys: []any{nil, 0, inner{}}}, want: `{"told":{"a":""},"nils":{"a":null},"anys":[null,0,{}]}`},
		"lists":              {in: &forms{List: []inner{{}, {B: 1}}, None: []string{}, Some: []string{}, Bytes: []byte("b"), Array: [2]int{0, 1}}, want: `{"list":[{},{"b":1}],"some":[],"bytes":"Yg==","array":[0,1]}`},
		"types that write themselves": {
			in: &forms{
				Time: metav1.NewTime(time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)), Quantity: resource.MustParse("1Gi"), Port: intstr.FromString("http"),
				Ports: []intstr.IntOrString{{}}, Any: inner{A: "x"}, Float: 1.5, Bool: true,
			},
			want: `{"time":"2020-01-02T03:04:05Z","quantity":"1Gi","port":"http","ports":[0],"any":{"a":"x"},"float":1.5,"bool":true}`,
		},
		"nil":         {in: (*forms)(nil), err: "encode *codec.forms: nil"},
		"not structs": {in: 3, err: "encode int: not a struct"},
		"field": {in: struct {
			F broken `json:"f"`
		}{broken{1}}, err: "f: json: error calling MarshalJSON"},
		"in a list": {in: struct {
			F []broken `json:"f"`
		}{[]broken{{}}}, err: "f: [0]: json: error calling MarshalJSON"},
		"in a map": {in: struct {
			F map[string]broken `json:"f"`
		}{map[string]broken{"k": {}}}, err: "f: k: json: error calling MarshalJSON"},
		"in an embedded struct": {in: struct {
			Outer struct {
				F broken `json:"f"`
			}
		}{struct {
			F broken `json:"f"`
		}{broken{1}}}, err: "Outer: f: json: error calling MarshalJSON"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := NonZero(c.in)
			if !told(err, c.err) {
				t.Fatalf("error %v, want %q", err, c.err)
			}
			if err != nil {
				return
			}
			var want map[string]any
			if err := UnmarshalJSON([]byte(c.want), &want); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// strange is an apply configuration that is no object.
type strange struct{ data string }

func (strange) IsApplyConfiguration() {}

func (s strange) MarshalJSON() ([]byte, error) {
	if s.data == "" {
		return nil, errors.New("broken")
	}
	return []byte(s.data), nil
}

func TestApplyBodyIsWhatACallerClaims(t *testing.T) {
	t.Parallel()
	kindOf := func(obj runtime.Object) (schema.GroupVersionKind, error) {
		if _, ok := obj.(*corev1.Pod); !ok {
			return schema.GroupVersionKind{}, errors.New("not registered")
		}
		return podKind, nil
	}
	now := metav1.NewTime(time.Unix(0, 0))
	seconds := int64(1)
	server := metav1.ObjectMeta{
		Name: "a", Namespace: "n", Generation: 3, CreationTimestamp: now, DeletionTimestamp: &now, DeletionGracePeriodSeconds: &seconds,
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}}, ResourceVersion: "5", UID: "u",
	}
	unstructuredPod := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "a", "generation": int64(3), "selfLink": "x"}, "spec": map[string]any{"zero": int64(0)},
	}}
	for name, c := range map[string]struct {
		in        any
		want, err string
	}{
		"typed": {
			in:   &corev1.Pod{ObjectMeta: server, Spec: corev1.PodSpec{NodeName: "node"}},
			want: `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"n","resourceVersion":"5","uid":"u"},"spec":{"nodeName":"node"}}`,
		},
		"unstructured":    {in: unstructuredPod, want: `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"zero":0}}`},
		"configuration":   {in: applycorev1.Pod("a", "n").WithGeneration(3).WithSpec(applycorev1.PodSpec().WithNodeName("")), want: `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"n"},"spec":{"nodeName":""}}`},
		"not registered":  {in: &corev1.Service{}, err: "not registered"},
		"no kind":         {in: &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1"}}, err: "apiVersion and kind are missing: set them"},
		"no version":      {in: &unstructured.Unstructured{Object: map[string]any{"kind": "Pod"}}, err: "apiVersion and kind are missing: set them"},
		"other":           {in: 3, err: "neither an Object nor an apply configuration"},
		"nil":             {in: (*corev1.Pod)(nil), err: "nil"},
		"broken":          {in: strange{}, err: "broken"},
		"no JSON object":  {in: strange{`[]`}, err: "json"},
		"list of strings": {in: strange{`{"apiVersion":"v1","kind":"Pod","metadata":"x"}`}, want: `{"apiVersion":"v1","kind":"Pod","metadata":"x"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := ApplyBody(c.in, kindOf)
			if !told(err, c.err) {
				t.Fatalf("error %v, want %q", err, c.err)
			}
			if err != nil {
				return
			}
			var want map[string]any
			if err := UnmarshalJSON([]byte(c.want), &want); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if unstructuredPod.GetGeneration() != 3 {
		t.Error("the caller's object has changed")
	}
}

func TestIdentityIsEmptyWhereAnObjectHasNone(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		kind schema.GroupVersionKind
		key  types.NamespacedName
	}{
		`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a","namespace":"n"}}`: {
			schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, types.NamespacedName{Namespace: "n", Name: "a"},
		},
		`{"kind":3,"metadata":"x"}`: {},
		`{"metadata":{"name":3}}`:   {},
	} {
		var body map[string]any
		if err := json.Unmarshal([]byte(text), &body); err != nil {
			t.Fatal(err)
		}
		if kind, key := Identity(body); kind != want.kind || key != want.key {
			t.Errorf("%s: %v, %v", text, kind, key)
		}
	}
}
