// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/randfill"
)

// builtInKinds returns the object types of many groups.
func builtInKinds(t testing.TB) map[schema.GroupVersionKind]reflect.Type {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		admissionregistrationv1.AddToScheme, appsv1.AddToScheme, autoscalingv2.AddToScheme, batchv1.AddToScheme, certificatesv1.AddToScheme,
		coordinationv1.AddToScheme, corev1.AddToScheme, discoveryv1.AddToScheme, eventsv1.AddToScheme, flowcontrolv1.AddToScheme,
		networkingv1.AddToScheme, policyv1.AddToScheme, rbacv1.AddToScheme, resourcev1.AddToScheme, storagev1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	out := map[schema.GroupVersionKind]reflect.Type{}
	for kind, of := range scheme.AllKnownTypes() {
		_, isObject := reflect.New(of).Interface().(Object)
		if isObject && strings.HasPrefix(of.PkgPath(), "k8s.io/api/") && kind.Version != runtime.APIVersionInternal {
			out[kind] = of
		}
	}
	return out
}

// objectFiller fills objects with values that clients may send, mostly plain ones.
func objectFiller(seed int64) *randfill.Filler {
	return randfill.NewWithSeed(seed).NilChance(0.5).NumElements(0, 3).MaxDepth(14).Funcs(
		func(s *string, c randfill.Continue) {
			switch n := c.Intn(300); n {
			case 0, 1, 2, 3:
				*s = ""
			case 4:
				*s = []string{"<b>", "\"", "é"}[c.Intn(3)]
			default:
				*s = fmt.Sprint("text-", n)
			}
		},
		func(t *metav1.Time, c randfill.Continue) {
			if c.Bool() {
				*t = metav1.Unix(c.Int63()%4e9, 0)
			}
		},
		func(t *metav1.MicroTime, c randfill.Continue) {
			if c.Bool() {
				*t = metav1.NewMicroTime(time.Unix(c.Int63()%4e9, 1000))
			}
		},
		func(q *resource.Quantity, c randfill.Continue) {
			*q = resource.MustParse([]string{"0", "100m", "1Gi"}[c.Intn(3)])
		},
		func(i *intstr.IntOrString, c randfill.Continue) {
			if *i = intstr.FromInt32(int32(c.Uint32())); c.Bool() {
				*i = intstr.FromString("http")
			}
		},
		func(m *metav1.ObjectMeta, c randfill.Continue) {
			c.FillNoCustom(m)
			m.ManagedFields = nil
		},
		func(r *runtime.RawExtension, c randfill.Continue) { r.Raw = []byte(`{"a":[1]}`) },
	)
}

// TestManagedFieldsOfCreationsAgreeWithTheLibrary fills objects of all kinds at random and
// compares the fields that their creation attributes with those of the library.
func TestManagedFieldsOfCreationsAgreeWithTheLibrary(t *testing.T) {
	t.Parallel()
	all, fast, inOnePass := 0, 0, 0
	kinds := builtInKinds(t)
	for _, name := range slices.SortedFunc(maps.Keys(kinds), func(a, b schema.GroupVersionKind) int { return strings.Compare(a.String(), b.String()) }) {
		of := kinds[name]
		main, status := builtIn(name, func() Object { return reflect.New(of).Interface().(Object) })
		for seed := range int64(4) {
			obj := main.binding.Endpoint.New()
			if seed > 0 {
				objectFiller(seed).NilChance(1 - float64(seed)/4).Fill(obj)
			}
			obj.GetObjectKind().SetGroupVersionKind(name)
			for _, m := range []*FieldManager{main, status} {
				all++
				if createdAsByTheLibrary(t, m, obj) {
					fast++
				}
				if m.created(main.binding.Endpoint.New(), obj.DeepCopyObject().(Object), "creator") {
					inOnePass++
				}
			}
		}
	}
	if all < 400 || 10*fast < 7*all {
		t.Errorf("%d of %d creations did without the library, want most", fast, all)
	}
	if 10*inOnePass < 9*fast {
		t.Errorf("%d of %d creations took one pass, want most", inOnePass, fast)
	}
	t.Logf("%d of %d creations did without the library, %d took one pass", fast, all, inOnePass)
}
