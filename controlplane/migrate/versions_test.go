// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"reflect"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	admissionv1beta1 "k8s.io/api/admissionregistration/v1beta1"
	networkingv1 "k8s.io/api/networking/v1"
	networkingv1beta1 "k8s.io/api/networking/v1beta1"
	resourcev1 "k8s.io/api/resource/v1"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	storagev1 "k8s.io/api/storage/v1"
	storagev1beta1 "k8s.io/api/storage/v1beta1"
	storagemigrationv1 "k8s.io/api/storagemigration/v1"
	storagemigrationv1beta1 "k8s.io/api/storagemigration/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
)

func TestBetasHaveTheFieldsOfTheirV1(t *testing.T) {
	t.Parallel()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		admissionv1.AddToScheme, admissionv1beta1.AddToScheme, networkingv1.AddToScheme, networkingv1beta1.AddToScheme,
		resourcev1.AddToScheme, resourcev1beta2.AddToScheme, storagev1.AddToScheme, storagev1beta1.AddToScheme,
		storagemigrationv1.AddToScheme, storagemigrationv1beta1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	for _, beta := range betas() {
		a, b := scheme.AllKnownTypes()[beta], scheme.AllKnownTypes()[sameFields(beta)]
		if a == nil || b == nil {
			t.Errorf("%v: %v, %v", beta, a, b)
			continue
		}
		if at := difference(a, b, map[reflect.Type]bool{}); at != "" {
			t.Errorf("%v: %s", beta, at)
		}
	}
	if known, kind := sameFields(betas()[0]), betas()[0]; known.Version != "v1" || sameFields(known) != known || kind.Version == "v1" {
		t.Errorf("%v is read as %v", kind, known)
	}
}

// difference returns the first place where two types are encoded differently.
func difference(a, b reflect.Type, seen map[reflect.Type]bool) string {
	if a == b || seen[a] {
		return ""
	}
	seen[a] = true
	if a.Kind() != b.Kind() {
		return a.String() + " and " + b.String()
	}
	switch a.Kind() {
	case reflect.Pointer, reflect.Slice:
		return difference(a.Elem(), b.Elem(), seen)
	case reflect.Map:
		return difference(a.Key(), b.Key(), seen) + difference(a.Elem(), b.Elem(), seen)
	case reflect.Struct:
		if a.NumField() != b.NumField() {
			return a.String() + " has another number of fields"
		}
		for i := range a.NumField() {
			f := a.Field(i)
			g, ok := b.FieldByName(f.Name)
			number := func(tag reflect.StructTag) string {
				return strings.Join(strings.Split(tag.Get("protobuf"), ",")[:1], "") + strings.SplitN(tag.Get("protobuf")+",", ",", 3)[1]
			}
			if !ok || f.Tag.Get("json") != g.Tag.Get("json") || number(f.Tag) != number(g.Tag) {
				return a.String() + "." + f.Name
			}
			if at := difference(f.Type, g.Type, seen); at != "" {
				return at
			}
		}
	}
	return ""
}
