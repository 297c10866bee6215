// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package typed_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	networkingv1 "k8s.io/api/networking/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/randfill"

	"github.com/steer-dev/steer/apiserver/internal/typed"
)

// kinds are the types of all groups, by name.
func kinds(t testing.TB) map[string]reflect.Type {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		admissionregistrationv1.AddToScheme, appsv1.AddToScheme, authenticationv1.AddToScheme, authorizationv1.AddToScheme,
		autoscalingv1.AddToScheme, autoscalingv2.AddToScheme, batchv1.AddToScheme, certificatesv1.AddToScheme, coordinationv1.AddToScheme,
		corev1.AddToScheme, discoveryv1.AddToScheme, eventsv1.AddToScheme, flowcontrolv1.AddToScheme, networkingv1.AddToScheme,
		nodev1.AddToScheme, policyv1.AddToScheme, rbacv1.AddToScheme, resourcev1.AddToScheme, schedulingv1.AddToScheme, storagev1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	out := map[string]reflect.Type{"PartialObjectMetadata": reflect.TypeFor[metav1.PartialObjectMetadata]()}
	for kind, of := range scheme.AllKnownTypes() {
		if strings.HasPrefix(of.PkgPath(), "k8s.io/api/") && kind.Version != runtime.APIVersionInternal {
			out[kind.String()] = of
		}
	}
	return out
}

// filler fills objects with anything that their types can hold and JSON can say.
func filler(seed uint64) *randfill.Filler {
	texts := []string{"", "a", "name", "<b> & c", "\"quoted\" \\ and\nlines", "é\u2028ü\x7f", strings.Repeat("long ", 40), "/"}
	return randfill.NewWithSeed(int64(seed)).NilChance(0.4).NumElements(0, 3).MaxDepth(14).Funcs(
		func(s *string, c randfill.Continue) {
			*s = texts[min(c.Intn(len(texts)), c.Intn(len(texts)), c.Intn(len(texts)))]
		},
		func(t *metav1.Time, c randfill.Continue) {
			if c.Bool() {
				*t = metav1.Unix(c.Int63()%4e9-1e9, 0)
			}
		},
		func(t *metav1.MicroTime, c randfill.Continue) {
			*t = metav1.NewMicroTime(time.Unix(c.Int63()%4e9, 1000))
		},
		func(q *resource.Quantity, c randfill.Continue) {
			*q = resource.MustParse([]string{"0", "100m", "1Gi", "1000m", "1024Mi", "12e6", "1.5", "0.0001"}[c.Intn(8)])
		},
		func(i *intstr.IntOrString, c randfill.Continue) {
			if *i = intstr.FromInt32(int32(c.Uint32())); c.Bool() {
				*i = intstr.FromString(texts[c.Intn(5)])
			}
		},
		func(f *metav1.FieldsV1, c randfill.Continue) {
			f.SetRawBytes([]byte([]string{``, `{}`, `{"f:a":{".":{}}}`, `{ "f:a" : {} }`, `{"f:<":{"k:{\"a\":1}":{}}}`, `{"f:\n":-12}`}[c.Intn(6)]))
		},
		func(r *runtime.RawExtension, c randfill.Continue) {
			r.Raw = []byte([]string{`{}`, `{"a":[1,"\u003c"]}`, `"x"`, `{"a": 1.5}`, `-1`}[c.Intn(5)])
		},
	)
}

// TestKindsAreWrittenAndReadAsTheLibrariesDo fills objects of all kinds at random, also
// with values that no document decodes to.
func TestKindsAreWrittenAndReadAsTheLibrariesDo(t *testing.T) {
	t.Parallel()
	of := kinds(t)
	random := rand.New(rand.NewPCG(1, 2))
	all, read := 0, 0
	for _, name := range slices.Sorted(maps.Keys(of)) {
		plan := typed.Of(reflect.New(of[name]).Interface())
		if plan == nil {
			t.Errorf("%s is left to the libraries", name)
			continue
		}
		for i := range 12 {
			obj := reflect.New(of[name]).Interface()
			filler(random.Uint64()).Fill(obj)
			want, wantErr := json.Marshal(obj)
			got, _, err := plan.Write(obj)
			if (err == nil) != (wantErr == nil) || wantErr == nil && !bytes.Equal(got, want) {
				t.Fatalf("%s is written as\n%s, %v\nwant\n%s, %v", name, got, err, want, wantErr)
			}
			if wantErr != nil {
				continue
			}
			all++
			into, library := reflect.New(of[name]).Interface(), reflect.New(of[name]).Interface()
			if !plan.Read(got, into) {
				continue
			}
			read++
			strict, err := kjson.UnmarshalStrict(want, library)
			if err != nil || len(strict) > 0 {
				t.Fatalf("%s: reads %s, of which the library says %v, %v", name, want, err, strict)
			}
			if !reflect.DeepEqual(into, library) && !equality.Semantic.DeepEqual(into, library) {
				t.Fatalf("%s: what is read of %s differs", name, want)
			}
			if i < 3 {
				readAsConverted(t, name, obj)
			}
		}
	}
	if 10*read < 5*all {
		t.Errorf("%d of %d documents were read by plan, want most", read, all)
	}
	t.Logf("%d of %d documents were read by plan", read, all)
}

// readAsConverted compares what is read of the canonical text of an object, as a patch leaves it,
// with what the library converts its maps to.
func readAsConverted(t *testing.T, name string, obj any) {
	t.Helper()
	text, ok := typed.EncodeCanonically(obj)
	read := reflect.New(reflect.TypeOf(obj).Elem()).Interface()
	if !ok || !typed.DecodeFast([]byte(text), read) {
		return
	}
	converted := reflect.New(reflect.TypeOf(obj).Elem()).Interface()
	content, _ := text.Decode().(map[string]any)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(content, converted, true); err != nil {
		t.Fatalf("%s: reads %s, of which the conversion says %v", name, text, err)
	}
	if !equality.Semantic.DeepEqual(converted, read) {
		t.Fatalf("%s: what is read of %s differs from what it is converted to", name, text)
	}
}

// TestWholeObjectsMarshalAsWhatIsReadOfThem fills objects also with values that JSON
// does not preserve.
func TestWholeObjectsMarshalAsWhatIsReadOfThem(t *testing.T) {
	t.Parallel()
	of := kinds(t)
	random := rand.New(rand.NewPCG(3, 4))
	lossless, lost := 0, 0
	for _, name := range slices.Sorted(maps.Keys(of)) {
		for range 8 {
			switch isLossless, isLost := losslessness(t, of[name], random); {
			case isLossless:
				lossless++
			case isLost:
				lost++
			}
		}
	}
	if lossless < 200 || lost < 200 {
		t.Errorf("%d objects are lossless, of %d JSON loses something", lossless, lost)
	}
}

// losslessness fills an object also with values that JSON does not preserve, and reports whether
// it is written as lossless, in which case it marshals as what is read of it, and whether it does not.
func losslessness(t *testing.T, of reflect.Type, random *rand.Rand) (lossless, lost bool) {
	t.Helper()
	obj := reflect.New(of).Interface()
	filler(random.Uint64()).Funcs(
		func(s *string, c randfill.Continue) {
			*s = []string{"", "name", "<é>\n\ufffd", "\xff"}[max(0, c.Intn(400)-396)]
		},
		func(t *metav1.Time, c randfill.Continue) { *t = metav1.Unix(int64(max(0, c.Intn(50)-1))*1e7, 1e6) },
		func(i *intstr.IntOrString, c randfill.Continue) {
			*i = intstr.IntOrString{Type: intstr.Type(c.Intn(2)), IntVal: int32(max(0, c.Intn(20)-18)), StrVal: ""}
		},
		func(b *[]byte, c randfill.Continue) { *b = [][]byte{nil, []byte("x"), {}}[c.Intn(3)] },
	).Fill(obj)
	if random.IntN(4) == 0 {
		if m, ok := obj.(metav1.Object); ok {
			m.SetDeletionTimestamp(&metav1.Time{})
		}
	}
	value, ok, err := typed.Of(obj).Write(obj)
	if err != nil {
		t.Fatal(err)
	}
	read := reflect.New(of).Interface()
	if err := json.Unmarshal(value, read); err != nil {
		t.Fatal(err)
	}
	want, err := read.(interface{ Marshal() ([]byte, error) }).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	got, err := obj.(interface{ Marshal() ([]byte, error) }).Marshal()
	if ok && (err != nil || !bytes.Equal(got, want)) {
		t.Fatalf("%v: %.3000s\n got %.3000q\nwant %.3000q: %v", of, value, got, want, err)
	}
	return ok, !bytes.Equal(got, want)
}

// FuzzLossless: objects that are written as lossless marshal as what is read of them.
func FuzzLossless(f *testing.F) {
	of := kinds(f)
	names := slices.Sorted(maps.Keys(of))
	for i := range names {
		f.Add(uint16(i), uint64(i))
	}
	f.Fuzz(func(t *testing.T, kind uint16, seed uint64) {
		losslessness(t, of[names[int(kind)%len(names)]], rand.New(rand.NewPCG(seed, 1)))
	})
}

// hiding has a field that JSON does not show.
type hiding struct {
	Shown  string `json:"shown" protobuf:"bytes,1,opt,name=shown"`
	Hidden string `json:"-" protobuf:"bytes,2,opt,name=hidden"`
}

func TestObjectsWithFieldsThatJSONDoesNotShowAreNotWhole(t *testing.T) {
	t.Parallel()
	object := &hiding{Shown: "a", Hidden: "b"}
	if out, lossless, err := typed.Of(object).Write(object); lossless || err != nil || string(out) != `{"shown":"a"}` {
		t.Errorf("written as %s, lossless %t: %v", out, lossless, err)
	}
}

// FuzzKinds: a document of any kind that a plan accepts is decoded as the library
// decodes it, without strict errors, and encoded as by encoding/json.
func FuzzKinds(f *testing.F) {
	of := kinds(f)
	names := slices.Sorted(maps.Keys(of))
	var plans []*typed.Plan
	for i, name := range names {
		obj := reflect.New(of[name]).Interface()
		plans = append(plans, typed.Of(obj))
		filler(uint64(i)).Fill(obj)
		if document, err := json.Marshal(obj); err == nil && len(document) < 4096 {
			f.Add(uint16(i), document)
		}
	}
	f.Fuzz(func(t *testing.T, kind uint16, document []byte) {
		i := int(kind) % len(names)
		got, want := reflect.New(of[names[i]]).Interface(), reflect.New(of[names[i]]).Interface()
		if !plans[i].Read(document, got) {
			return
		}
		if strict, err := kjson.UnmarshalStrict(document, want); err != nil || len(strict) > 0 {
			t.Fatalf("%s: reads %s, of which the library says %v, %v", names[i], document, err, strict)
		}
		if !reflect.DeepEqual(got, want) && !equality.Semantic.DeepEqual(got, want) {
			t.Fatalf("%s: what is read of %s differs", names[i], document)
		}
		written, _, err := plans[i].Write(got)
		library, libraryErr := json.Marshal(got)
		if (err == nil) != (libraryErr == nil) || err == nil && !bytes.Equal(written, library) {
			t.Fatalf("%s: %s is written as\n%s, %v\nwant\n%s, %v", names[i], document, written, err, library, libraryErr)
		}
	})
}

// TestUnusualDocumentsAreLeftToTheLibrary: documents that decoders treat differently,
// or that have strict errors, are not accepted by a plan.
func TestUnusualDocumentsAreLeftToTheLibrary(t *testing.T) {
	t.Parallel()
	plan := typed.Of(&corev1.Pod{})
	for _, document := range []string{
		``, `null`, `[]`, `{`, `{}}`, `{} {}`, `{"metadata":{"name":"a",}}`, `{"metadata":{"name":"a","name":"b"}}`, `{"metadata":{"labels":{"a":"1","a":"2"}}}`,
		`{"Metadata":{}}`, `{"spec":{"unknown":1}}`, `{"spec":{"containers":[null]}}`, `{"spec":{"containers":{}}}`, `{"spec":{"nodeSelector":{"a":null}}}`,
		`{"spec":{"priority":1.0}}`, `{"spec":{"priority":1e2}}`, `{"spec":{"priority":01}}`, `{"spec":{"priority":"1"}}`, `{"spec":{"priority":4294967296}}`,
		`{"spec":{"hostNetwork":1}}`, `{"metadata":{"name":"\ud800"}}`, "{\"metadata\":{\"name\":\"\xff\"}}", "{\"metadata\":{\"name\":\"\n\"}}",
		`{"metadata":{"creationTimestamp":"yesterday"}}`, `{"metadata":{"managedFields":[{"fieldsV1":{"a":}}]}}`, `{"metadata":{"managedFields":[{"fieldsV1":{"a":1.5}}]}}`,
		`{"spec":{"overhead":{"cpu":"much"}}}`, `{"spec":{"overhead":{"cpu":1.5}}}`,
	} {
		if plan.Read([]byte(document), &corev1.Pod{}) {
			t.Errorf("%s is read", document)
		}
	}
	for _, document := range []string{
		`{}`, ` { "spec" : { "containers" : [ ] , "volumes" : null } } `, `{"metadata":{"creationTimestamp":null,"labels":{}},"status":{}}`, `{"metadata":{"name":"\u00e9\n\"","generation":-9007199254740993}}`,
		`{"spec":{"overhead":{"cpu":1,"memory":"1Gi"},"priority":-0}}`,
	} {
		var got, want corev1.Pod
		if err := kjson.UnmarshalCaseSensitivePreserveInts([]byte(document), &want); err != nil {
			t.Fatal(err)
		}
		if !plan.Read([]byte(document), &got) || !reflect.DeepEqual(got, want) {
			t.Errorf("%s is not read, or otherwise than by the library", document)
		}
	}
}

// TestStoredDocumentsAreReadInPart: a type may have some of the fields of a stored
// document.
func TestStoredDocumentsAreReadInPart(t *testing.T) {
	t.Parallel()
	type named struct {
		Metadata struct {
			Name   string            `json:"name"`
			Labels map[string]string `json:"labels"`
		} `json:"metadata"`
	}
	type part struct {
		named
		Status struct {
			Phase string `json:"phase"`
		} `json:"status"`
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"b": "c"}, Annotations: map[string]string{"d": "{\"e\":\"<f>\"}\n\\"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "g", Args: []string{"\t"}}}, Overhead: corev1.ResourceList{"cpu": resource.MustParse("1")}},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: "Ready"}}},
	}
	value, _, err := typed.Of(pod).Write(pod)
	if err != nil {
		t.Fatal(err)
	}
	var got, want part
	if err := json.Unmarshal(value, &want); err != nil {
		t.Fatal(err)
	}
	plan := typed.Of(&got)
	if !plan.ReadStored(value, &got) || !reflect.DeepEqual(got, want) || got.Metadata.Name != "a" || got.Status.Phase != "Running" {
		t.Errorf("%s is read as %+v", value, got)
	}
	if plan.Read(value, &part{}) {
		t.Error("unknown fields are accepted without an error")
	}
	for _, document := range []string{`{"a":`, `{"a":"\x"}`, `{"a":"\u00g0"}`, `{"a":{,}}`, `{"a":01}`, `{"a":nul}`, `{"a":1,}`} {
		if plan.ReadStored([]byte(document), &part{}) {
			t.Errorf("%s is read", document)
		}
	}
}

// TestUnusualTypesHaveNoPlan: types with unusual tags are left to the libraries.
func TestUnusualTypesHaveNoPlan(t *testing.T) {
	t.Parallel()
	for _, obj := range []any{
		&struct{ A int }{}, &struct {
			A int `json:"a,string"`
		}{}, &struct {
			A *metav1.Time `json:"a,omitzero"`
		}{}, &struct {
			A corev1.PodSpec `json:"a,omitzero"`
		}{}, &struct {
			metav1.TypeMeta
			A string `json:"kind"`
		}{}, &metav1.Time{},
	} {
		if typed.Of(obj) != nil {
			t.Errorf("%T has a plan", obj)
		}
	}
}
