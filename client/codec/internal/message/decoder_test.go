// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package message

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes/scheme"
)

// kinds are all types of k8s.io/api and of custom resource definitions that travel
// as protobuf, by name.
func kinds() []reflect.Type {
	var out []reflect.Type
	known := maps.Clone(scheme.Scheme.AllKnownTypes())
	definitions := runtime.NewScheme()
	utilruntime.Must(apiextensionsv1.AddToScheme(definitions))
	maps.Copy(known, definitions.AllKnownTypes())
	seen := map[reflect.Type]bool{}
	for _, t := range known {
		if !seen[t] && reflect.PointerTo(t).Implements(unmarshalerType) {
			seen[t] = true
			out = append(out, t)
		}
	}
	slices.SortFunc(out, func(a, b reflect.Type) int {
		return strings.Compare(a.PkgPath()+"."+a.Name(), b.PkgPath()+"."+b.Name())
	})
	return out
}

// pair is a decoder of each sort.
type pair struct{ plain, sharing *Decoder }

func newPair() pair { return pair{NewDecoder(Options{}), NewDecoder(Options{Share: true})} }

// sameAsUnmarshal reads data in every way: what is understood is what Unmarshal
// makes of it.
func (p pair) sameAsUnmarshal(t *testing.T, kind reflect.Type, data []byte) (understood bool) {
	t.Helper()
	want := reflect.New(kind).Interface()
	err := want.(unmarshaler).Unmarshal(data)
	for _, d := range []*Decoder{p.plain, p.sharing} {
		got := reflect.New(kind).Interface()
		if understood = d.Decode(slices.Clone(data), got); !understood {
			continue
		}
		if err != nil {
			t.Fatalf("%s from %x: understood, but Unmarshal says %v", kind, data, err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%s from %x: (-Unmarshal +ours)\n%s", kind, data, cmp.Diff(want, got))
		}
	}
	return understood
}

func encode(t *testing.T, obj any) []byte {
	t.Helper()
	data, err := obj.(interface{ Marshal() ([]byte, error) }).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestEveryKindIsReadAsUnmarshalReadsIt(t *testing.T) {
	t.Parallel()
	all := kinds()
	if len(all) < 200 {
		t.Fatalf("only %d kinds", len(all))
	}
	rounds := 4
	if testing.Short() {
		rounds = 3
	}
	for i, kind := range all {
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			p, r := newPair(), &filler{Rand: rand.New(rand.NewPCG(1, uint64(i)))}
			for round := range rounds {
				obj := reflect.New(kind)
				r.sparse = []int{0, 3, 6, 9}[round%4]
				if strings.Contains(kind.PkgPath(), "apiextensions") || strings.HasSuffix(kind.Name(), "List") {
					r.sparse = max(r.sparse, 3)
				}
				r.fill(obj.Elem(), 0)
				data := encode(t, obj.Interface())
				for range 2 { // the second time everything is shared
					if !p.sameAsUnmarshal(t, kind, data) {
						t.Fatalf("not understood: %x", data)
					}
				}
				p.damaged(t, r, kind, data)
			}
		})
	}
}

// damaged reads data with mistakes, which are understood as Unmarshal does or
// not at all.
func (p pair) damaged(t *testing.T, r *filler, kind reflect.Type, data []byte) {
	t.Helper()
	if len(data) == 0 {
		return
	}
	for range 20 {
		at := r.IntN(len(data))
		to := min(len(data), at+r.IntN(6))
		bad := slices.Clone(data)
		switch r.IntN(5) {
		case 0:
			bad = bad[:at]
		case 1:
			bad[at] = byte(r.Uint32())
		case 2:
			bad = slices.Delete(bad, at, to)
		case 3:
			bad = slices.Insert(bad, at, bad[at:to]...)
		case 4:
			bad = append(bad, data...) // every field again
		}
		p.sameAsUnmarshal(t, kind, bad)
	}
}

func TestFieldsOfANewerServerAreSkipped(t *testing.T) {
	t.Parallel()
	p := newPair()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
	data := encode(t, pod)
	for _, field := range [][]byte{
		binary.AppendUvarint(binary.AppendUvarint(nil, 900<<3|wireVarint), 1<<40),
		append(binary.AppendUvarint(nil, 900<<3|wireFixed64), make([]byte, 8)...),
		append(binary.AppendUvarint(nil, 900<<3|wireFixed32), make([]byte, 4)...),
		append(binary.AppendUvarint(nil, 900<<3|wireBytes), 2, 'h', 'i'),
	} {
		if !p.sameAsUnmarshal(t, reflect.TypeFor[corev1.Pod](), slices.Concat(data, field, field)) {
			t.Errorf("%x is not understood", field)
		}
		p.sameAsUnmarshal(t, reflect.TypeFor[corev1.Pod](), slices.Concat(data, field[:len(field)-1]))
	}
}

func TestManagedFieldsAreLeftOut(t *testing.T) {
	t.Parallel()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubelet"}}}}
	var got corev1.Pod
	if !NewDecoder(Options{DropManagedFields: true}).Decode(encode(t, pod), &got) {
		t.Fatal("not understood")
	}
	if pod.ManagedFields = nil; !reflect.DeepEqual(&got, pod) {
		t.Error(cmp.Diff(pod, &got))
	}
}

func podOf(i int) *corev1.Pod {
	yes := true
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprint("web-", i), Namespace: "shop", Labels: map[string]string{"app": "web"},
			OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web", Controller: &yes}},
		},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "web", Args: []string{fmt.Sprint(i)}, Env: []corev1.EnvVar{{Name: "A", Value: "B"}}}},
			Affinity:   &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}},
		},
	}
}

func TestEqualPartsAreSharedOnlyIfWanted(t *testing.T) {
	t.Parallel()
	for _, share := range []bool{false, true} {
		d := NewDecoder(Options{Share: share})
		var a, b corev1.Pod
		if !d.Decode(encode(t, podOf(1)), &a) || !d.Decode(encode(t, podOf(2)), &b) {
			t.Fatal("not understood")
		}
		for name, same := range map[string]bool{
			"labels":     reflect.ValueOf(a.Labels).Pointer() == reflect.ValueOf(b.Labels).Pointer(),
			"owners":     &a.OwnerReferences[0] == &b.OwnerReferences[0],
			"controller": a.OwnerReferences[0].Controller == b.OwnerReferences[0].Controller,
			"affinity":   a.Spec.Affinity == b.Spec.Affinity,
			"env":        &a.Spec.Containers[0].Env[0] == &b.Spec.Containers[0].Env[0],
		} {
			if same != share {
				t.Errorf("%s are shared: %v, want %v", name, same, share)
			}
		}
		if &a.Spec.Containers[0] == &b.Spec.Containers[0] {
			t.Error("different containers are shared")
		}
	}
}

func TestListsHaveNoRoomToGrow(t *testing.T) {
	t.Parallel()
	var pod corev1.Pod
	for range 5 {
		pod.Finalizers = append(pod.Finalizers, "example.com/f")
	}
	var got corev1.Pod
	if !NewDecoder(Options{Share: true}).Decode(encode(t, &pod), &got) {
		t.Fatal("not understood")
	}
	if cap(got.Finalizers) != 5 {
		t.Errorf("five finalizers take the room of %d; an append would be seen by others", cap(got.Finalizers))
	}
}

func TestWhatIsRememberedIsBounded(t *testing.T) {
	t.Parallel()
	d := NewDecoder(Options{Share: true})
	for i := range 50_000 {
		var got metav1.PartialObjectMetadata
		// Now and then a pair, so that it seems worth it.
		in := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprint(i / 2), Annotations: map[string]string{fmt.Sprint(i / 2): strings.Repeat("x", 100)},
		}}
		if !d.Decode(encode(t, in), &got) {
			t.Fatal("not understood")
		}
	}
	if len(d.texts.young) > maxTexts || len(d.texts.old) > maxTexts || len(d.texts.old) == 0 {
		t.Errorf("%d and %d strings are remembered", len(d.texts.young), len(d.texts.old))
	}
	size := 0
	for key := range d.parts.young {
		size += len(key.encoded) + partCost
	}
	if size > maxParts+maxPart+partCost || len(d.parts.old) == 0 || len(d.parts.old) > 2*maxParts/partCost {
		t.Errorf("%d bytes in %d and %d parts are remembered", size, len(d.parts.young), len(d.parts.old))
	}
}

func FuzzDecode(f *testing.F) {
	all := kinds()
	r := &filler{Rand: rand.New(rand.NewPCG(2, 3)), sparse: 5}
	for i, kind := range all {
		obj := reflect.New(kind)
		r.fill(obj.Elem(), 0)
		if data, err := obj.Interface().(interface{ Marshal() ([]byte, error) }).Marshal(); err == nil && len(data) < 4096 {
			f.Add(uint16(i), data)
		}
	}
	f.Fuzz(func(t *testing.T, kind uint16, data []byte) {
		p := newPair()
		for range 2 {
			p.sameAsUnmarshal(t, all[int(kind)%len(all)], data)
		}
	})
}
