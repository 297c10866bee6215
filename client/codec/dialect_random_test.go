// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/randfill"
)

// custom is what operators' own types look like, and more.
type custom struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              struct {
		Replicas *int32                      `json:"replicas,omitempty"`
		Ratio    float64                     `json:"ratio"`
		Timeout  metav1.Duration             `json:"timeout"`
		Raw      runtime.RawExtension        `json:"raw"`
		Data     map[string][]byte           `json:"data"`
		Nested   map[string]map[string]int64 `json:"nested"`
		Names    []string                    `json:"names"`
		Flag     bool                        `json:"flag"`
		Small    int8                        `json:"small"`
		Bytes    []byte                      `json:"bytes"`
		List     []struct {
			A string `json:"a"`
			B *bool  `json:"b,omitempty"`
		} `json:"list"`
	} `json:"spec"`
}

var dialectTypes = []func() any{
	func() any { return &corev1.Pod{} }, func() any { return &corev1.Secret{} }, func() any { return &corev1.ConfigMap{} },
	func() any { return &appsv1.Deployment{} }, func() any { return &batchv1.Job{} }, func() any { return &custom{} },
	func() any { return &metav1.PartialObjectMetadata{} }, func() any { return &metav1.Status{} }, func() any { return &map[string]any{} },
}

// sameAsReference decodes data both ways into each type.
func sameAsReference(t *testing.T, data []byte) {
	t.Helper()
	for _, build := range dialectTypes {
		sameAs(t, data, build)
	}
}

// sameAs decodes data both ways into what build makes.
func sameAs(t *testing.T, data []byte, build func() any) {
	t.Helper()
	got, want := build(), build()
	gotErr := unmarshalJSON(data, got)
	wantErr := kjson.UnmarshalCaseSensitivePreserveInts(data, want)
	if (gotErr == nil) != (wantErr == nil) {
		t.Fatalf("%T from %s:\n ours      %v\n reference %v", got, data, gotErr, wantErr)
	}
	if wantErr == nil && !equality.Semantic.DeepEqual(got, want) && !reflect.DeepEqual(got, want) {
		t.Fatalf("%T from %s: (-reference +ours)\n%s", got, data, cmp.Diff(want, got))
	}
}

func dialectSeeds() []string {
	pod, _ := json.Marshal(benchPod())
	return []string{
		string(pod),
		`{}`, `null`, `[]`, `"x"`, `1`, ``, `{`, `{"metadata":null}`, `{"metadata":{"labels":null,"name":null}}`,
		`{"kind":"Pod","KIND":"x","Metadata":{"name":"a"},"metadata":{"Name":"b"}}`,
		`{"metadata":{"name":"a"},"metadata":{"namespace":"b"}}`,
		`{"metadata":{"labels":{"a":"1"}},"metadata":{"labels":{"b":"2"}}}`,
		`{"spec":{"containers":[{"name":"a","image":"x"}]},"spec":{"containers":[{"name":"b"}]}}`,
		`{"metadata":{"creationTimestamp":null,"deletionTimestamp":"2026-11-21T02:00:00Z","generation":9007199254740993}}`,
		`{"metadata":{"creationTimestamp":"yesterday"}}`, `{"metadata":{"generation":1.0}}`, `{"metadata":{"generation":1e3}}`,
		`{"metadata":{"finalizers":["a",null,"b"]}}`, `{"metadata":{"ownerReferences":[null,{"name":"x","controller":null}]}}`,
		`{"spec":{"containers":[{"resources":{"limits":{"cpu":"100m","memory":1024,"x":1.5}}}]}}`,
		`{"spec":{"containers":[{"ports":[{"containerPort":"80"}]}]}}`,
		`{"spec":{"containers":[{"readinessProbe":{"httpGet":{"port":"http"}},"livenessProbe":{"httpGet":{"port":80}}}]}}`,
		`{"spec":{"replicas":3,"ratio":1,"timeout":"5s","raw":{"a":1},"data":{"k":"aGk="},"nested":{"a":{"b":9223372036854775807}},"names":["x"],"flag":true,"small":127,"bytes":"aGk=","list":[{"a":"1","b":false},{}]}}`,
		`{"spec":{"small":128}}`, `{"spec":{"bytes":"aGk"}}`, `{"spec":{"bytes":"aGk=\n"}}`, `{"spec":{"bytes":[104]}}`, `{"spec":{"bytes":null,"data":{"a":null}}}`,
		`{"spec":{"raw":null}}`, `{"spec":{"raw":"text"}}`, `{"spec":{"timeout":5}}`, `{"spec":{"flag":"true"}}`, `{"spec":{"nested":{"a":null}}}`,
		`{"data":{"a":"x","a":"y"},"stringData":{"b":null}}`, `{"data":{"a":"\u00e9\ud83d\ude00\ud800","b":"` + "\xff" + `"}}`,
		`{"x":1,"y":1.5,"z":1e2,"big":9223372036854775808,"neg":-9223372036854775808,"neg0":-0,"huge":1e999}`,
		`{"x":[1,[2,{"a":[]}],{}],"t":true,"f":false,"n":null}`, `{"a":1} x`, `{"a":1}{"b":2}`, `{"a":01}`, `{"a":+1}`, `{"a":.5}`, "{\"a\":\"\n\"}", ` {"a" : 1 } `,
		`{"status":"Failure","details":{"causes":[{"reason":"x"}],"retryAfterSeconds":1},"code":404}`,
		`{"metadata":{"managedFields":[{"manager":"a","operation":"Update","time":"2026-11-21T02:00:00Z","fieldsV1":{"f:a":{}}}]}}`,
	}
}

func TestJSONDialectIsThatOfKubernetes(t *testing.T) {
	t.Parallel()
	for _, seed := range dialectSeeds() {
		sameAsReference(t, []byte(seed))
	}
}

func FuzzJSONDialect(f *testing.F) {
	for _, seed := range dialectSeeds() {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<14 {
			t.Skip()
		}
		sameAsReference(t, data)
	})
}

// FuzzKinds does it for every built-in kind.
func FuzzKinds(f *testing.F) {
	var kinds []reflect.Type
	for _, kind := range scheme.Scheme.AllKnownTypes() {
		if strings.HasPrefix(kind.PkgPath(), "k8s.io/api/") && !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	slices.SortFunc(kinds, func(a, b reflect.Type) int { return strings.Compare(a.PkgPath()+a.Name(), b.PkgPath()+b.Name()) })
	for i, kind := range kinds {
		obj := reflect.New(kind).Interface()
		randfill.NewWithSeed(int64(i)).NilChance(0.5).NumElements(0, 2).MaxDepth(8).Funcs(
			func(v *runtime.RawExtension, _ randfill.Continue) { v.Raw = []byte(`{"a":1}`) },
		).Fill(obj)
		if data, err := json.Marshal(obj); err == nil && len(data) < 4096 {
			f.Add(uint16(i), data)
		}
		for _, seed := range []string{`{"spec":{"replicas":1.0}}`, `{"metadata":{"labels":{"a":null}},"spec":null}`, `{"Spec":{},"items":[null]}`} {
			f.Add(uint16(i), []byte(seed))
		}
	}
	f.Fuzz(func(t *testing.T, kind uint16, data []byte) {
		if len(data) > 1<<14 {
			t.Skip()
		}
		sameAs(t, data, func() any { return reflect.New(kinds[int(kind)%len(kinds)]).Interface() })
	})
}

// TestJSONDialectHoldsForMutatedInput changes the seeds at random: bytes,
// ranges, and fragments of one another.
func TestJSONDialectHoldsForMutatedInput(t *testing.T) {
	t.Parallel()
	seeds := dialectSeeds()
	rnd := rand.New(rand.NewPCG(1, 7))
	fragments := []string{"null", `"a"`, "1", "1.5", "-0", "{}", "[]", "true", ",", ":", `"metadata":`, `"spec":{`, "}", "]", `"\u0041"`, "1e3", " ", `"aGk="`}
	rounds := 4000
	if testing.Short() {
		rounds = 400
	}
	for range rounds {
		data := []byte(seeds[1+rnd.IntN(len(seeds)-1)])
		if rnd.IntN(20) == 0 {
			data = []byte(seeds[0])
		}
		for range 1 + rnd.IntN(3) {
			at := rnd.IntN(len(data) + 1)
			to := min(len(data), at+rnd.IntN(8))
			switch rnd.IntN(4) {
			case 0:
				data = slices.Replace(data, at, to)
			case 1:
				data = slices.Insert(data, at, []byte(fragments[rnd.IntN(len(fragments))])...)
			case 2:
				data = slices.Replace(data, at, to, []byte(fragments[rnd.IntN(len(fragments))])...)
			case 3:
				if at < len(data) {
					data[at] = byte(rnd.IntN(256))
				}
			}
		}
		sameAsReference(t, data)
	}
}
