// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"cmp"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/cache"
	"github.com/steer-dev/steer/client"
)

// oldest is how many objects of one kind, condition and status tell their age:
// those that have been in it longest. Alerts need those, and the number of series
// stays bounded.
const oldest = 100

// conditions measures the conditions of what controllers reconcile, as their
// caches show it: how many objects are in which status, since when, and how long
// statuses lasted. The names are those of AWS' operatorpkg.
type conditions struct {
	count, age  *prometheus.Desc
	transitions *prometheus.CounterVec
	lasted      *prometheus.HistogramVec

	mu    sync.Mutex
	kinds []*conditionKind
}

// conditionKind is the conditions of the objects of one kind.
type conditionKind struct {
	gvk     schema.GroupVersionKind
	objects map[client.ObjectKey][]condition
}

func newConditions(registry *prometheus.Registry) *conditions {
	kind := []string{"group", "kind"}
	c := &conditions{
		count: prometheus.NewDesc("operator_status_condition_count", "Objects with the condition in the status, for the reason.",
			append(kind, "namespace", "type", "status", "reason"), nil),
		age: prometheus.NewDesc("operator_status_condition_current_status_seconds", "Time that the condition of an object has been in its status; of each status those that have been in it longest.",
			append(kind, "namespace", "name", "type", "status", "reason"), nil),
		transitions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "operator_status_condition_transitions_total", Help: "Changes of conditions to the status, for the reason.",
		}, append(kind, "type", "status", "reason")),
		lasted: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "operator_status_condition_transition_seconds", Help: "Time that conditions were in the status until they left it.",
			Buckets: []float64{0.5, 1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 4 * 3600, 24 * 3600},
		}, append(kind, "type", "status")),
	}
	registry.MustRegister(c, c.transitions, c.lasted)
	return c
}

// Conditions begins to measure the conditions of a kind, of which example is one,
// as a cache shows them.
func (m *Metrics) Conditions(gvk schema.GroupVersionKind, example client.Object, informers cache.Informers) error {
	return m.conditions.watch(gvk, example, informers)
}

// watch begins to measure a kind. A kind that two controllers reconcile is
// measured once, one that has no conditions is not.
func (c *conditions) watch(gvk schema.GroupVersionKind, example client.Object, informers cache.Informers) error {
	if _, ok := conditionsOf(example); !ok {
		return nil
	}
	k := &conditionKind{gvk: gvk, objects: map[client.ObjectKey][]condition{}}
	c.mu.Lock()
	if slices.ContainsFunc(c.kinds, func(other *conditionKind) bool { return other.gvk == gvk }) {
		c.mu.Unlock()
		return nil
	}
	c.kinds = append(c.kinds, k)
	c.mu.Unlock()
	informer, err := informers.Informer(example) // held as long as the cache lives
	if err != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.kinds = slices.DeleteFunc(c.kinds, func(other *conditionKind) bool { return other == k })
		return err
	}
	informer.AddHandler(func(e cache.Event) {
		c.mu.Lock()
		defer c.mu.Unlock()
		key := client.ObjectKeyFromObject(e.Object)
		if e.Type == cache.Deleted {
			delete(k.objects, key)
			return
		}
		now, _ := conditionsOf(e.Object)
		if e.Type == cache.Updated {
			c.compare(gvk, k.objects[key], now)
		}
		k.objects[key] = now
	})
	return nil
}

// compare counts what changed from one version of an object to the next.
func (c *conditions) compare(gvk schema.GroupVersionKind, before, after []condition) {
	for _, is := range after {
		i := slices.IndexFunc(before, func(was condition) bool { return was.kind == is.kind })
		if i < 0 || before[i].status == is.status {
			continue
		}
		was := before[i]
		c.transitions.WithLabelValues(gvk.Group, gvk.Kind, is.kind, is.status, is.reason).Inc()
		if lasted := is.since.Sub(was.since); !was.since.IsZero() && lasted >= 0 {
			c.lasted.WithLabelValues(gvk.Group, gvk.Kind, is.kind, was.status).Observe(lasted.Seconds())
		}
	}
}

// Describe implements prometheus.Collector.
func (c *conditions) Describe(to chan<- *prometheus.Desc) {
	to <- c.count
	to <- c.age
}

// Collect implements prometheus.Collector.
func (c *conditions) Collect(to chan<- prometheus.Metric) {
	type group struct{ namespace, kind, status, reason string }
	type aged struct {
		key    client.ObjectKey
		reason string
		since  time.Time
	}
	type status struct{ kind, status string }
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.kinds {
		counts, ages := map[group]int{}, map[status][]aged{}
		for key, found := range k.objects {
			for _, is := range found {
				counts[group{key.Namespace, is.kind, is.status, is.reason}]++
				if !is.since.IsZero() {
					ages[status{is.kind, is.status}] = append(ages[status{is.kind, is.status}], aged{key, is.reason, is.since})
				}
			}
		}
		for g, n := range counts {
			to <- prometheus.MustNewConstMetric(c.count, prometheus.GaugeValue, float64(n), k.gvk.Group, k.gvk.Kind, g.namespace, g.kind, g.status, g.reason)
		}
		for s, objects := range ages {
			slices.SortFunc(objects, func(a, b aged) int {
				return cmp.Or(a.since.Compare(b.since), cmp.Compare(a.key.String(), b.key.String()))
			})
			for _, o := range objects[:min(len(objects), oldest)] {
				to <- prometheus.MustNewConstMetric(c.age, prometheus.GaugeValue, max(now.Sub(o.since), 0).Seconds(),
					k.gvk.Group, k.gvk.Kind, o.key.Namespace, o.key.Name, s.kind, s.status, o.reason)
			}
		}
	}
}

// condition is what all Go types of conditions have in common.
type condition struct {
	kind, status, reason string
	since                time.Time // zero where the type does not say
}

// conditionsOf returns the conditions in the status of an object, and false for
// Go types that have none.
func conditionsOf(obj client.Object) ([]condition, bool) {
	if u, ok := obj.(interface{ UnstructuredContent() map[string]any }); ok {
		return untypedConditions(u.UnstructuredContent()), true
	}
	status := reflect.Indirect(reflect.ValueOf(obj)).FieldByName("Status")
	if status.Kind() != reflect.Struct {
		return nil, false
	}
	list := status.FieldByName("Conditions")
	if list.Kind() != reflect.Slice || list.Type().Elem().Kind() != reflect.Struct {
		return nil, false
	}
	if known, ok := list.Interface().([]metav1.Condition); ok {
		out := make([]condition, len(known))
		for i, c := range known {
			out[i] = condition{c.Type, string(c.Status), c.Reason, c.LastTransitionTime.Time}
		}
		return out, true
	}
	text := func(item reflect.Value, name string) string {
		if field := item.FieldByName(name); field.Kind() == reflect.String {
			return field.String()
		}
		return ""
	}
	out := make([]condition, list.Len())
	for i := range out {
		item := list.Index(i)
		out[i] = condition{kind: text(item, "Type"), status: text(item, "Status"), reason: text(item, "Reason")}
		if field := item.FieldByName("LastTransitionTime"); field.IsValid() {
			if at, ok := field.Interface().(metav1.Time); ok {
				out[i].since = at.Time
			}
		}
	}
	return out, true
}

func untypedConditions(content map[string]any) []condition {
	status, _ := content["status"].(map[string]any)
	list, _ := status["conditions"].([]any)
	out := make([]condition, 0, len(list))
	for _, entry := range list {
		item, _ := entry.(map[string]any)
		text := func(name string) string { s, _ := item[name].(string); return s }
		since, _ := time.Parse(time.RFC3339, text("lastTransitionTime")) // zero where it is none
		if text("type") != "" {
			out = append(out, condition{text("type"), text("status"), text("reason"), since})
		}
	}
	return out
}
