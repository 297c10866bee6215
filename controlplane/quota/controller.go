// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/controlplane/admission"
	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/storage"
)

// Controller keeps the status of quotas true. Writes in namespaces without a
// quota cost it one look into a map.
type Controller struct {
	catalog step.Catalog
	ledger  *Ledger
	// quotas are the keys of the quotas by namespace.
	quotas map[string]step.KeySet
	due    map[string]bool // namespaces
	// seen holds what was decoded, and is dropped with what it is about.
	seen map[storage.Key]sample
}

// sample is one version of an object that is more than counted.
type sample struct {
	modified storage.Revision
	obj      any
}

var (
	_ step.Controller = (*Controller)(nil)
	_ step.Waker      = (*Controller)(nil)
	_ step.Signaller  = (*Controller)(nil)
)

// NewController returns a controller that has seen nothing. The ledger is the
// one of the admission that charges the same quotas.
func NewController(catalog step.Catalog, ledger *Ledger) *Controller {
	c := &Controller{catalog: catalog, ledger: ledger}
	c.forget()
	return c
}

func (c *Controller) forget() {
	c.quotas, c.due, c.seen = map[string]step.KeySet{}, map[string]bool{}, map[storage.Key]sample{}
}

// OnSignal implements [step.Signaller]: charges of writes that have not happened are
// taken back at once.
func (c *Controller) OnSignal(signal func()) { c.ledger.signal = signal }

// Name implements [step.Controller].
func (*Controller) Name() string { return "resourcequota-controller" }

// Reset implements [step.Controller].
func (c *Controller) Reset(view storage.View) {
	c.forget()
	for rec := range view.Ascend(bucket, "", "") {
		c.put(rec.Key)
	}
}

func (c *Controller) put(key storage.Key) {
	namespace, _ := step.SplitName(key.Name)
	if c.quotas[namespace] == nil {
		c.quotas[namespace] = step.KeySet{}
	}
	c.quotas[namespace].Add(key)
	c.due[namespace] = true
}

// Filter implements [step.Controller].
func (c *Controller) Filter(e storage.Event) bool {
	key := e.Record.Key
	switch {
	case key.Bucket == bucket || c.ledger.open():
		return true
	case len(c.quotas) == 0:
		return false
	case key.Bucket == deviceClasses:
		return true
	}
	namespace, _ := step.SplitName(key.Name)
	return c.quotas[namespace] != nil
}

// Handle implements [step.Controller].
func (c *Controller) Handle(e storage.Event) {
	key := e.Record.Key
	c.ledger.settle(key, e.Record.Modified)
	namespace, _ := step.SplitName(key.Name)
	switch {
	case key.Bucket == deviceClasses: // which decide under what names claims are counted
		for namespace := range c.quotas {
			c.due[namespace] = true
		}
	case key.Bucket != bucket:
		if c.quotas[namespace] != nil {
			c.due[namespace] = true
		}
	case !e.Deleted:
		c.put(key)
	default:
		delete(c.quotas[namespace], key)
		if len(c.quotas[namespace]) == 0 {
			delete(c.quotas, namespace)
		}
	}
}

// Sync implements [step.Controller].
func (c *Controller) Sync(view storage.View, now time.Time) []step.Request {
	for _, namespace := range c.ledger.expire(now) {
		c.due[namespace] = true
	}
	if len(c.due) == 0 {
		return nil
	}
	var out []step.Request
	for _, namespace := range slices.Sorted(maps.Keys(c.due)) {
		delete(c.due, namespace)
		for _, key := range c.quotas[namespace].Sorted() {
			r, ok, known := c.look(view, key, now)
			if ok {
				out = append(out, r)
			}
			if !known {
				c.due[namespace] = true
			}
		}
	}
	maps.DeleteFunc(c.seen, func(key storage.Key, s sample) bool {
		rec := view.Get(key)
		return rec == nil || rec.Modified != s.modified
	})
	return out
}

// look returns the request that corrects the status of a quota, if it is wrong; known is
// false while it cannot be known what the quota is charged.
func (c *Controller) look(view storage.View, key storage.Key, now time.Time) (r step.Request, ok, known bool) {
	rec := view.Get(key)
	q := &corev1.ResourceQuota{}
	if rec == nil || json.Unmarshal(rec.Value, q) != nil {
		return step.Request{}, false, true
	}
	used := c.usage(view, q, now)
	if !c.ledger.addTo(used, key, rec.Modified) {
		return step.Request{}, false, false
	}
	if same(q.Status.Hard, q.Spec.Hard) && same(q.Status.Used, used) {
		return step.Request{}, false, true
	}
	q.Status.Hard, q.Status.Used = q.Spec.Hard.DeepCopy(), used
	q.TypeMeta.APIVersion, q.TypeMeta.Kind = "v1", "ResourceQuota"
	body, _ := json.Marshal(q) // a type of the API: cannot fail
	user := step.KubeSystem + "resourcequota-controller"
	return step.Put(user, resourceOf().Object(key)+"/status", body, step.Subject{Key: key}), true, true
}

// usage counts what is stored of what a quota limits. What nothing counts, such
// as objects of a kind that is not served, is left out.
func (c *Controller) usage(view storage.View, q *corev1.ResourceQuota, now time.Time) corev1.ResourceList {
	used := corev1.ResourceList{}
	scopes := len(q.Spec.Scopes) > 0 || q.Spec.ScopeSelector != nil
	for r := range c.catalog.Resources() {
		m := meterOf(schema.GroupResource{Group: r.Group, Resource: r.Plural})
		if !r.Namespaced || m == nil {
			continue
		}
		in := setting{now: now, classes: m.classes(view)}
		counted := m.counted(q.Spec.Hard, in.classes)
		if len(counted) == 0 {
			continue
		}
		for _, name := range counted {
			if _, twice := used[name]; !twice { // as devices are, by Pods and by claims
				used[name] = resource.Quantity{Format: resource.DecimalSI}
			}
		}
		if m.usage != nil || scopes {
			c.measure(view, q, r.Bucket, m, in, used)
			continue
		}
		for _, name := range counted {
			used[name] = *resource.NewQuantity(int64(view.Count(r.Bucket, q.Namespace+"/", "")), resource.DecimalSI)
		}
	}
	return used
}

// measure adds up what the objects of a bucket take up of a quota.
func (c *Controller) measure(view storage.View, q *corev1.ResourceQuota, bucket string, m *meter, in setting, used corev1.ResourceList) {
	for rec := range view.Ascend(bucket, q.Namespace+"/", "") {
		s, known := c.seen[rec.Key]
		if !known || s.modified != rec.Modified {
			s = sample{modified: rec.Modified, obj: decode(rec)}
			c.seen[rec.Key] = s
		}
		if s.obj != nil && inScope(&q.Spec, s.obj) {
			admission.Add(used, only(m.read(s.obj, in), used))
		}
	}
}

// decode reads an object that is more than counted; nil for all others.
func decode(rec *storage.Record) any {
	var obj any
	switch rec.Key.Bucket {
	case "pods":
		obj = &corev1.Pod{}
	case "services":
		obj = &corev1.Service{}
	case "persistentvolumeclaims":
		obj = &corev1.PersistentVolumeClaim{}
	case deviceClaims:
		obj = &resourcev1.ResourceClaim{}
	default:
		return nil
	}
	if json.Unmarshal(rec.Value, obj) != nil {
		return nil
	}
	return obj
}

// Wake implements [step.Waker].
func (c *Controller) Wake() time.Time { return c.ledger.next() }

// Done implements [step.Controller]. What was refused is looked at again.
func (c *Controller) Done(r step.Request, err error) {
	if err != nil {
		namespace, _ := step.SplitName(r.Subject.Key.Name)
		c.due[namespace] = true
	}
}
