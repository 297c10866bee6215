// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package autoscaling

import (
	"encoding/json"
	"strconv"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/storage"
)

// ControllerName is the name of a [Controller].
const ControllerName = "horizontal-pod-autoscaler-controller"

const (
	scalers     = "autoscaling/horizontalpodautoscalers"
	definitions = "apiextensions.k8s.io/customresourcedefinitions"
	user        = step.KubeSystem + "horizontal-pod-autoscaler"
)

// Controller runs HorizontalPodAutoscalers without a metrics API: it keeps their targets between the least and the most replicas, and tells in their
// status why they do not scale otherwise. It acts when an autoscaler or its target
// changes, where that of a cluster looks every 15 seconds; but it scales no more often.
type Controller struct {
	catalog step.Catalog
	due     step.KeySet
	// targets are where autoscalers look, and watching who looks there.
	targets  map[storage.Key]storage.Key
	watching map[storage.Key]step.KeySet
	// lost are autoscalers of kinds that are not served.
	lost step.KeySet
	// scaled are the numbers that targets have been given since the last look.
	scaled map[storage.Key]int32
	// again is when autoscalers may scale that have just done so.
	again step.Alarms
}

// period is the least time between two changes of a target.
const period = 15 * time.Second

var (
	_ step.Controller = (*Controller)(nil)
	_ step.Waker      = (*Controller)(nil)
)

// NewController returns a controller that has seen nothing. It finds targets through the
// catalog.
func NewController(catalog step.Catalog) *Controller {
	c := &Controller{catalog: catalog}
	c.forget()
	return c
}

func (c *Controller) forget() {
	c.due, c.lost = step.KeySet{}, step.KeySet{}
	c.targets, c.watching, c.scaled = map[storage.Key]storage.Key{}, map[storage.Key]step.KeySet{}, map[storage.Key]int32{}
	c.again = step.Alarms{}
}

// Name implements [step.Controller].
func (*Controller) Name() string { return ControllerName }

// Reset implements [step.Controller].
func (c *Controller) Reset(view storage.View) {
	c.forget()
	for rec := range view.Ascend(scalers, "", "") {
		c.due.Add(rec.Key)
	}
}

// Concerns implements [step.Controller].
func (c *Controller) Concerns(e storage.Event) bool {
	key := e.Record.Key
	return key.Bucket == scalers || len(c.watching) > 0 && c.watching[key] != nil || key.Bucket == definitions && len(c.lost) > 0
}

// Observe implements [step.Controller].
func (c *Controller) Observe(e storage.Event) {
	switch key := e.Record.Key; {
	case key.Bucket == scalers && e.Deleted:
		c.follow(key, storage.Key{})
		delete(c.due, key)
		delete(c.lost, key)
		delete(c.scaled, key)
		delete(c.again, key)
	case key.Bucket == scalers:
		c.due.Add(key)
	case key.Bucket == definitions && len(c.lost) > 0:
		c.due.Add(c.lost.Sorted()...)
	}
	c.due.Add(c.watching[e.Record.Key].Sorted()...)
}

// follow notes where an autoscaler looks; nowhere for the zero key.
func (c *Controller) follow(scaler, target storage.Key) {
	if before := c.targets[scaler]; before != target {
		if delete(c.watching[before], scaler); len(c.watching[before]) == 0 {
			delete(c.watching, before)
		}
	}
	if target == (storage.Key{}) {
		delete(c.targets, scaler)
		return
	}
	if c.targets[scaler] = target; c.watching[target] == nil {
		c.watching[target] = step.KeySet{}
	}
	c.watching[target].Add(scaler)
}

// Step implements [step.Controller].
func (c *Controller) Step(view storage.View, now time.Time) []step.Request {
	c.again.Ring(now, c.due)
	keys := c.due.Sorted()
	clear(c.due)
	var out []step.Request
	for _, key := range keys {
		obj := &autoscalingv2.HorizontalPodAutoscaler{}
		if rec := view.Get(key); rec != nil && step.Decode(rec, obj) == nil && obj.DeletionTimestamp == nil {
			if r, needed := c.look(view, key, obj, now); needed {
				out = append(out, r)
			}
		}
	}
	return out
}

// look returns the request that scales the target, or else one that gives the autoscaler the
// status that it should have.
func (c *Controller) look(view storage.View, key storage.Key, obj *autoscalingv2.HorizontalPodAutoscaler, now time.Time) (step.Request, bool) {
	before := obj.Status.DeepCopy()
	said := verdict{&obj.Status, now}
	t, why := c.find(view, key, obj)
	if why != "" {
		said.set(autoscalingv2.AbleToScale, false, "FailedGetScale", "the HPA controller was unable to get the target's current scale: "+why)
	} else {
		least := int32(1)
		if obj.Spec.MinReplicas != nil {
			least = *obj.Spec.MinReplicas
		}
		if wanted := min(max(t.replicas, least), obj.Spec.MaxReplicas); t.replicas != 0 && wanted != t.replicas {
			if last := obj.Status.LastScaleTime; last != nil && now.Before(last.Add(period)) {
				c.again[key] = last.Add(period)
				return step.Request{}, false
			}
			return t.scale(key, wanted), true
		}
		c.report(said, obj, t)
		if to, ok := c.scaled[key]; ok {
			at := metav1.NewTime(now)
			obj.Status.LastScaleTime, obj.Status.DesiredReplicas = &at, to
		}
	}
	delete(c.scaled, key)
	if equality.Semantic.DeepEqual(*before, obj.Status) {
		return step.Request{}, false
	}
	body, err := json.Marshal(obj)
	return step.Put(user, step.Resource{Group: "autoscaling", Version: "v2", Plural: "horizontalpodautoscalers"}.Object(key)+"/status", body, step.Subject{Key: key}), err == nil
}

// report tells why a target within its bounds is not scaled.
func (*Controller) report(said verdict, obj *autoscalingv2.HorizontalPodAutoscaler, t target) {
	said.set(autoscalingv2.AbleToScale, true, "SucceededGetScale", "the HPA controller was able to get the target's current scale")
	s := &obj.Status
	s.CurrentReplicas, s.CurrentMetrics, s.ObservedGeneration = t.replicas, nil, nil
	switch {
	case t.replicas == 0:
		s.DesiredReplicas = 0
		said.set(autoscalingv2.ScalingActive, false, "ScalingDisabled", "scaling is disabled since the replica count of the target is zero")
	case !t.selects:
		said.set(autoscalingv2.ScalingActive, false, "InvalidSelector", "the HPA target's scale is missing a selector")
	case len(obj.Spec.Metrics) > 0:
		s.CurrentMetrics = make([]autoscalingv2.MetricStatus, len(obj.Spec.Metrics))
		reason, message := unmeasured(obj.Namespace, &obj.Spec.Metrics[0])
		said.set(autoscalingv2.ScalingActive, false, reason, "the HPA was unable to compute the replica count: "+message)
	}
}

// verdict is a status in which conditions are set.
type verdict struct {
	*autoscalingv2.HorizontalPodAutoscalerStatus
	now time.Time
}

func (v verdict) set(kind autoscalingv2.HorizontalPodAutoscalerConditionType, holds bool, reason, message string) {
	c := autoscalingv2.HorizontalPodAutoscalerCondition{Type: kind, Status: "False", Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(v.now)}
	if holds {
		c.Status = "True"
	}
	for i := range v.Conditions {
		if is := &v.Conditions[i]; is.Type == kind {
			if is.Status == c.Status {
				c.LastTransitionTime = is.LastTransitionTime
			}
			*is = c
			return
		}
	}
	v.Conditions = append(v.Conditions, c)
}

// scale is the request that gives the target another number of replicas.
func (t target) scale(about storage.Key, replicas int32) step.Request {
	namespace, name := step.SplitName(t.rec.Key.Name)
	body, _ := json.Marshal(autoscalingv1.Scale{
		TypeMeta:   metav1.TypeMeta{APIVersion: "autoscaling/v1", Kind: "Scale"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, ResourceVersion: strconv.FormatInt(int64(t.rec.Modified), 10)},
		Spec:       autoscalingv1.ScaleSpec{Replicas: replicas},
	})
	return step.Put(user, t.resource.Object(t.rec.Key)+"/scale", body, step.Subject{Key: about, Detail: strconv.Itoa(int(replicas))})
}

// Wake implements [step.Waker].
func (c *Controller) Wake() time.Time { return c.again.Wake() }

// Report implements [step.Controller].
func (c *Controller) Report(r step.Request, err error) {
	key := r.Subject.Key
	if err != nil {
		c.due.Add(key)
		return
	}
	_, known := c.targets[key] // it may have been deleted meanwhile
	if n, bad := strconv.ParseInt(r.Subject.Detail, 10, 32); bad == nil && known {
		c.scaled[key] = int32(n)
	}
}
