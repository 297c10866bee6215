// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/storage"
)

func TestLifeIsReadFromMetadataAlone(t *testing.T) {
	t.Parallel()
	no := false
	for text, want := range map[string]*Object{
		`{"apiVersion":"v1","metadata":{"annotations":{"uid":"wrong","x":"{\"uid\":\"wrong\"}"},"name":"a","uid":"1"},"data":{"uid":"wrong"}}`: {UID: "1"},
		`{"spec":{"a":[1,{"b":"]}"}],"c":-1.5e3,"d":true},"metadata":{"uid":"1","finalizers":["x/y","z"],"deletionTimestamp":"2000-01-01T00:00:00Z"}}`: {
			UID: "1", Finalizers: []string{"x/y", "z"}, Deleting: true,
		},
		`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"p","uid":"2","blockOwnerDeletion":false}],"uid":"1"}}`: {
			UID: "1", Owners: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "p", UID: "2", BlockOwnerDeletion: &no}},
		},
		`{"metadata":{"deletionTimestamp":null,"finalizers":null,"ownerReferences":null,"uid":"1"}}`: {UID: "1"},
		`{"metadata":{"name":"a"}}`: nil,
		`{}`:                        nil,
		`[]`:                        nil,
		``:                          nil,
	} {
		if diff := cmp.Diff(want, LifeOf(&storage.Record{Value: []byte(text)})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
		uid, bare := Bare(&storage.Record{Value: []byte(text)})
		if plain := want == nil || len(want.Owners)+len(want.Finalizers) == 0 && !want.Deleting; bare != plain {
			t.Errorf("%s: bare %t", text, bare)
		}
		if bare && want != nil && string(uid) != string(want.UID) {
			t.Errorf("%s: uid %q", text, uid)
		}
	}
}

func BenchmarkLifeOf(b *testing.B) {
	value := fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"creationTimestamp":"2000-01-01T00:00:00Z","managedFields":[{"apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:data":{".":{},"f:x":{}}},"manager":"m","operation":"Update"}],"name":"a","namespace":"b","resourceVersion":"1","uid":"6a4ac0c2-6c8b-4e27-9f6f-5f2a5b0a9f00"},"data":{"x":%q}}`, strings.Repeat("x", 2000))
	rec := &storage.Record{Value: value}
	for b.Loop() {
		if LifeOf(rec) == nil {
			b.Fatal("not an object")
		}
	}
}

func BenchmarkBare(b *testing.B) {
	value := fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"creationTimestamp":"2000-01-01T00:00:00Z","managedFields":[{"apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{%s}},"manager":"m","operation":"Update"}],"name":"a","namespace":"b","resourceVersion":"1","uid":"6a4ac0c2-6c8b-4e27-9f6f-5f2a5b0a9f00"},"data":{"x":%q}}`, strings.Repeat(`"f:abcdef":{},`, 40)+`"f:z":{}`, strings.Repeat("x", 2000))
	rec := &storage.Record{Value: value}
	for b.Loop() {
		if _, bare := Bare(rec); !bare {
			b.Fatal("not bare")
		}
	}
}
