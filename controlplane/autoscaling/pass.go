// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package autoscaling

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/storage"
)

// stage is what a pass waits for.
type stage int

const (
	evaluating stage = iota
	asking           // the server of the target
	measuring        // the servers of metrics
	scaling          // the target
	scaled           // nothing: the target was scaled, or could not be
	writing          // the status
)

// pass is one look at an autoscaler, from reading its metrics to writing its status.
type pass struct {
	number uint64
	stage  stage
	// asked is the answer of the server of the target; nil: this server has it, or it is to be
	// asked.
	asked *asked
	// metrics are what was asked for, and readings the answers. A sender writes them, the
	// controller reads them once the request is reported.
	metrics  []autoscalingv2.MetricSpec
	readings []reading
	// outcome is what was decided; refusal is why the target could not be scaled, after
	// conflicts with other writers.
	outcome   outcome
	conflicts int
	refusal   string
	written   bool
}

// mostConflicts is how often a target is scaled again that another client has changed
// meanwhile.
const mostConflicts = 5

// outcome is what is decided in a pass.
type outcome struct {
	status autoscalingv2.HorizontalPodAutoscalerStatus
	// to is the number of replicas that the target is given, from the number it has; the same
	// if it is not scaled. reason stands in the Event.
	from, to int32
	reason   string
	// periodic reports that the next pass does not wait for a change.
	periodic bool
}

// look is one step of a pass.
type look struct {
	controller *Controller
	view       storage.View
	now        time.Time
	key        storage.Key
	scaler     *scaler
	object     *autoscalingv2.HorizontalPodAutoscaler
}

// advance takes a pass as far as it goes without an answer, and returns the request that it
// then waits for.
func (l *look) advance() (step.Request, bool) {
	s := l.scaler
	if s.pass == nil {
		if at := l.notBefore(); l.now.Before(at) {
			l.controller.again[l.key] = at
			return step.Request{}, false
		}
		l.controller.passes++
		s.prompt = false
		s.pass, s.again = &pass{number: l.controller.passes}, false
	}
	p := s.pass
	if p.stage == evaluating {
		if r, sends := l.evaluate(); sends {
			return r, true
		}
	}
	if p.stage == scaled {
		l.conclude()
		p.stage = writing
	}
	if r, sends := l.write(); sends {
		return r, true
	}
	l.end()
	return step.Request{}, false
}

// notBefore is when the next pass may begin.
func (l *look) notBefore() time.Time {
	if l.scaler.prompt {
		return time.Time{}
	}
	at := l.scaler.next
	if last := l.object.Status.LastScaleTime; last != nil && at.Before(last.Add(period)) {
		at = last.Add(period)
	}
	return at
}

// end ends a pass, and decides when the next one begins.
func (l *look) end() {
	s := l.scaler
	c := l.controller
	if s.pass.outcome.periodic || s.pass.asked != nil {
		c.again[l.key] = s.next
	}
	if _, lost := c.lost[l.key]; lost && !c.catalog.Elsewhere().Empty() { // a server may say of its kinds later
		c.again[l.key] = l.now.Add(period)
	}
	if s.pass = nil; s.again {
		c.due.Add(l.key)
	}
}

// evaluate decides what the target and the metrics call for. It returns the request that
// reads the metrics, or the one that scales, if the pass has to wait for one.
func (l *look) evaluate() (step.Request, bool) {
	p, o := l.scaler.pass, l.object
	p.stage = writing
	v := verdict{o.Status.DeepCopy(), l.now}
	t, why := l.controller.find(l.view, l.key, o)
	if why == "" && step.IsElsewhere(t.key) {
		if p.asked == nil || p.asked.target != t.key {
			return l.ask(t), true
		}
		if p.asked.err != nil {
			why = p.asked.err.Error()
		}
		scale := &p.asked.scale
		t.version, t.replicas, t.running, t.selector = scale.ResourceVersion, scale.Spec.Replicas, scale.Status.Replicas, scale.Status.Selector
	}
	if why != "" {
		l.warn("FailedGetScale", why)
		v.set(autoscalingv2.AbleToScale, false, "FailedGetScale", "the HPA controller was unable to get the target's current scale: "+why)
		p.outcome = outcome{status: *v.HorizontalPodAutoscalerStatus}
		return step.Request{}, false
	}
	v.set(autoscalingv2.AbleToScale, true, "SucceededGetScale", "the HPA controller was able to get the target's current scale")
	generation := o.Generation
	v.ObservedGeneration = &generation
	l.scaler.begin(t.replicas, l.now)
	out := outcome{from: t.replicas, to: t.replicas}
	var measured []autoscalingv2.MetricStatus
	switch b := boundsOf(&o.Spec); {
	case t.replicas == 0 && !l.leavesZero(b.least):
		v.set(autoscalingv2.ScalingActive, false, "ScalingDisabled", "scaling is disabled since the replica count of the target is zero")
	case t.replicas > b.most:
		out.to, out.reason = b.most, "Current number of replicas above Spec.MaxReplicas"
	case t.replicas < b.least && t.replicas != 0:
		out.to, out.reason = b.least, "Current number of replicas below Spec.MinReplicas"
	default:
		selector, ok := l.selector(v, t)
		if !ok {
			p.outcome = outcome{status: v.numbers(t.replicas, v.DesiredReplicas, nil)}
			return step.Request{}, false
		}
		if len(o.Spec.Metrics) == 0 { // which the server does not store
			break
		}
		if !equality.Semantic.DeepEqual(p.metrics, o.Spec.Metrics) {
			return l.read(selector), true
		}
		l.scaler.next, out.periodic = l.now.Add(period), true
		m := l.measure(v, t, selector)
		if measured = m.statuses; m.failed != nil {
			l.warn("FailedComputeMetricsReplicas", m.failed.Error())
			p.outcome = outcome{status: v.numbers(t.replicas, v.DesiredReplicas, measured), periodic: true}
			return step.Request{}, false
		}
		if out.to = m.replicas; out.to > t.replicas {
			out.reason = m.name + " above target"
		} else if out.to < t.replicas {
			out.reason = "All metrics below target"
		}
		out.to = l.normalize(v, t.replicas, out.to)
	}
	out.status = v.numbers(t.replicas, out.to, measured)
	p.outcome = out
	if out.to == out.from {
		return step.Request{}, false
	}
	p.stage = scaling
	return t.scale(l.key, out.to), true
}

// leavesZero reports whether the autoscaler goes on with a target of zero replicas: only if
// it is the one that has scaled it to zero (KEP-2021).
func (l *look) leavesZero(least int32) bool {
	scaled := slices.ContainsFunc(l.object.Status.Conditions, func(c autoscalingv2.HorizontalPodAutoscalerCondition) bool {
		return c.Type == autoscalingv2.ScaledToZero && c.Status == corev1.ConditionTrue
	})
	return scaled && (least != 0 || l.measuresOutside())
}

// measuresOutside reports whether there is a metric that is there without Pods.
func (l *look) measuresOutside() bool {
	return slices.ContainsFunc(l.object.Spec.Metrics, func(m autoscalingv2.MetricSpec) bool {
		return m.Type == autoscalingv2.ObjectMetricSourceType || m.Type == autoscalingv2.ExternalMetricSourceType
	})
}

// normalize keeps what the metrics call for within the history and the bounds, and says so.
func (l *look) normalize(v verdict, current, recommended int32) int32 {
	d := l.scaler.decide(&l.object.Spec, current, recommended, l.now)
	v.set(autoscalingv2.AbleToScale, true, d.stabilized.reason, d.stabilized.message)
	v.set(autoscalingv2.ScalingLimited, d.isLimited, d.limited.reason, d.limited.message)
	return d.replicas
}

// selector returns the one of the Pods of the target, if it is valid and selects Pods of no
// other autoscaler's target.
func (l *look) selector(v verdict, t target) (labels.Selector, bool) {
	refuse := func(event, reason, told, message string) (labels.Selector, bool) {
		l.warn(event, told)
		v.set(autoscalingv2.ScalingActive, false, reason, message)
		l.warn("FailedComputeMetricsReplicas", told)
		return nil, false
	}
	if t.selector == "" {
		return refuse("SelectorRequired", "InvalidSelector", "selector is required", "the HPA target's scale is missing a selector")
	}
	selector, err := labels.Parse(t.selector)
	if err != nil {
		told := fmt.Sprintf("couldn't convert selector into a corresponding internal selector object: %v", err)
		return refuse("InvalidSelector", "InvalidSelector", told, told)
	}
	l.scaler.selector = selector
	if others := l.controller.scalersOf(podsOf(l.view, l.object.Namespace, selector), l.object.Namespace); len(others) > 1 {
		told := fmt.Sprintf("pods by selector %v are controlled by more than one HPA (e.g. %v)", t.selector, others[:2])
		return refuse("AmbiguousSelector", "AmbiguousSelector", told, told)
	}
	return selector, true
}

// read returns the request that reads the metrics.
func (l *look) read(selector labels.Selector) step.Request {
	p, fetch := l.scaler.pass, l.controller.fetch
	p.stage = measuring
	p.metrics = l.object.Spec.Metrics
	queries := make([]query, len(p.metrics))
	readings := make([]reading, len(p.metrics))
	for i := range p.metrics {
		q := query{namespace: l.object.Namespace, spec: &p.metrics[i], pods: selector}
		if m := q.spec.Object; m != nil {
			q.resource, q.err = l.controller.resourceOf(m.DescribedObject.APIVersion, m.DescribedObject.Kind)
		}
		queries[i] = q
	}
	p.readings = readings
	return step.Request{
		User: user, Method: http.MethodGet, Path: "metrics of " + l.key.Name, Subject: step.Subject{Key: l.key, Detail: "metrics"},
		Do: func(ctx context.Context) error {
			for i, q := range queries {
				readings[i] = read(ctx, fetch, q)
			}
			return nil // that a server does not answer is no failure of this controller
		},
	}
}

// conclude takes note of a target that was scaled, or could not be.
func (l *look) conclude() {
	p := l.scaler.pass
	out := &p.outcome
	v := verdict{&out.status, l.now}
	l.scaler.next, out.periodic = l.now.Add(period), true
	if p.refusal != "" {
		l.warn("FailedRescale", fmt.Sprintf("New size: %d; reason: %s; error: %v", out.to, out.reason, p.refusal))
		v.set(autoscalingv2.AbleToScale, false, "FailedUpdateScale", "the HPA controller was unable to update the target scale: "+p.refusal)
		out.status.DesiredReplicas = l.object.Status.DesiredReplicas
		return
	}
	v.set(autoscalingv2.AbleToScale, true, "SucceededRescale", fmt.Sprintf("the HPA controller was able to update the target scale to %d", out.to))
	l.controller.events.add(l.about(), note{reason: "SuccessfulRescale", message: fmt.Sprintf("New size: %d; reason: %s", out.to, out.reason)}, l.now)
	if out.from > 0 && out.to == 0 && boundsOf(&l.object.Spec).least == 0 && l.measuresOutside() {
		v.set(autoscalingv2.ScaledToZero, true, "ScaledToZero", "the HPA controller scaled the workload to zero")
	} else {
		v.set(autoscalingv2.ScaledToZero, false, "NotScaledToZero", "the HPA controller did not scale the workload to zero")
	}
	l.scaler.scaled(l.object.Spec.Behavior, out.from, out.to, l.now)
	at := metav1.NewTime(l.now)
	out.status.LastScaleTime = &at
}

// write returns the request that writes the status, if it differs from the stored one.
func (l *look) write() (step.Request, bool) {
	p := l.scaler.pass
	if p.written || equality.Semantic.DeepEqual(l.object.Status, p.outcome.status) {
		return step.Request{}, false
	}
	l.object.Status = p.outcome.status
	body, err := json.Marshal(l.object)
	path := step.Resource{Group: "autoscaling", Version: "v2", Plural: "horizontalpodautoscalers"}.Object(l.key) + "/status"
	return step.Put(user, path, body, step.Subject{Key: l.key, Detail: "status"}), err == nil
}

// scale is the request that gives the target another number of replicas.
func (t target) scale(about storage.Key, replicas int32) step.Request {
	namespace, name := step.SplitName(t.key.Name)
	body, _ := json.Marshal(autoscalingv1.Scale{
		TypeMeta:   metav1.TypeMeta{APIVersion: "autoscaling/v1", Kind: "Scale"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, ResourceVersion: t.version},
		Spec:       autoscalingv1.ScaleSpec{Replicas: replicas},
	})
	return step.Put(user, t.path(), body, step.Subject{Key: about, Detail: "scale"})
}

// warn records an Event about the autoscaler.
func (l *look) warn(reason, message string) {
	l.controller.events.add(l.about(), note{warning: true, reason: reason, message: message}, l.now)
}

// messageOf returns the message of a Status with which the server refused a request.
func messageOf(err error) string {
	var said interface{ Message() string }
	if errors.As(err, &said) {
		return said.Message()
	}
	return err.Error()
}
