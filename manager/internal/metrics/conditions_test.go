// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/cache"
	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/manager/internal/metrics"
)

// informers hand out one informer, of any kind, whose handlers see what is sent.
type informers struct {
	handlers []cache.Handler
	err      error
}

// informer has no method but AddHandler, for no other is called.
type informer struct {
	cache.Informer
	all *informers
}

func (i *informers) Informer(client.Object) (cache.Informer, error) {
	if i.err != nil {
		return nil, i.err
	}
	return informer{all: i}, nil
}

func (i informer) AddHandler(fn cache.Handler) cache.Registration {
	i.all.handlers = append(i.all.handlers, fn)
	return nil
}

func (i *informers) send(kind cache.EventType, obj client.Object) {
	for _, h := range i.handlers {
		h(cache.Event{Type: kind, Object: obj})
	}
}

const (
	count       = "operator_status_condition_count"
	age         = "operator_status_condition_current_status_seconds"
	transitions = "operator_status_condition_transitions_total"
	lasted      = "operator_status_condition_transition_seconds"
)

// The kinds, which have their conditions as a Go type of their own, as metav1.Condition
// and without a Go type.
var (
	pod     = schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	service = schema.GroupVersionKind{Version: "v1", Kind: "Service"}
	web     = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Web"}
)

func podWith(name string, status corev1.ConditionStatus, reason string, since time.Time) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{
			Type: corev1.PodReady, Status: status, Reason: reason, LastTransitionTime: metav1.NewTime(since),
		}}},
	}
}

func serviceWith(status metav1.ConditionStatus, since time.Time) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"},
		Status: corev1.ServiceStatus{Conditions: []metav1.Condition{{
			Type: "Ready", Status: status, Reason: "Tested", LastTransitionTime: metav1.NewTime(since),
		}}},
	}
}

func webWith(status string, since time.Time) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"namespace": "default", "name": "a"},
		"status": map[string]any{"conditions": []any{
			"no condition", map[string]any{"status": "True"},
			map[string]any{"type": "Ready", "status": status, "reason": "Tested", "lastTransitionTime": since.UTC().Format(time.RFC3339)},
		}},
	}}
}

func watch(t *testing.T, gvk schema.GroupVersionKind, example client.Object) (*metrics.Metrics, *informers) {
	t.Helper()
	m, in := metrics.New(), &informers{}
	if err := m.Conditions(gvk, example, in); err != nil {
		t.Fatal(err)
	}
	return m, in
}

func TestConditionsAreMeasuredInEveryForm(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		gvk schema.GroupVersionKind
		obj func(status string, since time.Time) client.Object
	}{
		"type of its own": {pod, func(s string, at time.Time) client.Object {
			return podWith("a", corev1.ConditionStatus(s), "Tested", at)
		}},
		"metav1.Condition": {service, func(s string, at time.Time) client.Object { return serviceWith(metav1.ConditionStatus(s), at) }},
		"unstructured":     {web, func(s string, at time.Time) client.Object { return webWith(s, at) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				m, in := watch(t, tt.gvk, tt.obj("", began))
				kind := fmt.Sprintf("group=%s,kind=%s,", tt.gvk.Group, tt.gvk.Kind)
				in.send(cache.Added, tt.obj("False", began))
				time.Sleep(time.Minute)
				expect(t, m, count, kind+"namespace=default,reason=Tested,status=False,type=Ready 1")
				expect(t, m, age, kind+"name=a,namespace=default,reason=Tested,status=False,type=Ready 60")
				expect(t, m, transitions)

				in.send(cache.Updated, tt.obj("True", began.Add(20*time.Second)))
				expect(t, m, count, kind+"namespace=default,reason=Tested,status=True,type=Ready 1")
				expect(t, m, age, kind+"name=a,namespace=default,reason=Tested,status=True,type=Ready 40")
				expect(t, m, transitions, kind+"reason=Tested,status=True,type=Ready 1")
				expect(t, m, lasted, kind+"status=False,type=Ready 1 20")

				in.send(cache.Deleted, tt.obj("True", began))
				expect(t, m, count)
				expect(t, m, age)
			})
		})
	}
}

func TestConditionsThatKeepTheirStatusAreNoTransitions(t *testing.T) {
	t.Parallel()
	m, in := watch(t, pod, &corev1.Pod{})
	now := time.Now()
	in.send(cache.Added, podWith("a", corev1.ConditionFalse, "One", now))
	in.send(cache.Updated, podWith("a", corev1.ConditionFalse, "Other", now))
	in.send(cache.Updated, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}})
	in.send(cache.Updated, podWith("a", corev1.ConditionTrue, "New", now)) // it had none before
	expect(t, m, transitions)
	expect(t, m, count, "group=,kind=Pod,namespace=default,reason=New,status=True,type=Ready 1")
}

func TestConditionsWithoutATimeHaveNoAge(t *testing.T) {
	t.Parallel()
	m, in := watch(t, pod, &corev1.Pod{})
	in.send(cache.Added, podWith("a", corev1.ConditionFalse, "Tested", time.Time{}))
	in.send(cache.Updated, podWith("a", corev1.ConditionTrue, "Tested", time.Time{}))
	expect(t, m, age)
	expect(t, m, transitions, "group=,kind=Pod,reason=Tested,status=True,type=Ready 1")
	expect(t, m, lasted)
}

func TestConditionAgesAreThoseOfTheOldestObjects(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, in := watch(t, pod, &corev1.Pod{})
		began := time.Now()
		time.Sleep(150 * time.Second)
		for i := range 120 {
			in.send(cache.Added, podWith(fmt.Sprintf("pod-%03d", i), corev1.ConditionFalse, "Tested", began.Add(time.Duration(i)*time.Second)))
		}
		in.send(cache.Added, podWith("ready", corev1.ConditionTrue, "Tested", began.Add(140*time.Second)))
		var want []string
		for i := range 100 {
			want = append(want, fmt.Sprintf("group=,kind=Pod,name=pod-%03d,namespace=default,reason=Tested,status=False,type=Ready %d", i, 150-i))
		}
		want = append(want, "group=,kind=Pod,name=ready,namespace=default,reason=Tested,status=True,type=Ready 10")
		expect(t, m, age, want...)
		expect(t, m, count,
			"group=,kind=Pod,namespace=default,reason=Tested,status=False,type=Ready 120",
			"group=,kind=Pod,namespace=default,reason=Tested,status=True,type=Ready 1")
	})
}

func TestConditionsOfAKindAreMeasuredOnce(t *testing.T) {
	t.Parallel()
	m, in := watch(t, pod, &corev1.Pod{})
	if err := m.Conditions(pod, &corev1.Pod{}, in); err != nil {
		t.Fatal(err)
	}
	if err := m.Conditions(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, &corev1.ConfigMap{}, in); err != nil {
		t.Fatal(err)
	}
	if len(in.handlers) != 1 {
		t.Errorf("%d informers are used for one kind with conditions and one without", len(in.handlers))
	}
}

func TestConditionsOfAKindAreMeasuredAfterAFailure(t *testing.T) {
	t.Parallel()
	m, in := metrics.New(), &informers{err: errors.New("no such kind")}
	if err := m.Conditions(pod, &corev1.Pod{}, in); !errors.Is(err, in.err) {
		t.Errorf("the error of the cache is not returned: %v", err)
	}
	in.err = nil
	if err := m.Conditions(pod, &corev1.Pod{}, in); err != nil {
		t.Fatal(err)
	}
	in.send(cache.Added, podWith("a", corev1.ConditionTrue, "Tested", time.Time{}))
	expect(t, m, count, "group=,kind=Pod,namespace=default,reason=Tested,status=True,type=Ready 1")
}
