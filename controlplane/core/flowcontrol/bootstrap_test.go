// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package flowcontrol

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/storage"
)

// TestBootstrapObjectsAreValidAndAsTheServerStoresThem: the prepared bytes are the
// encoding of objects that pass their own rules.
func TestBootstrapObjectsAreValidAndAsTheServerStoresThem(t *testing.T) {
	t.Parallel()
	store := storage.NewMemory(storage.MemoryOptions{})
	uid := func() types.UID { return "11111111-2222-3333-4444-555555555555" }
	writes := Boot(store.Latest(), uid, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	if len(writes) != 19 {
		t.Errorf("%d objects, want 11 schemas and 8 levels", len(writes))
	}
	for _, w := range writes {
		stamped := slices.Concat(w.Value[:w.Stamp], []byte("7"), w.Value[w.Stamp:])
		var obj any = &flowcontrolv1.FlowSchema{}
		if w.Key.Bucket == levels {
			obj = &flowcontrolv1.PriorityLevelConfiguration{}
		}
		if err := json.Unmarshal(stamped, obj); err != nil {
			t.Fatalf("%s: %v", w.Key, err)
		}
		again, err := json.Marshal(obj)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(stamped, again) {
			t.Errorf("%s (-prepared +encoded):\n%s", w.Key, cmp.Diff(string(stamped), string(again)))
		}
		switch obj := obj.(type) {
		case schema:
			if errs := validateSchema(obj); len(errs) > 0 {
				t.Errorf("%s: %v", w.Key, errs)
			}
		case level:
			if errs := validateLevel(obj); len(errs) > 0 {
				t.Errorf("%s: %v", w.Key, errs)
			}
		}
	}
	if _, err := store.Commit(t.Context(), writes[0]); err != nil {
		t.Fatal(err)
	}
	if again := Boot(store.Latest(), uid, time.Now()); len(again) != len(writes)-1 {
		t.Errorf("%d objects are missing, want all but one", len(again))
	}
}
