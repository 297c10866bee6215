// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/steer-dev/steer/storage"
)

func TestDecodeReadsUntypedPlacesAsKubernetes(t *testing.T) {
	t.Parallel()
	type object struct {
		Spec map[string]any `json:"spec"`
	}
	var got object
	if err := Decode(&storage.Record{Value: []byte(`{"spec":{"replicas":9007199254740993,"ratio":1.5}}`)}, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(object{Spec: map[string]any{"replicas": int64(9007199254740993), "ratio": 1.5}}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
