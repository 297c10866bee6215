// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package transcode_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"os"
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
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/randfill"

	"github.com/steer-dev/steer/apiserver/internal/transcode"
	"github.com/steer-dev/steer/apiserver/internal/wire"
)

type object interface{ Marshal() ([]byte, error) }

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
	texts := []string{"", "a", "name", "<b> & c", "\"quoted\" \\ and\nlines", "é\u2028ü", strings.Repeat("long ", 40), strings.Repeat("x", 17_000)}
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
		func(b *[]byte, c randfill.Continue) { *b = []byte(texts[c.Intn(7)]) }, // in maps never nil, once they are stored
		func(v *authenticationv1.ExtraValue, c randfill.Continue) { *v = []string{texts[c.Intn(7)]} },
		func(v *certificatesv1.ExtraValue, c randfill.Continue) { *v = []string{texts[c.Intn(7)]} },
		func(v *authorizationv1.ExtraValue, c randfill.Continue) { *v = []string{texts[c.Intn(7)]} },
		func(f *metav1.FieldsV1, c randfill.Continue) {
			f.SetRawBytes([]byte([]string{`{}`, `{"f:a":{".":{}}}`}[c.Intn(2)]))
		},
		func(r *runtime.RawExtension, c randfill.Continue) {
			r.Raw = []byte([]string{`{}`, `{"a":[1,"\u003c"]}`, `"x"`}[c.Intn(3)])
		},
	)
}

// written returns the protobuf that a plan makes of JSON.
func written(plan *transcode.Plan, value []byte) (content []byte, ok bool) {
	ok = plan.Write(value, func(c []byte, _ [][]byte) { content = bytes.Clone(c) })
	return content, ok
}

// decoded returns the protobuf that decoding and marshalling JSON gives.
func decoded(value []byte, t reflect.Type) ([]byte, error) {
	into := reflect.New(t).Interface()
	if err := wire.Decode(value, into); err != nil {
		return nil, err
	}
	return into.(object).Marshal()
}

func TestKindsAreWrittenAsTheirTypesMarshalThem(t *testing.T) {
	t.Parallel()
	of := kinds(t)
	random := rand.New(rand.NewPCG(1, 2))
	left := 0
	for _, name := range slices.Sorted(maps.Keys(of)) {
		plan := transcode.Of(reflect.New(of[name]).Interface())
		if plan == nil {
			// They embed structs twice, and few objects of these kinds exist.
			if !strings.Contains(name, "ValidatingAdmissionPolicy") && !strings.Contains(name, "MutatingAdmissionPolicy") {
				t.Errorf("%s is left to its type", name)
			}
			continue
		}
		for range 8 {
			obj := reflect.New(of[name]).Interface()
			filler(random.Uint64()).Fill(obj)
			value, err := json.Marshal(obj)
			if err != nil {
				t.Fatal(err)
			}
			// Checked here because all kinds are at hand.
			if ours, _, err := wire.Encode(obj); err != nil || !bytes.Equal(ours, value) {
				t.Fatalf("%s: is encoded as %.3000s, want %.3000s: %v", name, ours, value, err)
			}
			want, err := decoded(value, of[name])
			if err != nil {
				t.Fatal(err)
			}
			got, ok := written(plan, value)
			if !ok {
				left++
				if left < 5 {
					t.Logf("%s: left to its type: %.3000s", name, value)
				}
			} else if !bytes.Equal(got, want) {
				t.Errorf("%s: %.3000s\n got %.3000q\nwant %.3000q", name, value, got, want)
				break
			}
		}
	}
	if left > 0 {
		t.Errorf("%d objects that an encoder wrote were left to their types", left)
	}
}

// TestWholeObjectsMarshalAsWhatIsReadOfThem fills objects also with values that JSON
// does not preserve.
func TestWholeObjectsMarshalAsWhatIsReadOfThem(t *testing.T) {
	t.Parallel()
	of := kinds(t)
	random := rand.New(rand.NewPCG(3, 4))
	whole, lost := 0, 0
	for _, name := range slices.Sorted(maps.Keys(of)) {
		for range 8 {
			obj := reflect.New(of[name]).Interface()
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
			value, ok, err := wire.Encode(obj)
			if err != nil {
				t.Fatal(err)
			}
			want, err := decoded(value, of[name])
			if err != nil {
				t.Fatal(err)
			}
			got, err := obj.(object).Marshal()
			switch {
			case ok && (err != nil || !bytes.Equal(got, want)):
				t.Fatalf("%s: %.3000s\n got %.3000q\nwant %.3000q: %v", name, value, got, want, err)
			case ok:
				whole++
			case !bytes.Equal(got, want):
				lost++
			}
		}
	}
	if whole < 200 || lost < 200 {
		t.Errorf("%d objects are whole, of %d JSON loses something", whole, lost)
	}
}

func TestQuantitiesAreWrittenInTheirUnits(t *testing.T) {
	t.Parallel()
	plan := transcode.Of(&corev1.LimitRange{})
	for _, n := range []string{"0", "1", "10", "100", "1000", "1024", "1500", "2048", "123456", "100000", "999999999", "01", "1.5", "-1", "1e3", "1234567890123"} {
		for _, unit := range []string{"", "n", "u", "m", "k", "K", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"} {
			value := []byte(`{"spec":{"limits":[{"max":{"cpu":"` + n + unit + `"}}]}}`)
			want, err := decoded(value, reflect.TypeFor[corev1.LimitRange]())
			got, ok := written(plan, value)
			if ok != (err == nil) || !bytes.Equal(got, want) {
				t.Errorf("%s%s: got %q, %v, want %q, %v", n, unit, got, ok, want, err)
			}
		}
	}
}

// FuzzKinds: any JSON of any kind is converted to the protobuf of its decoded type.
func FuzzKinds(f *testing.F) {
	of := kinds(f)
	names := slices.Sorted(maps.Keys(of))
	sample, err := os.ReadFile("testdata/pod.json")
	if err != nil {
		f.Fatal(err)
	}
	pod := uint16(slices.Index(names, corev1.SchemeGroupVersion.WithKind("Pod").String()))
	for _, seed := range []string{
		string(sample), `{}`, `{"spec":{},"metadata":{}}`, `{"spec":{"containers":[null]}}`, `{"spec":{"nodeSelector":{"b":"1","a":null}}}`, `{"spec":{"nodeSelector":{"b":"1","a":"2"}}}`,
		`{"spec":{"priority":1.0,"priority":2}}`, `{"spec":{"containers":[{"name":"x","resources":{"limits":{"cpu":1}}}]}}`, `{"metadata":{"creationTimestamp":"2026-01-02T03:04:05+01:00"}}`,
		` { "kind" : "Pod" , "spec" : { "priority" : -1 , "hostNetwork" : true } } `, `{"metadata":{"labels":{"a":"1","a":"2"}}}`, `{"spec":{"Containers":[]}}`, `{"spec":{"volumes":[{"name":"x","emptyDir":{},"name":"y"}]}}`,
		`{"metadata":{"name":"\ud800"}}`, `{"a":tru}`, `[]`, `{"spec":{"containers":[{"livenessProbe":{"httpGet":{"port":"1"},"periodSeconds":2147483648}}]}}`,
	} {
		f.Add(pod, []byte(seed))
	}
	var plans []*transcode.Plan
	for i, name := range names {
		obj := reflect.New(of[name]).Interface()
		plans = append(plans, transcode.Of(obj))
		filler(uint64(i)).Fill(obj)
		if value, err := json.Marshal(obj); err == nil && len(value) < 4096 {
			f.Add(uint16(i), value)
		}
	}
	f.Fuzz(func(t *testing.T, kind uint16, value []byte) {
		i := int(kind) % len(names)
		if plans[i] == nil {
			return
		}
		got, ok := written(plans[i], value)
		if !ok || !json.Valid(value) {
			return
		}
		want, err := decoded(value, of[names[i]])
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %s: got %q, want %q, %v", names[i], value, got, want, err)
		}
	})
}

func BenchmarkPod(b *testing.B) {
	value, err := os.ReadFile("testdata/pod.json")
	if err != nil {
		b.Fatal(err)
	}
	plan := transcode.Of(&corev1.Pod{})
	for name, write := range map[string]func() bool{
		"plan": func() bool { _, ok := written(plan, value); return ok },
		"type": func() bool { _, err := decoded(value, reflect.TypeFor[corev1.Pod]()); return err == nil },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(value)))
			for b.Loop() {
				if !write() {
					b.Fatal("not written")
				}
			}
		})
	}
}

func TestOwnersOfFieldsAreShared(t *testing.T) {
	t.Parallel()
	value, err := os.ReadFile("testdata/pod.json")
	if err != nil {
		t.Fatal(err)
	}
	var pod corev1.Pod
	if err := json.Unmarshal(value, &pod); err != nil {
		t.Fatal(err)
	}
	ok := transcode.Of(&pod).Write(value, func(content []byte, shared [][]byte) {
		owners := pod.ManagedFields[0].FieldsV1.GetRawBytes()
		if len(shared) != 1 || !bytes.Equal(shared[0], owners) || !bytes.Contains(content, owners) {
			t.Errorf("shared is %q, want %q", shared, owners)
		}
	})
	if !ok {
		t.Error("a stored Pod is left to its type")
	}
}

// ownForm has a Marshal method of its own.
type ownForm struct {
	Name string `json:"name" protobuf:"bytes,1,opt,name=name"`
}

func (o *ownForm) Marshal() ([]byte, error) { return []byte(o.Name), nil }

func TestTypesWithAMarshalMethodHaveNoPlan(t *testing.T) {
	t.Parallel()
	if transcode.Of(&ownForm{}) != nil {
		t.Error("a type that marshals itself in another way has a plan")
	}
}
