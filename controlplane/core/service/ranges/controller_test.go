// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package ranges_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/controlplane/core/service/ranges"
	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/controlplane/internal/step/steptest"
	"github.com/steer-dev/steer/storage"
)

// observed is a store that a Controller observes.
type observed struct {
	t      *testing.T
	store  storage.Store
	cursor storage.Cursor
	c      *ranges.Controller
	now    time.Time
}

func newObserved(t *testing.T) *observed {
	t.Helper()
	store := storage.NewMemory(storage.MemoryOptions{})
	cursor, err := store.Watch(storage.Range{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	r := &observed{t, store, cursor, ranges.NewController(), time.Date(2026, 1, 1, 0, 0, 30, 0, time.UTC)}
	r.c.Reset(store.Latest())
	return r
}

// cidr stores a ServiceCIDR; deleted is how long ago its deletion began, 0: it has not.
func (r *observed) cidr(name string, deleted time.Duration, change func(*networkingv1.ServiceCIDR), cidrs ...string) {
	r.t.Helper()
	o := &networkingv1.ServiceCIDR{ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: []string{ranges.Finalizer}}, Spec: networkingv1.ServiceCIDRSpec{CIDRs: cidrs}}
	if deleted > 0 {
		o.DeletionTimestamp = &metav1.Time{Time: r.now.Add(-deleted)}
	}
	if change != nil {
		change(o)
	}
	steptest.Put(r.t, r.store, storage.Key{Bucket: "networking.k8s.io/servicecidrs", Name: name}, o)
}

// address stores an IPAddress, or deletes it.
func (r *observed) address(ip, manager string) {
	r.t.Helper()
	key := storage.Key{Bucket: "networking.k8s.io/ipaddresses", Name: ip}
	if manager == "" {
		steptest.Put(r.t, r.store, key, nil)
		return
	}
	steptest.Put(r.t, r.store, key, map[string]any{"metadata": map[string]any{"name": ip, "labels": map[string]string{networkingv1.LabelManagedBy: manager}}})
}

// step returns the requests of a step, a line each.
func (r *observed) step() string {
	r.t.Helper()
	return rendered(r.t, r.requests())
}

func (r *observed) requests() []step.Request {
	r.t.Helper()
	batch, err := r.cursor.Poll()
	if err != nil {
		r.t.Fatal(err)
	}
	for _, e := range batch.Events {
		steptest.Observe(r.c, e)
	}
	return r.c.Sync(r.store.Latest(), r.now)
}

func rendered(t *testing.T, requests []step.Request) string {
	t.Helper()
	var out []string
	for _, q := range requests {
		path := strings.TrimPrefix(q.Path, "/apis/networking.k8s.io/v1/servicecidrs/")
		if !strings.HasSuffix(path, "/status") {
			out = append(out, path+" "+string(q.Body))
			continue
		}
		var o networkingv1.ServiceCIDR
		if err := json.Unmarshal(q.Body, &o); err != nil {
			t.Fatal(err)
		}
		c := o.Status.Conditions[0]
		out = append(out, fmt.Sprint(path, " ", c.Type, "=", c.Status, " ", c.Reason, ": ", c.Message))
	}
	return strings.Join(out, "\n")
}

const (
	rangeReady   = "x/status Ready=True : Kubernetes Service CIDR is ready"
	rangeNeeded  = "x/status Ready=False Terminating: There are still IPAddresses referencing the ServiceCIDR, please remove them or create a new ServiceCIDR"
	rangeKept    = `x {"metadata":{"finalizers":["networking.k8s.io/service-cidr-finalizer"]}}`
	rangeDropped = `x {"metadata":{"$deleteFromPrimitiveList/finalizers":["networking.k8s.io/service-cidr-finalizer"]}}`
)

func sameRequests(t *testing.T, what, want, got string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestControllerKeepsRangesThatServicesNeed(t *testing.T) {
	t.Parallel()
	const own, others = "ipallocator.k8s.io", "someone"
	bare := func(o *networkingv1.ServiceCIDR) { o.Finalizers = nil }
	settled := func(o *networkingv1.ServiceCIDR) {
		o.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: "True", Message: "Kubernetes Service CIDR is ready"}}
	}
	for what, tt := range map[string]struct {
		store func(*observed)
		want  string
	}{
		"a new range":                    {func(r *observed) { r.cidr("x", 0, bare, "10.0.0.0/24") }, rangeKept + "\n" + rangeReady},
		"a range with the finalizer":     {func(r *observed) { r.cidr("x", 0, nil, "10.0.0.0/24") }, rangeReady},
		"a range that has all":           {func(r *observed) { r.cidr("x", 0, settled, "10.0.0.0/24") }, ""},
		"deleted, without the finalizer": {func(r *observed) { r.cidr("x", time.Minute, bare, "10.0.0.0/24") }, ""},
		"deleted, without addresses":     {func(r *observed) { r.cidr("x", 10*time.Second, nil, "10.0.0.0/24") }, rangeDropped},
		"deleted a moment ago":           {func(r *observed) { r.cidr("x", 9*time.Second, nil, "10.0.0.0/24") }, ""},
		"deleted, with an address":       {func(r *observed) { r.cidr("x", time.Minute, nil, "10.0.0.0/24"); r.address("10.0.0.9", own) }, rangeNeeded},
		"deleted, with that of others":   {func(r *observed) { r.cidr("x", time.Minute, nil, "10.0.0.0/24"); r.address("10.0.0.9", others) }, rangeDropped},
		"deleted, with one outside":      {func(r *observed) { r.cidr("x", time.Minute, nil, "10.0.0.0/24"); r.address("10.0.1.9", own) }, rangeDropped},
		"deleted, with that of the net":  {func(r *observed) { r.cidr("x", time.Minute, nil, "10.0.0.0/24"); r.address("10.0.0.0", own) }, rangeDropped},
		"deleted, with one of two ranges": {func(r *observed) {
			r.cidr("x", time.Minute, nil, "10.0.0.0/24", "2001:db8::/120")
			r.address("2001:db8::9", own)
		}, rangeNeeded},
		"deleted, covered by a larger one": {func(r *observed) {
			r.cidr("x", time.Minute, nil, "10.0.0.0/24")
			r.address("10.0.0.9", own)
			r.cidr("y", 0, settled, "10.0.0.0/16")
		}, rangeDropped},
		"deleted, the address in a smaller one": {
			func(r *observed) {
				r.cidr("x", time.Minute, nil, "10.0.0.0/24")
				r.address("10.0.0.9", own)
				r.cidr("y", 0, settled, "10.0.0.0/28")
			}, rangeDropped,
		},
		"deleted, the address not in a smaller one": {
			func(r *observed) {
				r.cidr("x", time.Minute, nil, "10.0.0.0/24")
				r.address("10.0.0.99", own)
				r.cidr("y", 0, settled, "10.0.0.0/28")
			}, rangeNeeded,
		},
	} {
		r := newObserved(t)
		tt.store(r)
		sameRequests(t, what, tt.want, r.step())
		sameRequests(t, what+", without another change", "", r.step())
		fresh := ranges.NewController()
		fresh.Reset(r.store.Latest())
		sameRequests(t, what+", seen by one that starts", tt.want, rendered(t, fresh.Sync(r.store.Latest(), r.now)))
	}
}

func TestControllerLooksAgain(t *testing.T) {
	t.Parallel()
	r := newObserved(t)
	r.cidr("x", 4*time.Second, nil, "10.0.0.0/24")
	r.address("10.0.0.9", "ipallocator.k8s.io")
	needed := r.requests()
	sameRequests(t, "while it is needed", rangeNeeded, rendered(t, needed))
	r.c.Done(needed[0], errors.New("conflict"))
	sameRequests(t, "after a failure", rangeNeeded, r.step())
	r.address("10.0.0.9", "")
	sameRequests(t, "once the address has gone", "", r.step())
	if at := r.c.Wake(); !at.Equal(r.now.Add(6 * time.Second)) {
		t.Errorf("it is looked at again at %v", at)
	}
	r.now = r.now.Add(6 * time.Second)
	sameRequests(t, "ten seconds after the deletion", rangeDropped, r.step())
	steptest.Put(t, r.store, storage.Key{Bucket: "networking.k8s.io/servicecidrs", Name: "x"}, nil)
	sameRequests(t, "once it has gone", "", r.step())
	if at := r.c.Wake(); !at.IsZero() {
		t.Errorf("a range that has gone is looked at again at %v", at)
	}
}
