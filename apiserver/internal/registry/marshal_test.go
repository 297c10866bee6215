// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"bytes"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/apiserver/internal/recordcache"
	"github.com/steer-dev/steer/apiserver/internal/wire"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/storage"
)

// TestWritesCacheProtobufWhileAWatchReadsIt: while a watch reads a kind as
// protobuf, a write caches the protobuf of its object, equal to that of the stored
// record and sharing its memory; without a watch it does not.
func TestWritesCacheProtobufWhileAWatchReadsIt(t *testing.T) {
	t.Parallel()
	const budget = 800 // for the bytes that two encodings do not share with their records
	g := New(Options{CacheBytes: budget})
	in := g.Serve(&resource.Resource{
		Names:    resource.Names{Plural: "pods", Kind: "Pod", ListKind: "PodList", Namespaced: true},
		Versions: []resource.Version{{Name: "v1", New: func() resource.Object { return &corev1.Pod{} }}},
		Storage:  resource.Storage{Version: "v1"},
	})
	v := in.Version("v1")
	write := func(asked bool) *storage.Record {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "b", Labels: map[string]string{"c": "d"}}}
		pod.Spec.Containers = []corev1.Container{{Name: "e", Image: "f"}}
		owners := &metav1.FieldsV1{}
		owners.SetRawBytes([]byte(`{"f:spec":{` + strings.Repeat(`"f:long":{},`, 40) + `"f:end":{}}}`))
		pod.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "g", FieldsType: "FieldsV1", FieldsV1: owners}}
		s, err := g.encodeForStore(t.Context(), in, v, pod)
		if err != nil || s.lossless == nil {
			t.Fatalf("encoded as %+v: %v", s, err)
		}
		value := append(append(bytes.Clone(s.value[:s.stamp]), "42"...), s.value[s.stamp:]...)
		rec := &storage.Record{Value: value, Stamp: s.stamp, Modified: 42}
		g.marshal(in, rec, s.lossless, asked)
		return rec
	}
	cached := func(rec *storage.Record) bool {
		_, ok := recordcache.Cached(rec, v, recordcache.Proto)
		return ok
	}
	if cached(write(false)) {
		t.Error("protobuf is cached although no watch reads it")
	}
	earlier := write(true)
	if !cached(earlier) {
		t.Error("protobuf is not cached although the writer reads it")
	}
	done := in.WatchedAsProto(v)
	rec := write(false)
	if !cached(rec) {
		t.Fatal("protobuf is not cached although a watch reads it")
	}
	read, err := g.Object(t.Context(), in, v, rec)
	if err != nil {
		t.Fatal(err)
	}
	want, own, err := in.proto(v, rec, read)
	if err != nil {
		t.Fatal(err)
	}
	got, err := g.Proto(t.Context(), in, v, rec)
	if err != nil || !bytes.Equal(got.AppendTo(nil), want.AppendTo(nil)) || len(got.Rest) != len(want.Rest) {
		t.Errorf("got %q, want %q: %v", got.AppendTo(nil), want.AppendTo(nil), err)
	}
	if !cached(earlier) || 2*want.Len() < budget {
		t.Errorf("two encodings of %d bytes, of which %d are their own, do not fit in %d", want.Len(), own, budget)
	}
	if len(got.Rest) == 0 || &got.Rest[0][0] != &rec.Value[wire.Index(rec.Value, got.Rest[0])] {
		t.Error("the owners of the fields are in memory twice")
	}
	if done(); in.watched[v].Load() != 0 {
		t.Error("a watch that has ended is still counted")
	}
}
