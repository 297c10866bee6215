// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package steertest

import (
	"math/rand"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/webhook/conversion"
)

// RoundTripOptions adjust [RoundTrip]. The zero value works.
type RoundTripOptions struct {
	// Objects is how many objects go each way and back, for each version. Default 1,000.
	Objects int
	// Seed of the random objects. 0 draws one, which a failure names.
	Seed int64
	// Fill are functions func(*T, randfill.Continue) that fill values of a type, for
	// those that may not be any value: enumerations, quantities as text. Default: every
	// field is random.
	Fill []any
}

// RoundTrip tests the conversion of a kind: random objects of the hub, converted to
// each other version in the scheme and back, are what they were, and so are objects of
// those versions converted to the hub and back. It stops a version at its first
// failure, with the difference.
//
//	steertest.RoundTrip(t, scheme, &v1.CronTab{}, steertest.RoundTripOptions{})
func RoundTrip(t testing.TB, scheme *runtime.Scheme, hub conversion.Hub, o RoundTripOptions) {
	t.Helper()
	if o.Objects == 0 {
		o.Objects = 1000
	}
	if o.Seed == 0 {
		o.Seed = time.Now().UnixNano()
	}
	converter := conversion.NewConverter(scheme)
	if _, err := converter.Add(hub); err != nil {
		t.Fatalf("steertest: %v", err)
	}
	kind, err := client.KindOf(scheme, hub)
	if err != nil {
		t.Fatalf("steertest: %v", err)
	}
	funcs := fuzzer.MergeFuzzerFuncs(metafuzzer.Funcs, func(serializer.CodecFactory) []any { return o.Fill })
	filler := fuzzer.FuzzerFor(funcs, rand.NewSource(o.Seed), serializer.NewCodecFactory(scheme))
	for _, spoke := range converter.Spokes(kind) {
		for _, way := range [][2]schema.GroupVersionKind{{kind, spoke}, {spoke, kind}} {
			for n := range o.Objects {
				before, err := scheme.New(way[0])
				if err != nil {
					t.Fatalf("steertest: %v", err)
				}
				filler.Fill(before)
				before.GetObjectKind().SetGroupVersionKind(way[0])
				after, err := thereAndBack(converter, before, way[1].GroupVersion())
				if err != nil {
					t.Errorf("steertest: from %s to %s and back: object %d of seed %d: %v", way[0].Version, way[1].Version, n, o.Seed, err)
					break
				}
				if !apiequality.Semantic.DeepEqual(before, after) {
					t.Errorf("steertest: from %s to %s and back: object %d of seed %d has changed (-before +after); a field that the other version lacks goes to an annotation:\n%s",
						way[0].Version, way[1].Version, n, o.Seed, cmp.Diff(before, after))
					break
				}
			}
		}
	}
}

func thereAndBack(c *conversion.Converter, obj runtime.Object, version schema.GroupVersion) (runtime.Object, error) {
	there, err := c.Object(obj.DeepCopyObject(), version)
	if err != nil {
		return nil, err
	}
	return c.Object(there, obj.GetObjectKind().GroupVersionKind().GroupVersion())
}
