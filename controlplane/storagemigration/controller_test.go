// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package storagemigration_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	migrationv1 "k8s.io/api/storagemigration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/controlplane/internal/step/steptest"
	"github.com/steer-dev/steer/controlplane/storagemigration"
	"github.com/steer-dev/steer/storage"
)

var catalog = steptest.Catalog{{Bucket: "configmaps", Version: "v1", Plural: "configmaps", Kind: "ConfigMap", Namespaced: true}}

// world has three ConfigMaps, and a controller that is told of all that is written.
type world struct {
	*testing.T
	store storage.Store
	*storagemigration.Controller
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t, storage.NewMemory(storage.MemoryOptions{}), storagemigration.NewController(catalog)}
	t.Cleanup(func() { _ = w.store.Close() })
	for i := range 3 {
		steptest.Put(t, w.store, storage.Key{Bucket: "configmaps", Name: fmt.Sprint("default/", i)}, &steptest.Object{})
	}
	return w
}

// put stores a migration and has the controller see it.
func (w *world) put(m *migrationv1.StorageVersionMigration) {
	w.Helper()
	key := storage.Key{Bucket: "storagemigration.k8s.io/storageversionmigrations", Name: m.Name}
	steptest.Put(w.T, w.store, key, m)
	steptest.Observe(w.Controller, storage.Event{Record: w.view().Get(key)})
}

func (w *world) view() storage.View {
	w.Helper()
	view, err := w.store.View(w.Context(), 0)
	if err != nil {
		w.Fatal(err)
	}
	return view
}

// sync carries out what writes migrations, until there is nothing but other requests, which it
// returns.
func (w *world) sync() []step.Request {
	w.Helper()
	for range 10 {
		requests := w.Sync(w.view(), time.Now())
		for _, r := range requests {
			if !strings.HasSuffix(r.Path, "/status") {
				return requests
			}
			m := &migrationv1.StorageVersionMigration{}
			if err := json.Unmarshal(r.Body, m); err != nil {
				w.Fatal(err)
			}
			w.put(m)
			w.Done(r, nil)
		}
		if len(requests) == 0 {
			return nil
		}
	}
	w.Fatal("it does not settle")
	return nil
}

// says is what the conditions of a migration are.
func (w *world) says(name string) string {
	w.Helper()
	m := &migrationv1.StorageVersionMigration{}
	if err := json.Unmarshal(w.view().Get(storage.Key{Bucket: "storagemigration.k8s.io/storageversionmigrations", Name: name}).Value, m); err != nil {
		w.Fatal(err)
	}
	var out []string
	for _, c := range m.Status.Conditions {
		out = append(out, fmt.Sprintf("%s=%s %s", c.Type, c.Status, c.Message))
	}
	return strings.Join(out, "; ")
}

func migration(name string, age time.Duration) *migrationv1.StorageVersionMigration {
	return &migrationv1.StorageVersionMigration{
		ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(time.Now().Add(-age))},
		Spec:       migrationv1.StorageVersionMigrationSpec{Resource: metav1.GroupResource{Resource: "configmaps"}},
	}
}

func TestMigrationGoesOnAfterWhatRetriesMend(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put(migration("a", 0))
	patches := w.sync()
	if len(patches) != 3 || patches[0].Path != "/api/v1/namespaces/default/configmaps/0" || string(patches[0].Body) != `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"resourceVersion":"1"}}` {
		t.Fatalf("it asks for %+v", patches)
	}
	of := schema.GroupResource{Resource: "configmaps"}
	w.Done(patches[0], apierrors.NewConflict(of, "0", errors.New("written meanwhile")))
	w.Done(patches[1], apierrors.NewNotFound(of, "1"))
	w.Done(patches[2], apierrors.NewTooManyRequestsError("slow down"))
	again := w.sync()
	if len(again) != 1 || again[0].Path != patches[2].Path {
		t.Fatalf("it asks again for %+v", again)
	}
	if got := w.says("a"); got != "Running=True The migration is running, 1/3 objects not yet migrated; transient error: Too many requests: slow down" {
		t.Error(got)
	}
	w.Done(again[0], nil)
	if left := w.sync(); left != nil {
		t.Errorf("it asks for more: %+v", left)
	}
	if got := w.says("a"); got != "Running=False Migration completed; Succeeded=True Migration completed" {
		t.Error(got)
	}
}

func TestMigrationFailsByWhatNoRetryMends(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put(migration("a", 0))
	for _, r := range w.sync() {
		w.Done(r, apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "x", errors.New("by a webhook")))
	}
	if left := w.sync(); left != nil {
		t.Errorf("it asks for more: %+v", left)
	}
	const want = `Running=False Migration completed; Failed=True 3/3 not yet migrated. migration encountered unhandled error: configmaps "x" is forbidden: by a webhook`
	if got := w.says("a"); got != want {
		t.Error(got)
	}
}

func TestOneMigrationOfAResourceRunsAtATime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put(migration("a", 0))
	w.put(migration("b", time.Hour))
	patches := w.sync()
	if got := [2]string{w.says("a"), w.says("b")}; len(patches) != 3 || got[0] != "" || got[1] != "Running=True The migration is running" {
		t.Errorf("%d patches, %q", len(patches), got)
	}
	w.Reset(w.view()) // as after a restart
	if again := w.sync(); len(again) != 3 {
		t.Errorf("after a restart it asks for %+v", again)
	}
}
