// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package flowcontrol

import (
	"encoding/json"
	"testing"
	"time"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/controlplane/internal/step/steptest"
	"github.com/steer-dev/steer/storage"
)

// TestControllerReportsDanglingSchemas drives the controller through a start, the
// loss of a level while it did not run, and failures.
func TestControllerReportsDanglingSchemas(t *testing.T) {
	t.Parallel()
	store := storage.NewMemory(storage.MemoryOptions{})
	for _, w := range Boot(store.Latest(), func() types.UID { return "u" }, time.Now()) {
		if _, err := store.Commit(t.Context(), w); err != nil {
			t.Fatal(err)
		}
	}
	c := NewController()
	said := func(what string, want ...string) {
		t.Helper()
		requests := c.Sync(store.Latest(), time.Now())
		if len(requests) != len(want) {
			t.Fatalf("%s: %d requests, want %d", what, len(requests), len(want))
		}
		for i, r := range requests {
			var s flowcontrolv1.FlowSchema
			if err := json.Unmarshal(r.Body, &s); err != nil {
				t.Fatal(err)
			}
			if got := s.Name + " " + s.Status.Conditions[0].Reason; got != want[i] {
				t.Errorf("%s: said %s, want %s", what, got, want[i])
			}
		}
	}
	c.Reset(store.Latest())
	said("a fresh cluster")

	mine := storage.Key{Bucket: schemas, Name: "mine"}
	spec := flowcontrolv1.FlowSchemaSpec{PriorityLevelConfiguration: flowcontrolv1.PriorityLevelConfigurationReference{Name: "workload-low"}}
	steptest.Put(t, store, mine, &flowcontrolv1.FlowSchema{ObjectMeta: metav1.ObjectMeta{Name: "mine"}, Spec: spec})
	c.Reset(store.Latest())
	said("one that nothing was said of", "mine Found")
	said("a second look")

	steptest.Put(t, store, storage.Key{Bucket: levels, Name: "workload-low"}, nil)
	c.Reset(store.Latest())
	said("a level went while it did not run", "mine NotFound", "service-accounts NotFound")
	steptest.Put(t, store, mine, &flowcontrolv1.FlowSchema{
		ObjectMeta: metav1.ObjectMeta{Name: "mine"}, Spec: spec,
		Status: flowcontrolv1.FlowSchemaStatus{Conditions: []flowcontrolv1.FlowSchemaCondition{dangling("workload-low", false)}},
	})
	c.Reset(store.Latest())
	said("one of which it was said", "service-accounts NotFound")
}
