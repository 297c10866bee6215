// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	quantity "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/controlplane/internal/step/steptest"
	"github.com/steer-dev/steer/storage"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func amounts(pairs ...string) corev1.ResourceList {
	l := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		l[corev1.ResourceName(pairs[i])] = quantity.MustParse(pairs[i+1])
	}
	return l
}

func asks(requests, limits corev1.ResourceList) corev1.Container {
	return corev1.Container{Name: "c", Resources: corev1.ResourceRequirements{Requests: requests, Limits: limits}}
}

func ptr[T any](v T) *T { return &v }

func TestMeterCountsObjects(t *testing.T) {
	t.Parallel()
	class := "gold"
	pod := corev1.Pod{Spec: corev1.PodSpec{
		Containers: []corev1.Container{asks(amounts("cpu", "100m", "memory", "1Gi", "example.com/gpu", "2"), amounts("cpu", "1"))},
		Overhead:   amounts("cpu", "10m"),
	}}
	ended := pod
	ended.Status.Phase = corev1.PodSucceeded
	late := pod
	late.DeletionTimestamp, late.DeletionGracePeriodSeconds = ptr(metav1.NewTime(start.Add(-time.Minute))), ptr(int64(30))
	for _, test := range []struct {
		name, resource string
		obj            any
		want           string
	}{
		{"Pod", "pods", &pod, "count/pods=1,cpu=110m,limits.cpu=1010m,memory=1Gi,pods=1,requests.cpu=110m,requests.example.com/gpu=2,requests.memory=1Gi"},
		{"Pod that has ended", "pods", &ended, "count/pods=1"},
		{"Pod that should be gone", "pods", &late, "count/pods=1"},
		{"Service", "services", &corev1.Service{}, "count/services=1,services=1,services.loadbalancers=0,services.nodeports=0"},
		{"Service with node ports", "services", &corev1.Service{Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Ports: make([]corev1.ServicePort, 2)}},
			"count/services=1,services=1,services.loadbalancers=0,services.nodeports=2"},
		{"load balancer without node ports", "services", &corev1.Service{Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeLoadBalancer, AllocateLoadBalancerNodePorts: ptr(false), Ports: []corev1.ServicePort{{NodePort: 30000}, {}},
		}}, "count/services=1,services=1,services.loadbalancers=1,services.nodeports=1"},
		{"claim", "persistentvolumeclaims", &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: &class, Resources: corev1.VolumeResourceRequirements{Requests: amounts("storage", "1500m")},
		}}, "count/persistentvolumeclaims=1,gold.storageclass.storage.k8s.io/persistentvolumeclaims=1,gold.storageclass.storage.k8s.io/requests.storage=2,persistentvolumeclaims=1,requests.storage=2"},
		{"ConfigMap", "configmaps", &corev1.ConfigMap{}, "configmaps=1,count/configmaps=1"},
		{"claim of devices", "resourceclaims.resource.k8s.io", &resourcev1.ResourceClaim{Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{
			{Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 2}},
			{Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "fpga", AllocationMode: resourcev1.DeviceAllocationModeAll}},
			{FirstAvailable: []resourcev1.DeviceSubRequest{
				{DeviceClassName: "gpu", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 3},
				{DeviceClassName: "gpu", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 4},
			}},
		}}}}, "count/resourceclaims.resource.k8s.io=1,fpga.deviceclass.resource.k8s.io/devices=32,gpu.deviceclass.resource.k8s.io/devices=6," +
			"requests.deviceclass.resource.kubernetes.io/fpga=32,requests.deviceclass.resource.kubernetes.io/gpu=6,requests.example.com/gpu=6"},
		{"Deployment", "deployments.apps", nil, "count/deployments.apps=1"},
	} {
		if got := text(meterOf(schema.ParseGroupResource(test.resource)).read(test.obj, setting{now: start, classes: classes{"gpu": "example.com/gpu"}})); got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
	for _, free := range []string{"events", "events.events.k8s.io"} {
		if meterOf(schema.ParseGroupResource(free)) != nil {
			t.Errorf("%s are counted", free)
		}
	}
}

func TestScopesNarrowAQuota(t *testing.T) {
	t.Parallel()
	in := func(operator corev1.ScopeSelectorOperator, values ...string) corev1.ResourceQuotaSpec {
		return corev1.ResourceQuotaSpec{ScopeSelector: &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{
			{ScopeName: corev1.ResourceQuotaScopePriorityClass, Operator: operator, Values: values},
		}}}
	}
	of := func(scopes ...corev1.ResourceQuotaScope) corev1.ResourceQuotaSpec {
		return corev1.ResourceQuotaSpec{Scopes: scopes}
	}
	plain := &corev1.Pod{Status: corev1.PodStatus{QOSClass: corev1.PodQOSBestEffort}}
	high := &corev1.Pod{Spec: corev1.PodSpec{PriorityClassName: "high", ActiveDeadlineSeconds: ptr(int64(5))}}
	far := &corev1.Pod{Spec: corev1.PodSpec{Affinity: &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{PodAffinityTerm: corev1.PodAffinityTerm{Namespaces: []string{"x"}}}},
	}}}}
	for _, test := range []struct {
		spec corev1.ResourceQuotaSpec
		obj  any
		want bool
	}{
		{of(), plain, true},
		{of(corev1.ResourceQuotaScopeBestEffort), plain, true},
		{of(corev1.ResourceQuotaScopeBestEffort), high, false},
		{of(corev1.ResourceQuotaScopeNotBestEffort, corev1.ResourceQuotaScopeTerminating), high, true},
		{of(corev1.ResourceQuotaScopeNotTerminating), high, false},
		{of(corev1.ResourceQuotaScopeCrossNamespacePodAffinity), far, true},
		{of(corev1.ResourceQuotaScopeCrossNamespacePodAffinity), high, false},
		{of(corev1.ResourceQuotaScopeBestEffort), &corev1.ConfigMap{}, false},
		{in(corev1.ScopeSelectorOpIn, "high"), high, true},
		{in(corev1.ScopeSelectorOpIn, "high"), plain, false},
		{in(corev1.ScopeSelectorOpNotIn, "high"), plain, true},
		{in(corev1.ScopeSelectorOpExists), plain, false},
		{in(corev1.ScopeSelectorOpDoesNotExist), plain, true},
	} {
		if got := inScope(&test.spec, test.obj); got != test.want {
			t.Errorf("%v %v of %T %v: %v", test.spec.Scopes, test.spec.ScopeSelector, test.obj, test.obj, got)
		}
	}
}

// world is a store with a controller that follows it and does what it asks.
type world struct {
	t          *testing.T
	store      *storage.Memory
	cursor     storage.Cursor
	ledger     *Ledger
	controller *Controller
	now        time.Time
}

func catalog() steptest.Catalog {
	return steptest.Catalog{
		{Bucket: "configmaps", Version: "v1", Plural: "configmaps", Kind: "ConfigMap", Namespaced: true},
		{Bucket: "pods", Version: "v1", Plural: "pods", Kind: "Pod", Namespaced: true},
		{Bucket: deviceClaims, Group: resourcev1.GroupName, Version: "v1", Plural: "resourceclaims", Kind: "ResourceClaim", Namespaced: true},
	}
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, store: storage.NewMemory(storage.MemoryOptions{}), ledger: &Ledger{}, now: start}
	w.controller = NewController(catalog(), w.ledger)
	cursor, err := w.store.Watch(storage.Range{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	w.cursor = cursor
	t.Cleanup(cursor.Close)
	return w
}

func key(bucket, name string) storage.Key {
	return storage.Key{Bucket: bucket, Name: "default/" + name}
}

func (w *world) put(k storage.Key, obj any) {
	w.t.Helper()
	steptest.Put(w.t, w.store, k, obj)
}

func (w *world) quota(name string, hard corev1.ResourceList) {
	w.t.Helper()
	w.put(key(bucket, name), &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: corev1.ResourceQuotaSpec{Hard: hard},
	})
}

func (w *world) pod(name, cpu string) {
	w.t.Helper()
	w.put(key("pods", name), &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{asks(amounts("cpu", cpu), nil)}}})
}

// requests returns what the controller asks for.
func (w *world) requests() []step.Request {
	w.t.Helper()
	batch, err := w.cursor.Poll()
	if err != nil {
		w.t.Fatal(err)
	}
	for _, e := range batch.Events {
		steptest.Observe(w.controller, e)
	}
	return w.controller.Sync(w.store.Latest(), w.now)
}

// settle does what the controller asks for, until it asks for nothing.
func (w *world) settle() {
	w.t.Helper()
	for range 10 {
		requests := w.requests()
		if len(requests) == 0 {
			return
		}
		for _, r := range requests {
			w.put(r.Subject.Key, json.RawMessage(r.Body))
			w.controller.Done(r, nil)
		}
	}
	w.t.Fatal("it never settles")
}

func (w *world) used(name string) string {
	w.t.Helper()
	q := &corev1.ResourceQuota{}
	if err := json.Unmarshal(w.store.Latest().Get(key(bucket, name)).Value, q); err != nil {
		w.t.Fatal(err)
	}
	return text(q.Status.Used)
}

func (w *world) want(what, used string) {
	w.t.Helper()
	w.settle()
	if got := w.used("q"); got != used {
		w.t.Errorf("%s: used %s, want %s", what, got, used)
	}
}

func TestQuotaStatusFollowsTheStore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.pod("a", "100m")
	w.quota("q", amounts("requests.cpu", "1", "pods", "5", "count/configmaps", "2", "count/unknown.example.com", "1"))
	w.want("at first", "count/configmaps=0,pods=1,requests.cpu=100m")
	w.pod("b", "200m")
	w.put(key("configmaps", "c"), &corev1.ConfigMap{})
	w.put(storage.Key{Bucket: "configmaps", Name: "other/c"}, &corev1.ConfigMap{})
	w.want("after creations", "count/configmaps=1,pods=2,requests.cpu=300m")
	w.pod("b", "250m")
	w.want("after a change", "count/configmaps=1,pods=2,requests.cpu=350m")
	w.put(key("pods", "a"), nil)
	w.want("after a deletion", "count/configmaps=1,pods=1,requests.cpu=250m")
	if n := len(w.controller.seen); n != 1 {
		t.Errorf("%d objects are remembered, want the one that there is", n)
	}
}

// TestDevicesOfPodsAndClaimsAreCountedTogether holds that both add up under the name of
// an extended resource, once a class says that its devices are that.
func TestDevicesOfPodsAndClaimsAreCountedTogether(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put(key("pods", "a"), &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{asks(amounts("example.com/gpu", "2"), nil)}}})
	w.put(key(deviceClaims, "c"), &resourcev1.ResourceClaim{Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{
		{Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 3}},
	}}}})
	w.quota("q", amounts("requests.example.com/gpu", "9", "gpu.deviceclass.resource.k8s.io/devices", "9"))
	w.want("without a class", "gpu.deviceclass.resource.k8s.io/devices=3,requests.example.com/gpu=2")
	w.put(storage.Key{Bucket: deviceClasses, Name: "gpu"}, &resourcev1.DeviceClass{
		ObjectMeta: metav1.ObjectMeta{Name: "gpu"}, Spec: resourcev1.DeviceClassSpec{ExtendedResourceName: ptr("example.com/gpu")},
	})
	w.want("with the class", "gpu.deviceclass.resource.k8s.io/devices=3,requests.example.com/gpu=5")
}

func TestQuotaStatusKeepsPendingCharges(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.quota("q", amounts("pods", "5"))
	w.want("at first", "pods=0")
	view := w.store.Latest()
	w.ledger.note(key("pods", "a"), key(bucket, "q"), amounts("pods", "1"), view.Revision(), w.now)
	w.put(key("configmaps", "c"), &corev1.ConfigMap{})
	w.want("charged, not stored", "pods=1")
	w.pod("a", "1")
	w.want("stored", "pods=1")
	if n := w.ledger.pending.Load(); n != 0 {
		t.Errorf("%d charges are left", n)
	}
}

func TestLedgerDropsChargesWithoutAnObject(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.quota("q", amounts("pods", "5"))
	w.want("at first", "pods=0")
	if !w.controller.Wake().IsZero() {
		t.Error("it wakes for nothing")
	}
	w.ledger.note(key("pods", "a"), key(bucket, "q"), amounts("pods", "1"), w.store.Latest().Revision(), w.now)
	w.put(key("configmaps", "c"), &corev1.ConfigMap{})
	w.want("charged", "pods=1")
	if diff := cmp.Diff(start.Add(patience), w.controller.Wake()); diff != "" {
		t.Errorf("wakes (-want +got):\n%s", diff)
	}
	w.now = start.Add(patience)
	w.want("expired", "pods=0")
}

func TestLedgerForgetsTheChargesOfAnEarlierTerm(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.quota("q", amounts("pods", "5"))
	w.want("an empty namespace", "pods=0")
	w.ledger.note(key("pods", "a"), key(bucket, "q"), amounts("pods", "1"), w.store.Latest().Revision(), w.now)
	q := &corev1.ResourceQuota{}
	if err := json.Unmarshal(w.store.Latest().Get(key(bucket, "q")).Value, q); err != nil {
		t.Fatal(err)
	}
	q.Status.Used = amounts("pods", "1") // as the charge was written
	w.put(key(bucket, "q"), q)
	w.want("a charge without its object", "pods=1")
	w.ledger.forget()
	w.want("in the next term", "pods=0")
	if n := w.ledger.pending.Load(); n != 0 {
		t.Errorf("%d charges are left", n)
	}
}

func TestLedgerSettlesChargesByLaterWritesOnly(t *testing.T) {
	t.Parallel()
	l := &Ledger{}
	object, q := key("pods", "a"), key(bucket, "q")
	l.note(object, q, amounts("pods", "1", "cpu", "2"), 10, start)
	l.settle(object, 10)
	l.note(object, q, amounts("pods", "1", "cpu", "1"), 11, start)
	used := amounts("pods", "0", "cpu", "0")
	if !l.addTo(used, q, 12) {
		t.Error("charges are not known without an attempt")
	}
	if got := text(used); got != "cpu=2,pods=1" {
		t.Errorf("charged %s: of two writes of one object, one comes to nothing", got)
	}
	l.settle(object, 12)
	if n := l.pending.Load(); n != 0 {
		t.Errorf("%d charges are left", n)
	}
}

func TestLedgerDropsUnsettledChargesInTime(t *testing.T) {
	t.Parallel()
	l := &Ledger{}
	for i := range 10 * firstFull {
		l.note(key("pods", fmt.Sprint(i)), key(bucket, "q"), amounts("pods", "1"), 1, start.Add(time.Duration(i)*time.Second))
	}
	if n := l.pending.Load(); n > 2*firstFull {
		t.Errorf("%d charges are remembered", n)
	}
}

func TestLedgerTakesBackChargesOfWritesThatDidNotHappen(t *testing.T) {
	t.Parallel()
	signals := 0
	l := &Ledger{signal: func() { signals++ }}
	object, q := key("pods", "a"), key(bucket, "q")
	one, other := l.begin(object, start), l.begin(object, start)
	l.note(object, q, amounts("pods", "1"), 10, start)
	one(resource.NotStored)
	if expired := l.expire(start); len(expired) != 0 || signals != 0 {
		t.Errorf("%v expired, %d signals: the other write relies on the charge", expired, signals)
	}
	other(resource.NotStored)
	if expired := l.expire(start); len(expired) != 1 || signals != 1 || l.open() {
		t.Errorf("%v expired, %d signals, open: %v", expired, signals, l.open())
	}
	l.begin(object, start)(resource.Unknown)
	if expired := l.expire(start); len(expired) != 0 || !l.open() {
		t.Errorf("%v expired: the write may have happened", expired)
	}
}

func TestQuotaControllerRepeatsRefusedStatusWrites(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.quota("q", amounts("pods", "5"))
	requests := w.requests()
	if len(requests) != 1 || len(w.requests()) != 0 {
		t.Fatalf("asked for %v", requests)
	}
	w.controller.Done(requests[0], errors.New("conflict"))
	w.want("again", "pods=0")
}

// TestIndexEqualsRebuild writes at random: a controller that followed everything
// wants the same as one that begins with a snapshot.
func TestIndexEqualsRebuild(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	random := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		name := fmt.Sprint(random.IntN(5))
		switch random.IntN(5) {
		case 0:
			w.quota(name, amounts("pods", "5", "requests.cpu", "1"))
		case 1, 2:
			w.pod(name, fmt.Sprintf("%dm", random.IntN(100)))
		default:
			k := key([]string{"pods", bucket}[random.IntN(2)], name)
			if w.store.Latest().Get(k) != nil {
				w.put(k, nil)
			}
		}
		rebuilt := NewController(catalog(), &Ledger{})
		view := w.store.Latest()
		rebuilt.Reset(view)
		want, got := rebuilt.Sync(view, w.now), w.requests()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("(-rebuilt +followed):\n%s", diff)
		}
		for _, r := range got {
			w.controller.Done(r, errors.New("refused: it stays due"))
		}
		if random.IntN(2) == 0 {
			w.settle()
		}
	}
}

// BenchmarkUnlimited measures what quotas cost a creation in a namespace that
// has none.
func BenchmarkUnlimited(b *testing.B) {
	store := storage.NewMemory(storage.MemoryOptions{})
	a := NewAdmission(store, nil, &Ledger{}, nil)
	r := &resource.AdmissionRequest{
		Request: &resource.Request{
			Resource:  &resource.Resource{Names: resource.Names{Plural: "configmaps", Namespaced: true}},
			Namespace: "default", Name: "c",
		},
		Operation: resource.Create, Object: &corev1.ConfigMap{},
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := a.Validate(b.Context(), r); err != nil {
			b.Fatal(err)
		}
	}
}
