// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package steertest_test

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/steertest"
	"github.com/steer-dev/steer/webhook/conversion"
)

// ruler is a kind whose older version lacks a field.
type ruler struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	Length int32
	Unit   string
}

func (r *ruler) Hub() {}

func (r *ruler) DeepCopyObject() runtime.Object { out := *r; return &out }

type oldRuler struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	Length int32
}

func (r *oldRuler) DeepCopyObject() runtime.Object { out := *r; return &out }

func (r *oldRuler) ConvertTo(hub conversion.Hub) error {
	dst := hub.(*ruler)
	dst.ObjectMeta, dst.Length, dst.Unit = r.ObjectMeta, r.Length, r.Annotations["unit"]
	if r.Annotations["unit"] != "" {
		dst.Annotations = nil
	}
	return nil
}

func (r *oldRuler) ConvertFrom(hub conversion.Hub) error {
	src := hub.(*ruler)
	r.ObjectMeta, r.Length = src.ObjectMeta, src.Length
	return nil
}

// carefulRuler loses nothing.
type carefulRuler struct{ oldRuler }

func (r *carefulRuler) DeepCopyObject() runtime.Object { out := *r; return &out }

func (r *carefulRuler) ConvertTo(hub conversion.Hub) error {
	dst := hub.(*ruler)
	dst.ObjectMeta, dst.Length = *r.DeepCopy(), r.Length
	dst.Unit = dst.Annotations["unit"]
	delete(dst.Annotations, "unit")
	return nil
}

func (r *carefulRuler) ConvertFrom(hub conversion.Hub) error {
	src := hub.(*ruler)
	r.ObjectMeta, r.Length = *src.DeepCopy(), src.Length
	if src.Unit != "" {
		metav1.SetMetaDataAnnotation(&r.ObjectMeta, "unit", src.Unit)
	}
	return nil
}

// told collects the failures of a test.
type told struct {
	testing.TB
	failures []string
}

func (t *told) Errorf(format string, args ...any) {
	t.failures = append(t.failures, fmt.Sprintf(format, args...))
}

func TestRoundTripFindsWhatAConversionLoses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		old   runtime.Object
		fails bool
	}{
		"a field is lost": {&oldRuler{}, true},
		"it is kept":      {&carefulRuler{}, false},
	} {
		scheme, err := client.NewScheme(func(s *runtime.Scheme) error {
			for version, obj := range map[string]runtime.Object{"v1": &ruler{}, "v1beta1": c.old} {
				gvk := schema.GroupVersionKind{Group: "example.com", Version: version, Kind: "Ruler"}
				s.AddKnownTypeWithName(gvk, obj)
				metav1.AddToGroupVersion(s, gvk.GroupVersion())
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		collect := &told{TB: t}
		steertest.RoundTrip(collect, scheme, &ruler{}, steertest.RoundTripOptions{Seed: 1})
		if (len(collect.failures) > 0) != c.fails {
			t.Errorf("%s: %q", name, collect.failures)
		}
		if c.fails && (!strings.Contains(collect.failures[0], "from v1 to v1beta1 and back: object 0 of seed 1") || !strings.Contains(collect.failures[0], "Unit")) {
			t.Errorf("%s: %q", name, collect.failures)
		}
	}
}
