// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane"
	"github.com/steer-dev/steer/controlplane/quota"
	"github.com/steer-dev/steer/storage"
)

const quotas = "/api/v1/namespaces/default/resourcequotas"

// TestQuotaHoldsUnderConcurrentCreations lets many create and delete at once,
// while the controller corrects the status between them, and counts what was
// stored at each revision.
func TestQuotaHoldsUnderConcurrentCreations(t *testing.T) {
	t.Parallel()
	const hard, workers, rounds = 5, 8, 40
	store := storage.NewMemory(storage.MemoryOptions{HistoryBytes: 1 << 30})
	plane, err := controlplane.New(controlplane.Options{Store: store})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := plane.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	if err := plane.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	api := apiOf(t, plane.RESTConfig())
	api.must("POST", quotas, fmt.Sprintf("{apiVersion: v1, kind: ResourceQuota, metadata: {name: q}, spec: {hard: {count/secrets: %d}}}", hard))
	used := func() string {
		found, _, _ := unstructured.NestedString(api.must("GET", quotas+"/q", "").Object, "status", "used", "count/secrets")
		return found
	}
	waitFor(t, store, func() bool { return used() != "" })

	const secrets = "/api/v1/namespaces/default/secrets"
	var created, refused int
	var mu sync.Mutex
	var work sync.WaitGroup
	for w := range workers {
		work.Go(func() {
			for round := range rounds {
				name := fmt.Sprintf("s-%d-%d", w, round)
				code, answer := api.do("POST", secrets, "{apiVersion: v1, kind: Secret, metadata: {name: "+name+"}}")
				mu.Lock()
				switch {
				case code == http.StatusCreated:
					created++
				case code == http.StatusForbidden && strings.Contains(string(answer), "exceeded quota: q, requested: count/secrets=1"):
					refused++
				default:
					t.Errorf("create %s: %d %s", name, code, answer)
				}
				mu.Unlock()
				if code == http.StatusCreated {
					api.must("DELETE", secrets+"/"+name, "")
				}
			}
		})
	}
	work.Wait()
	if created == 0 || refused == 0 {
		t.Errorf("%d were created, %d refused: that shows nothing", created, refused)
	}
	if most := mostAtOnce(t, store, "secrets"); most > hard {
		t.Errorf("%d were there at once, the quota is %d", most, hard)
	}
	waitFor(t, store, func() bool { return used() == "0" })
}

// slowStore holds back the creation of one object.
type slowStore struct {
	storage.Store
	name             string
	reached, release chan struct{}
}

func (s *slowStore) Commit(ctx context.Context, w storage.Write) (*storage.Record, error) {
	if w.Key.Bucket == "secrets" && w.Key.Name == s.name && w.Expect == storage.Absent {
		close(s.reached)
		<-s.release
	}
	return s.Store.Commit(ctx, w)
}

// TestQuotaChargeHoldsUntilItsObjectIsStored: the controller, which does not see the
// object yet, must not give away what was charged for it.
func TestQuotaChargeHoldsUntilItsObjectIsStored(t *testing.T) {
	t.Parallel()
	store := &slowStore{
		Store: storage.NewMemory(storage.MemoryOptions{}), name: "default/slow",
		reached: make(chan struct{}), release: make(chan struct{}),
	}
	plane, err := controlplane.New(controlplane.Options{Store: store, ManualControllers: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := plane.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	settle := func() {
		if _, err := plane.Settle(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	release := sync.OnceFunc(func() { close(store.release) })
	t.Cleanup(release) // before the plane stops
	api := apiOf(t, plane.RESTConfig())
	api.must("POST", quotas, "{apiVersion: v1, kind: ResourceQuota, metadata: {name: q}, spec: {hard: {count/secrets: 1}}}")
	settle()
	const secrets = "/api/v1/namespaces/default/secrets"
	slow := make(chan int, 1)
	go func() {
		code, _ := api.do("POST", secrets, "{apiVersion: v1, kind: Secret, metadata: {name: slow}}")
		slow <- code
	}()
	<-store.reached
	api.must("POST", "/api/v1/namespaces/default/configmaps", "{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}")
	settle() // something happened in the namespace: it counts again
	equal(t, "second creation",
		`403 Forbidden: secrets "fast" is forbidden: exceeded quota: q, requested: count/secrets=1, used: count/secrets=1, limited: count/secrets=1`,
		api.refused("POST", secrets, "{apiVersion: v1, kind: Secret, metadata: {name: fast}}"))
	release()
	equal(t, "first creation", http.StatusCreated, <-slow)
	settle()
	api.must("DELETE", secrets+"/slow", "")
	settle()
	api.must("POST", secrets, "{apiVersion: v1, kind: Secret, metadata: {name: fast}}")
}

// TestQuotaIsNotChargedForWritesThatDoNotHappen: of twelve creations at once, which charge the
// quota in each other's way, three are stored.
func TestQuotaIsNotChargedForWritesThatDoNotHappen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		plane, api := planeOf(t, controlplane.Options{})
		if err := plane.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		const secrets = "/api/v1/namespaces/default/secrets"
		api.must("POST", quotas, "{apiVersion: v1, kind: ResourceQuota, metadata: {name: q}, spec: {hard: {secrets: 3}}}")
		if _, err := plane.Idle(t.Context()); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		var all sync.WaitGroup
		for i := range 12 {
			all.Go(func() {
				api.do("POST", secrets, fmt.Sprintf("{apiVersion: v1, kind: Secret, metadata: {name: s%d}}", i))
			})
		}
		all.Wait()
		if _, err := plane.Idle(t.Context()); err != nil {
			t.Fatal(err)
		}
		used, _, _ := unstructured.NestedString(api.must("GET", quotas+"/q", "").Object, "status", "used", "secrets")
		equal(t, "used", "3", used)
		api.must("DELETE", secrets+"/"+api.names(secrets)[0], "")
		if _, err := plane.Idle(t.Context()); err != nil {
			t.Fatal(err)
		}
		used, _, _ = unstructured.NestedString(api.must("GET", quotas+"/q", "").Object, "status", "used", "secrets")
		equal(t, "used after a deletion", "2", used)
		if d := time.Since(began); d > 10*time.Second {
			t.Errorf("took %v", d)
		}
	})
}

// TestQuotaChargesWhileAnAdmissionWritesIntoTheNamespace: what is asked about the status of a
// quota, as a webhook is, and about a Pod creates Pods in the same namespace before it answers.
func TestQuotaChargesWhileAnAdmissionWritesIntoTheNamespace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var api *api
		const pods = "/api/v1/namespaces/default/pods"
		pod := func(name string) string {
			return "{apiVersion: v1, kind: Pod, metadata: {name: " + name + "}, spec: {containers: [{name: c, image: c}]}}"
		}
		var once [2]bool
		inner := func(i int, name string) {
			if !once[i] {
				once[i] = true
				api.must("POST", pods, pod(name))
			}
		}
		var plane *controlplane.Plane
		plane, api = planeOf(t, controlplane.Options{ManualControllers: true, Disable: []string{"ServiceAccount"}, Admission: admitting(func(_ context.Context, r *resource.AdmissionRequest) error {
			switch {
			case api == nil || r.Operation == resource.Delete:
			case r.Resource.Plural == "resourcequotas" && r.Subresource == "status" && r.User.Name == "system:apiserver":
				inner(0, "of-quota")
			case r.Resource.Plural == "pods" && r.Name == "outer":
				inner(1, "of-pod")
			}
			return nil
		})})
		api.must("POST", quotas, "{apiVersion: v1, kind: ResourceQuota, metadata: {name: q}, spec: {hard: {pods: 10}}}")
		if _, err := plane.Settle(t.Context()); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		api.must("POST", pods, pod("outer"))
		if d := time.Since(began); d > time.Second || !once[0] || !once[1] {
			t.Errorf("the creation took %v; admission wrote: %v", d, once)
		}
		used, _, _ := unstructured.NestedString(api.must("GET", quotas+"/q", "").Object, "status", "used", "pods")
		equal(t, "used", "3", used)
	})
}

// TestLimitedResources asks a plane for what needs a quota, which a user sees as kube-apiserver
// says it: 403 for names, 500 for scopes.
func TestLimitedResources(t *testing.T) {
	t.Parallel()
	_, api := planeOf(t, controlplane.Options{ManualControllers: true, Disable: []string{"ServiceAccount", "Priority"}, LimitedResources: []quota.Limited{
		{Resource: "configmaps", Contains: []string{"count/"}},
		{Resource: "pods", Scopes: []corev1.ScopedResourceSelectorRequirement{{ScopeName: corev1.ResourceQuotaScopePriorityClass, Operator: corev1.ScopeSelectorOpExists}}},
	}})
	const configMaps, pods = "/api/v1/namespaces/default/configmaps", "/api/v1/namespaces/default/pods"
	code, body := api.do("POST", configMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}")
	if want := `configmaps \"a\" is forbidden: insufficient quota to consume: count/configmaps`; code != http.StatusForbidden || !strings.Contains(string(body), want) {
		t.Errorf("a ConfigMap: %d %s, want 403 with %s", code, body, want)
	}
	api.must("POST", "/api/v1/namespaces/default/secrets", "{apiVersion: v1, kind: Secret, metadata: {name: a}}")
	code, body = api.do("POST", pods, "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {priorityClassName: high, containers: [{name: c, image: c}]}}")
	if want := `insufficient quota to match these scopes: [{PriorityClass Exists []}]`; code != http.StatusInternalServerError || !strings.Contains(string(body), want) {
		t.Errorf("a Pod with a class: %d %s, want 500 with %s", code, body, want)
	}
	if _, err := controlplane.New(controlplane.Options{LimitedResources: []quota.Limited{{}}}); err == nil || !strings.Contains(err.Error(), "Options.LimitedResources: limitedResources[0].resource is missing") {
		t.Errorf("an entry without a resource: %v", err)
	}
}

// mostAtOnce returns how many objects a bucket held at most at any revision.
func mostAtOnce(t *testing.T, store storage.Store, bucket string) int {
	t.Helper()
	cursor, err := store.Watch(storage.Range{Bucket: bucket}, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer cursor.Close()
	there, most := map[string]bool{}, 0
	for {
		batch, err := cursor.Poll()
		if err != nil {
			t.Fatal(err)
		}
		if len(batch.Events) == 0 {
			return most
		}
		for _, e := range batch.Events {
			if e.Deleted {
				delete(there, e.Record.Key.Name)
			} else {
				there[e.Record.Key.Name] = true
			}
			most = max(most, len(there))
		}
	}
}

// waitFor waits until a condition holds, which changes of the store may bring
// about.
func waitFor(t *testing.T, store storage.Store, condition func() bool) {
	t.Helper()
	cursor, err := store.Watch(storage.Range{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer cursor.Close()
	for !condition() {
		if _, err := cursor.Next(t.Context()); err != nil {
			t.Fatal(errors.Join(err, t.Context().Err()))
		}
	}
}
