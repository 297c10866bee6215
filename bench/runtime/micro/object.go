// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package micro

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/bench/runtime/item"
)

// form is how objects travel.
type form int

const (
	custom   form = iota // items, as JSON
	builtin              // Pods, as protobuf
	untyped              // items, as JSON, without their Go type
	metadata             // of items, as protobuf
)

// Object is what both sides cache.
type Object interface {
	metav1.Object
	runtime.Object
}

// Blank is an empty object of the form.
func (f form) blank() Object {
	kind := metav1.TypeMeta{APIVersion: "bench.example.com/v1", Kind: "Item"}
	switch f {
	case builtin:
		return &corev1.Pod{}
	case untyped:
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": kind.APIVersion, "kind": kind.Kind}}
	case metadata:
		return &metav1.PartialObjectMetadata{TypeMeta: kind}
	default:
		return &item.Item{}
	}
}

// protobuf reports whether objects travel as protobuf.
func (f form) protobuf() bool { return f == builtin || f == metadata }

// object number i: about 8 KB as JSON, a fifth of it managedFields, or a few
// hundred bytes.
func (f form) object(i, version int, small bool) Object {
	if f == builtin {
		return pod(i, version, small)
	}
	o := &item.Item{TypeMeta: metav1.TypeMeta{APIVersion: "bench.example.com/v1", Kind: "Item"}, ObjectMeta: metav1.ObjectMeta{
		Name: fmt.Sprintf("item-%06d", i), Namespace: fmt.Sprint("ns-", i%20), UID: uid("item", i), ResourceVersion: fmt.Sprint(version),
		Labels: map[string]string{"app": fmt.Sprint("app-", i%50), "tier": "frontend", "team": "shop"},
	}}
	o.Spec = item.Spec{Replicas: int32(version % 1000), Image: "registry.example.com/shop/web:v1.2.3"}
	o.Status.Phase = "Running"
	if f == metadata {
		return &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"}, ObjectMeta: o.ObjectMeta}
	}
	if small {
		return o
	}
	o.Annotations = map[string]string{"checksum/config": "4a5b6c7d8e9f", "example.com/owner": "shop"}
	o.ManagedFields = []metav1.ManagedFieldsEntry{managed("kubectl", 24), managed("operator", 12)}
	for s := range 80 {
		o.Spec.Payload = append(o.Spec.Payload, item.Setting{Name: fmt.Sprint("SETTING_", s), Value: fmt.Sprint("some value of the usual length, ", i)})
	}
	return o
}

func managed(by string, fields int) metav1.ManagedFieldsEntry {
	var set strings.Builder
	for f := range fields {
		fmt.Fprintf(&set, `,"f:setting_%d":{".":{},"f:value":{}}`, f)
	}
	at := metav1.NewTime(time.Unix(1_790_000_000, 0))
	return metav1.ManagedFieldsEntry{
		Manager: by, Time: &at, Operation: metav1.ManagedFieldsOperationApply, APIVersion: "v1", FieldsType: "FieldsV1",
		FieldsV1: metav1.NewFieldsV1(`{"f:spec":{` + set.String()[1:] + `}}`),
	}
}

// digest is of 64 hexadecimal digits, other ones for each of what it is made of.
func digest(of ...any) string {
	sum := sha256.Sum256([]byte(fmt.Sprint(of...)))
	return hex.EncodeToString(sum[:])
}

func uid(of ...any) types.UID {
	d := digest(of...)
	return types.UID(d[:8] + "-" + d[8:12] + "-" + d[12:16] + "-" + d[16:20] + "-" + d[20:32])
}
