// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package custom

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"

	"github.com/steer-dev/steer/apiserver/resource"
)

func TestCanonicalMetadataIsWhatDecodingWouldMakeOfIt(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		`{"name":"a","namespace":"b","uid":"c","resourceVersion":"1","generation":2,"labels":{"a":""},"annotations":{"<":"é"}}`:                                       true,
		`{"creationTimestamp":"2026-01-02T03:04:05Z","finalizers":["a"],"deletionGracePeriodSeconds":0}`:                                                              true,
		`{"ownerReferences":[{"apiVersion":"v1","kind":"","name":"a","uid":"b","controller":false}]}`:                                                                 true,
		`{"managedFields":[{"manager":"a","operation":"Apply","apiVersion":"v1","time":"2026-01-02T03:04:05Z","fieldsType":"FieldsV1","fieldsV1":{"f:a":{".":{}}}}]}`: true,
		`{}`:                         true,
		`{"name":""}`:                false,
		`{"generation":0}`:           false,
		`{"labels":{}}`:              false,
		`{"labels":{"a":null}}`:      false,
		`{"colour":"red"}`:           false,
		`{"name":1}`:                 false,
		`{"finalizers":[]}`:          false,
		`{"creationTimestamp":null}`: false,
		`{"creationTimestamp":"2026-01-02T03:04:05.5Z"}`:           false,
		`{"creationTimestamp":"2026-01-02T03:04:05+01:00"}`:        false,
		`{"creationTimestamp":"2026-02-30T03:04:05Z"}`:             false,
		`{"creationTimestamp":"0001-01-01T00:00:00Z"}`:             false,
		`{"ownerReferences":[{"kind":"a","name":"a","uid":"b"}]}`:  false,
		`{"managedFields":[{"manager":"a","fieldsV1":{"f:a":1}}]}`: false,
	} {
		metadata := object(t, "x: "+text).Content()["x"].(map[string]any)
		if got := fastMetadata(resource.NewDoc(map[string]any{"metadata": metadata})); got != want {
			t.Errorf("%s: canonical %t, want %t", text, got, want)
		}
		if !want {
			continue
		}
		decoded := map[string]any{"metadata": metadata}
		meta, _, unknown, err := objectmeta.GetObjectMetaWithOptions(decoded, objectmeta.ObjectMetaOptions{ReturnUnknownFieldPaths: true})
		if err != nil || len(unknown) > 0 {
			t.Errorf("%s: %v, unknown %v", text, err, unknown)
			continue
		}
		if err := objectmeta.SetObjectMeta(decoded, meta); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(decoded["metadata"], any(metadata)); diff != "" {
			t.Errorf("%s (-decoded +as it is):\n%s", text, diff)
		}
	}
}
