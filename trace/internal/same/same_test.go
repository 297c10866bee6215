// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package same_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/randfill"

	"github.com/steer-dev/steer/trace/internal/same"
)

// odd is everything that a layout knows, and a type that contains itself.
type odd struct {
	Small  int8
	Wide   int64 // after a gap
	Text   string
	Real   float64
	Nested []*odd
	Grid   [2][]string
	Bytes  []byte
	Flags  []struct{ A, B int32 }
	Names  map[string]string
	Deep   map[string]*odd
	Any    any
	Status string `json:"status,omitempty"`
}

func sample() *odd {
	return &odd{
		Small: 1, Wide: 2, Text: "a", Real: 0.5, Nested: []*odd{{Text: "b"}, nil}, Grid: [2][]string{{"x"}, {"y", "z"}},
		Bytes: []byte("bytes"), Flags: []struct{ A, B int32 }{{1, 2}, {3, 4}}, Names: map[string]string{"k": "v"},
		Deep: map[string]*odd{"d": {Wide: 3}}, Any: []any{int64(1), "x"}, Status: "s",
	}
}

func TestEveryPartOfAValueCounts(t *testing.T) {
	t.Parallel()
	if !same.Structs(sample(), sample(), "") {
		t.Fatal("two equal values are not the same")
	}
	for name, change := range map[string]func(*odd){
		"small": func(o *odd) { o.Small++ }, "wide": func(o *odd) { o.Wide++ }, "text": func(o *odd) { o.Text = "b" },
		"real": func(o *odd) { o.Real = 1 }, "pointee": func(o *odd) { o.Nested[0].Text = "c" },
		"pointer gone": func(o *odd) { o.Nested[0] = nil }, "pointer new": func(o *odd) { o.Nested[1] = &odd{} },
		"shorter": func(o *odd) { o.Nested = o.Nested[:1] }, "array": func(o *odd) { o.Grid[1][1] = "" },
		"bytes": func(o *odd) { o.Bytes[4]++ }, "flat elements": func(o *odd) { o.Flags[1].B++ },
		"map value": func(o *odd) { o.Names["k"] = "w" }, "map key": func(o *odd) { o.Names["l"] = "w" },
		"other map": func(o *odd) { o.Deep["d"].Wide++ }, "interface": func(o *odd) { o.Any = []any{int64(2), "x"} },
		"status": func(o *odd) { o.Status = "" },
	} {
		changed := sample()
		change(changed)
		if same.Structs(sample(), changed, "") {
			t.Errorf("%s: the change is not seen", name)
		}
		if got, want := same.Structs(sample(), changed, "status"), name == "status"; got != want {
			t.Errorf("%s, without the status: the same %v, want %v", name, got, want)
		}
	}
}

func TestOddArgumentsAreNotTheSame(t *testing.T) {
	t.Parallel()
	n := 1
	for _, pair := range [][2]any{
		{nil, nil}, {nil, sample()}, {sample(), nil}, {(*odd)(nil), sample()}, {sample(), (*odd)(nil)},
		{sample(), &corev1.Pod{}}, {*sample(), *sample()}, {&n, &n},
	} {
		if same.Structs(pair[0], pair[1], "") {
			t.Errorf("%T and %T are the same", pair[0], pair[1])
		}
	}
}

// TestCopiesAreTheSameAndTheSameIsEqual fills Pods at random, as other types of
// the API have no shapes that they lack.
func TestCopiesAreTheSameAndTheSameIsEqual(t *testing.T) {
	t.Parallel()
	fill := randfill.NewWithSeed(1).NilChance(0.3).NumElements(0, 2).MaxDepth(12).Funcs(
		func(q *resource.Quantity, c randfill.Continue) {
			*q = *resource.NewQuantity(c.Int63n(1000), resource.DecimalSI)
		},
		func(m *metav1.Time, c randfill.Continue) { *m = metav1.Unix(c.Int63n(1e9), 0) },
		func(m *metav1.MicroTime, c randfill.Continue) { *m = metav1.NewMicroTime(time.Unix(c.Int63n(1e9), 0)) },
		func(f *metav1.FieldsV1, _ randfill.Continue) { f.SetRawString(`{"f:spec":{}}`) },
		func(r *runtime.RawExtension, c randfill.Continue) { r.Raw = []byte(c.String(9)) },
	)
	var last *corev1.Pod
	differing := 0
	for round := range 150 {
		pod := &corev1.Pod{}
		fill.Fill(pod)
		if !same.Structs(pod, pod.DeepCopy(), "") {
			t.Fatal("a copy is not the same")
		}
		// One field of one copy is filled anew.
		changed := pod.DeepCopy()
		spec := reflect.ValueOf(&changed.Spec).Elem()
		field := spec.Field(round % spec.NumField())
		fill.Fill(field.Addr().Interface())
		for _, other := range []*corev1.Pod{changed, last} {
			if other == nil || !same.Structs(pod, other, "") {
				differing++
				continue
			}
			if x, y := encoded(t, pod), encoded(t, other); x != y {
				t.Fatalf("these are called the same:\n%s\n%s", x, y)
			}
		}
		last = pod
	}
	if differing < 150 {
		t.Errorf("only %d of 300 pairs differ: the test proves little", differing)
	}
}

func encoded(t *testing.T, value any) string {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestContentsAreComparedAllTheWayDown(t *testing.T) {
	t.Parallel()
	content := func(text string) map[string]any {
		var out map[string]any
		if err := json.Unmarshal([]byte(text), &out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	const base = `{"spec":{"a":[1,"x",true,null,{"b":2.5}]},"status":{"c":1}}`
	for text, want := range map[string][2]bool{ // with and without the status
		base: {true, true},
		`{"spec":{"a":[1,"x",true,null,{"b":2.5}]},"status":{"c":2}}`:        {false, true},
		`{"spec":{"a":[1,"x",true,null,{"b":2.5}]}}`:                         {false, true},
		`{"spec":{"a":[1,"x",true,null,{"b":2}]},"status":{"c":1}}`:          {false, false},
		`{"spec":{"a":[1,"x",true,null]},"status":{"c":1}}`:                  {false, false},
		`{"spec":{"a":[1,"x",true,null,{"b":2.5}]},"status":{"c":1},"d":1}`:  {false, false},
		`{"spec":{"a":[1,"x",true,false,{"b":2.5}]},"status":{"c":1}}`:       {false, false},
		`{"spec":{"a":[1,"x",false,null,{"b":2.5}]},"status":{"c":1}}`:       {false, false},
		`{"spec":{"a":[1,"y",true,null,{"b":2.5}]},"status":{"c":1}}`:        {false, false},
		`{"spec":{"a":[1,"x",true,null,{"b":2.5,"e":1}]},"status":{"c":1}}`:  {false, false},
		`{"spec":{"a":[1,"x",true,null,{"e":2.5}]},"status":{"c":1}}`:        {false, false},
		`{"spec":{"a":["1","x",true,null,{"b":2.5}]},"status":{"c":1}}`:      {false, false},
		`{"spec":{"a":[1,"x",true,null,{"b":2.5}],"f":{}},"status":{"c":1}}`: {false, false},
	} {
		if got := same.Contents(content(base), content(text), ""); got != want[0] {
			t.Errorf("%s: the same %v", text, got)
		}
		if got := same.Contents(content(base), content(text), "status"); got != want[1] {
			t.Errorf("%s, without the status: the same %v", text, got)
		}
	}
}
