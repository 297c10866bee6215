// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package protobuf_test

import (
	"bytes"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/randfill"

	"github.com/steer-dev/steer/generate"
	"github.com/steer-dev/steer/generate/protobuf/testdata/mirror"
)

// form is what generated types have, of Kubernetes and of this generator.
type form interface {
	Reset()
	Size() int
	Marshal() ([]byte, error)
	MarshalTo(data []byte) (int, error)
	Unmarshal(data []byte) error
}

// mirrors are types of Kubernetes and those with the same fields.
func mirrors() []struct{ theirs, ours form } {
	return []struct{ theirs, ours form }{
		{&corev1.ConfigMap{}, &mirror.ConfigMap{}},
		{&corev1.ConfigMapList{}, &mirror.ConfigMapList{}},
		{&coordinationv1.Lease{}, &mirror.Lease{}},
		{&corev1.Probe{}, &mirror.Probe{}},
		{&corev1.ResourceRequirements{}, &mirror.ResourceRequirements{}},
		{&corev1.PodSecurityContext{}, &mirror.SecurityContext{}},
	}
}

// empty returns another empty value of the type of a form.
func empty(of form) form { return reflect.New(reflect.TypeOf(of).Elem()).Interface().(form) }

// fill fills a value with anything that its type can hold.
func fill(into any, seed int64) {
	randfill.NewWithSeed(seed).NilChance(0.3).NumElements(0, 3).MaxDepth(8).Funcs(
		func(t *metav1.Time, c randfill.Continue) { *t = metav1.Unix(c.Int63()%4e9+1, 0) },
		func(t *metav1.MicroTime, c randfill.Continue) {
			*t = metav1.NewMicroTime(time.Unix(c.Int63()%4e9+1, 1000))
		},
		func(q *resource.Quantity, c randfill.Continue) {
			*q = resource.MustParse([]string{"0", "100m", "1Gi", "12e6", "1.5"}[c.Intn(5)])
		},
		func(i *intstr.IntOrString, c randfill.Continue) {
			if *i = intstr.FromInt32(int32(c.Uint32())); c.Bool() {
				*i = intstr.FromString("http")
			}
		},
		func(f *metav1.FieldsV1, c randfill.Continue) { f.SetRawBytes([]byte(`{"f:a":{}}`)) },
		func(r *runtime.RawExtension, c randfill.Continue) { r.Raw = []byte(`{"a":1}`) },
		func(m *metav1.TypeMeta, _ randfill.Continue) {}, // it is not in the protobuf
		// Kubernetes adds fields that a mirror does not have.
		func(s *corev1.PodSecurityContext, c randfill.Continue) {
			c.FillNoCustom(s)
			*s = corev1.PodSecurityContext{
				SELinuxOptions: s.SELinuxOptions, RunAsUser: s.RunAsUser, RunAsNonRoot: s.RunAsNonRoot, SupplementalGroups: s.SupplementalGroups,
				FSGroup: s.FSGroup, RunAsGroup: s.RunAsGroup, Sysctls: s.Sysctls, WindowsOptions: s.WindowsOptions,
			}
		},
	).Fill(into)
}

// marshal returns the protobuf of a form, which all its methods agree on.
func marshal(t *testing.T, of form) []byte {
	t.Helper()
	data, err := of.Marshal()
	if err != nil {
		t.Fatalf("%T: %v", of, err)
	}
	room := make([]byte, len(data)+3)
	if n, err := of.MarshalTo(room); err != nil || n != of.Size() || n != len(data) || !bytes.Equal(room[:n], data) {
		t.Fatalf("%T: MarshalTo wrote %d bytes, %v; Size is %d, Marshal returned %d", of, n, err, of.Size(), len(data))
	}
	if len(data) > 0 {
		if _, err := of.MarshalTo(make([]byte, len(data)-1)); err == nil {
			t.Fatalf("%T: MarshalTo found room where there was none", of)
		}
	}
	return data
}

// compare compares the bytes of a type of Kubernetes with those of its mirror.
func compare(t *testing.T, which int, seed int64) {
	t.Helper()
	pair := mirrors()[which]
	fill(pair.theirs, seed)
	filled, err := pair.theirs.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	again := empty(pair.theirs) // a nil []byte in a map comes back empty
	if err := again.Unmarshal(filled); err != nil {
		t.Fatal(err)
	}
	want, err := again.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	if err := pair.ours.Unmarshal(want); err != nil {
		t.Fatalf("%T: %v", pair.ours, err)
	}
	if got := marshal(t, pair.ours); !bytes.Equal(got, want) {
		t.Errorf("%T, seed %d:\n got %q\nwant %q", pair.ours, seed, got, want)
	}
}

func TestMirrorsHaveTheBytesOfKubernetes(t *testing.T) {
	t.Parallel()
	for which := range mirrors() {
		for seed := range int64(40) {
			compare(t, which, seed)
		}
		pair := mirrors()[which]
		want, err := pair.theirs.Marshal()
		if got := marshal(t, pair.ours); err != nil || !bytes.Equal(got, want) {
			t.Errorf("an empty %T is %q, want %q: %v", pair.ours, got, want, err)
		}
	}
}

// FuzzMirrors: a type has the bytes of a type of Kubernetes with the same fields.
func FuzzMirrors(f *testing.F) {
	for which := range mirrors() {
		f.Add(uint8(which), int64(which))
	}
	f.Fuzz(func(t *testing.T, which uint8, seed int64) { compare(t, int(which)%len(mirrors()), seed) })
}

// TestEveryFormComesBack as it was, also into a value that had another content.
func TestEveryFormComesBack(t *testing.T) {
	t.Parallel()
	got := &mirror.Forms{}
	for seed := range int64(100) {
		want := &mirror.Forms{}
		fill(want, seed)
		data := marshal(t, want)
		got.Reset()
		if err := got.Unmarshal(data); err != nil {
			t.Fatal(err)
		}
		if again := marshal(t, got); !bytes.Equal(again, data) || !equality.Semantic.DeepEqual(got, want) {
			t.Fatalf("seed %d: %+v came back as %+v", seed, want, got)
		}
	}
}

// FuzzUnmarshal: any bytes are read or refused, and what is read of them is stable. What Kubernetes'
// type reads of them, the mirror reads as well.
func FuzzUnmarshal(f *testing.F) {
	for which := range mirrors() {
		pair := mirrors()[which]
		fill(pair.theirs, 1)
		data, err := pair.theirs.Marshal()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(uint8(which), data)
	}
	forms := &mirror.Forms{}
	fill(forms, 1)
	data, err := forms.Marshal()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(uint8(len(mirrors())), data)
	f.Add(uint8(len(mirrors())), []byte("\x32\x10\x00\x00\x00\x00\x00\x00\xf0\x3f\x00\x00\x00\x00\x00\x00\xf0\x3f\x3a\x02\x01\x00")) // packed lists
	f.Add(uint8(0), []byte("\x0b\x0c\x13\x14\x08\x01"))                                                                              // groups, and a message that is a number
	f.Fuzz(func(t *testing.T, which uint8, data []byte) {
		ours, theirs := form(&mirror.Forms{}), form(nil)
		if i := int(which) % (len(mirrors()) + 1); i < len(mirrors()) {
			ours, theirs = mirrors()[i].ours, mirrors()[i].theirs
		}
		if ours.Unmarshal(data) != nil {
			return
		}
		first := marshal(t, ours)
		again := empty(ours)
		if err := again.Unmarshal(first); err != nil {
			t.Fatalf("%T: its own bytes %q: %v", ours, first, err)
		}
		if second := marshal(t, again); !bytes.Equal(first, second) {
			t.Errorf("%T: %q became %q, then %q", ours, data, first, second)
		}
		if theirs == nil || theirs.Unmarshal(data) != nil {
			return
		}
		if _, isContext := theirs.(*corev1.PodSecurityContext); isContext {
			return // it has more fields
		}
		if want, err := theirs.Marshal(); err != nil || !bytes.Equal(first, want) {
			t.Errorf("%T: read %q as %q, want %q: %v", ours, data, first, want, err)
		}
	})
}

// TestTypesOfTestsAreGenerated has committed files equal to what the generator makes.
func TestTypesOfTestsAreGenerated(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"generate/protobuf/testdata/mirror", "apiserver/custom/testdata/boats/v1"} {
		r, err := generate.Parse([]string{"protobuf:headerFile=" + filepath.Join(root, "internal", "house", "testdata", "header.go.txt"), "paths=."}, generate.Steer)
		if err != nil {
			t.Fatal(err)
		}
		r.Dir = filepath.Join(root, dir)
		result, err := generate.Run(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		changes, err := result.Changes()
		if err != nil || len(result.Files) != 2 {
			t.Fatal(len(result.Files), err)
		}
		if *update {
			if err := generate.Apply(changes); err != nil {
				t.Fatal(err)
			}
			continue
		}
		for _, change := range changes {
			t.Errorf("%s is not what the generator makes: go test ./generate/protobuf -update", change.Path)
		}
	}
}
