// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package cleanup_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/controlplane/crd"
	"github.com/steer-dev/steer/controlplane/crd/cleanup"
	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/controlplane/internal/step/steptest"
	"github.com/steer-dev/steer/storage"
)

const (
	definitionPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/crontabs.example.com/status"
	cronTabs       = "example.com/crontabs"
)

// world is a store, and a cleaner that observes it.
type world struct {
	t       *testing.T
	store   storage.Store
	cleaner *cleanup.Cleaner
}

func newWorld(t *testing.T, served ...step.Resource) *world {
	t.Helper()
	return &world{t, storage.NewMemory(storage.MemoryOptions{}), cleanup.New(steptest.Catalog(served), steptest.Decode)}
}

func servedCronTabs(namespaced bool) step.Resource {
	return step.Resource{Bucket: cronTabs, Group: "example.com", Version: "v1", Plural: "crontabs", Kind: "CronTab", Namespaced: namespaced}
}

// put stores an object, or deletes it if o is nil, and lets the cleaner observe that.
func (w *world) put(bucket, name string, o any) {
	w.t.Helper()
	key := storage.Key{Bucket: bucket, Name: name}
	before := w.store.Latest().Get(key)
	steptest.Put(w.t, w.store, key, o)
	e := storage.Event{Record: w.store.Latest().Get(key)}
	if o == nil {
		e = storage.Event{Record: before, Deleted: true}
	}
	steptest.Observe(w.cleaner, e)
}

func (w *world) object(name string, deleting bool) {
	w.t.Helper()
	o := steptest.Object{Metadata: metav1.ObjectMeta{UID: types.UID(name)}}
	if deleting {
		o.Metadata.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	}
	w.put(cronTabs, name, o)
}

// step returns the requests of a step, one to a line: for a status, the condition that
// it sets and the finalizers that are left.
func (w *world) step() ([]step.Request, string) {
	w.t.Helper()
	requests := w.cleaner.Sync(w.store.Latest(), time.Time{})
	var lines []string
	for _, r := range requests {
		line := r.Method + " " + r.Path
		if r.User != step.APIServer || r.Subject.Key.Name != "crontabs.example.com" {
			w.t.Errorf("%s is sent as %s about %v", line, r.User, r.Subject)
		}
		if r.Body != nil {
			var d v1.CustomResourceDefinition
			if err := json.Unmarshal(r.Body, &d); err != nil {
				w.t.Fatal(err)
			}
			c := d.Status.Conditions[len(d.Status.Conditions)-1]
			line += fmt.Sprintf(": %s=%s %s (%s) %v", c.Type, c.Status, c.Reason, c.Message, d.Finalizers)
		}
		lines = append(lines, line)
	}
	return requests, strings.Join(lines, "\n")
}

func (w *world) want(want string) []step.Request {
	w.t.Helper()
	requests, got := w.step()
	if diff := cmp.Diff(strings.TrimSpace(want), got); diff != "" {
		w.t.Errorf("requests (-want +got):\n%s", diff)
	}
	return requests
}

// definition that is being deleted, changed by edit.
func definition(edit func(*v1.CustomResourceDefinition)) *v1.CustomResourceDefinition {
	d := &v1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{
			Name: "crontabs.example.com", UID: "crd", DeletionTimestamp: &metav1.Time{Time: time.Unix(1, 0)}, Finalizers: []string{v1.CustomResourceCleanupFinalizer, "example.com/other"},
		},
		Spec:   v1.CustomResourceDefinitionSpec{Group: "example.com", Names: v1.CustomResourceDefinitionNames{Plural: "crontabs"}},
		Status: v1.CustomResourceDefinitionStatus{Conditions: []v1.CustomResourceDefinitionCondition{{Type: v1.Established, Status: v1.ConditionTrue}}},
	}
	if edit != nil {
		edit(d)
	}
	return d
}

func (w *world) definition(edit func(*v1.CustomResourceDefinition)) {
	w.t.Helper()
	w.put(crd.Bucket, "crontabs.example.com", definition(edit))
}

const inProgress = "PUT " + definitionPath + ": Terminating=True InstanceDeletionInProgress (CustomResource deletion is in progress) [customresourcecleanup.apiextensions.k8s.io example.com/other]\n"

func TestCleanerDeletesTheObjectsOfEachNamespace(t *testing.T) {
	t.Parallel()
	w := newWorld(t, servedCronTabs(true))
	w.object("a/1", false)
	w.object("a/2", false)
	w.object("b/1", true)
	w.object("b/2", false)
	w.object("c/1", true)
	w.definition(nil)
	w.want(inProgress + `
DELETE /apis/example.com/v1/namespaces/a/crontabs
DELETE /apis/example.com/v1/namespaces/b/crontabs`[1:])
	w.want("")
}

func TestCleanerDeletesObjectsWithoutNamespaces(t *testing.T) {
	t.Parallel()
	w := newWorld(t, servedCronTabs(false))
	w.object("a", false)
	w.object("b", false)
	w.definition(nil)
	w.want(inProgress + "DELETE /apis/example.com/v1/crontabs")
}

func TestCleanerReleasesADefinitionWithoutObjects(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		edit   func(*v1.CustomResourceDefinition)
		served []step.Resource
		want   string
	}{
		{"no objects", nil, []step.Resource{servedCronTabs(true)}, "InstanceDeletionCompleted (removed all instances)"},
		{"never established", func(d *v1.CustomResourceDefinition) { d.Status.Conditions = nil }, []step.Resource{servedCronTabs(true)}, "NeverEstablished (resource was never established)"},
		{"not served", nil, nil, "OverlappingBuiltInResource (instances overlap with built-in resources in storage)"},
	} {
		w := newWorld(t, test.served...)
		w.definition(test.edit)
		w.want("PUT " + definitionPath + ": Terminating=False " + test.want + " [example.com/other]")
	}
}

func TestCleanerReleasesADefinitionWhenItsLastObjectIsGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, servedCronTabs(true))
	w.object("a/1", false)
	w.definition(nil)
	w.want(inProgress + "DELETE /apis/example.com/v1/namespaces/a/crontabs")
	w.put(cronTabs, "a/1", nil)
	w.want("PUT " + definitionPath + ": Terminating=False InstanceDeletionCompleted (removed all instances) [example.com/other]")
}

func TestCleanerIgnoresDefinitionsThatAreNotItsOwn(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(*v1.CustomResourceDefinition){
		"not deleted":       func(d *v1.CustomResourceDefinition) { d.DeletionTimestamp = nil },
		"released already":  func(d *v1.CustomResourceDefinition) { d.Finalizers = []string{"example.com/other"} },
		"not yet decodable": func(d *v1.CustomResourceDefinition) { d.UID = "" },
	} {
		w := newWorld(t, servedCronTabs(true))
		w.object("a/1", false)
		w.definition(edit)
		if _, got := w.step(); got != "" {
			t.Errorf("%s: %s", name, got)
		}
		// What was observed before counts no longer.
		w.definition(nil)
		w.definition(edit)
		if _, got := w.step(); got != "" {
			t.Errorf("%s, after a deletion began: %s", name, got)
		}
	}
	w := newWorld(t, servedCronTabs(true))
	w.definition(nil)
	w.put(crd.Bucket, "crontabs.example.com", nil)
	w.want("")
}

func TestCleanerReportsAndRepeatsDeletionsThatFail(t *testing.T) {
	t.Parallel()
	w := newWorld(t, servedCronTabs(true))
	w.object("a/1", false)
	w.definition(nil)
	requests := w.want(inProgress + "DELETE /apis/example.com/v1/namespaces/a/crontabs")
	w.definition(func(d *v1.CustomResourceDefinition) {
		d.Status.Conditions = append(d.Status.Conditions, v1.CustomResourceDefinitionCondition{
			Type: v1.Terminating, Status: v1.ConditionTrue, Reason: "InstanceDeletionInProgress", Message: "CustomResource deletion is in progress",
		})
	})
	w.want("DELETE /apis/example.com/v1/namespaces/a/crontabs") // the condition is set already
	w.cleaner.Done(requests[0], nil)
	w.cleaner.Done(requests[1], errors.New("no room"))
	w.want(strings.NewReplacer("InProgress", "Failed", "CustomResource deletion is in progress", "could not issue all deletes: no room").Replace(inProgress) + "DELETE /apis/example.com/v1/namespaces/a/crontabs")
	w.cleaner.Done(requests[0], errors.New("conflict")) // a write of the status does not end the failure
	w.want(strings.NewReplacer("InProgress", "Failed", "CustomResource deletion is in progress", "could not issue all deletes: no room").Replace(inProgress) + "DELETE /apis/example.com/v1/namespaces/a/crontabs")
	w.cleaner.Done(requests[1], nil)
	w.want("")
	w.object("a/1", true)
	w.want("") // the condition is that of the definition
}

func TestCleanerIgnoresReportsOfDefinitionsThatAreGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, servedCronTabs(true))
	w.object("a/1", false)
	w.definition(nil)
	requests := w.want(inProgress + "DELETE /apis/example.com/v1/namespaces/a/crontabs")
	w.put(crd.Bucket, "crontabs.example.com", nil)
	w.cleaner.Done(requests[1], errors.New("not found"))
	w.want("")
}

func TestCleanerFindsStoredDefinitionsWhenItIsReset(t *testing.T) {
	t.Parallel()
	w := newWorld(t, servedCronTabs(true))
	steptest.Put(t, w.store, storage.Key{Bucket: crd.Bucket, Name: "crontabs.example.com"}, definition(nil))
	w.cleaner.Reset(w.store.Latest())
	w.want("PUT " + definitionPath + ": Terminating=False InstanceDeletionCompleted (removed all instances) [example.com/other]")
	steptest.Put(t, w.store, storage.Key{Bucket: crd.Bucket, Name: "crontabs.example.com"}, nil)
	w.cleaner.Reset(w.store.Latest())
	w.want("")
}

func TestCleanerConcernsDefinitionsAndWhatItDeletes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, servedCronTabs(true))
	event := func(bucket string) storage.Event {
		return storage.Event{Record: &storage.Record{Key: storage.Key{Bucket: bucket, Name: "x"}}}
	}
	if !w.cleaner.Filter(event(crd.Bucket)) || w.cleaner.Filter(event(cronTabs)) {
		t.Error("before a deletion it does not concern definitions alone")
	}
	w.object("a/1", false)
	w.definition(nil)
	w.want(inProgress + "DELETE /apis/example.com/v1/namespaces/a/crontabs")
	if !w.cleaner.Filter(event(cronTabs)) || w.cleaner.Filter(event("example.com/others")) {
		t.Error("during a deletion it does not concern the objects of the definition alone")
	}
	w.put(crd.Bucket, "crontabs.example.com", nil)
	if w.cleaner.Filter(event(cronTabs)) {
		t.Error("after the deletion it concerns objects")
	}
	w.definition(nil)
	w.step()
	w.cleaner.Reset(storage.NewMemory(storage.MemoryOptions{}).Latest())
	if w.cleaner.Filter(event(cronTabs)) {
		t.Error("after a reset it concerns objects of before")
	}
}
