// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ranges runs the controller of ServiceCIDRs, the ranges of cluster IPs.
package ranges

import (
	"encoding/json"
	"net/netip"
	"slices"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/storage"
)

// ControllerName is the name of a [Controller].
const ControllerName = "service-cidr-controller"

// Finalizer keeps a ServiceCIDR until no Service needs it.
const Finalizer = "networking.k8s.io/service-cidr-finalizer"

// rangePatience is how long a ServiceCIDR that is being deleted stays at least: a
// Service that got an address of it just before is stored by then.
const rangePatience = 10 * time.Second

// Controller says of ServiceCIDRs that they are ready, and keeps those that
// are being deleted while Services have addresses of them that no other range has
// (KEP-1880).
type Controller struct {
	// ranges are all there are, by their keys.
	ranges map[storage.Key]keptRange
	due    step.KeySet
	// again is when ranges have to be looked at although nothing was written.
	again step.Alarms
}

// keptRange is what is known of a ServiceCIDR.
type keptRange struct {
	prefixes []netip.Prefix
	deleting bool
}

var (
	_ step.Controller = (*Controller)(nil)
	_ step.Waker      = (*Controller)(nil)
)

// NewController returns a controller that has seen nothing.
func NewController() *Controller {
	c := &Controller{}
	c.forget()
	return c
}

func (c *Controller) forget() {
	c.ranges, c.due, c.again = map[storage.Key]keptRange{}, step.KeySet{}, step.Alarms{}
}

// Name implements [step.Controller].
func (*Controller) Name() string { return ControllerName }

// Reset implements [step.Controller].
func (c *Controller) Reset(view storage.View) {
	c.forget()
	for rec := range view.Ascend(Bucket, "", "") {
		c.see(rec)
	}
}

// see takes in a ServiceCIDR as it is now.
func (c *Controller) see(rec *storage.Record) {
	var obj networkingv1.ServiceCIDR
	if step.Decode(rec, &obj) != nil {
		return
	}
	kept := keptRange{deleting: obj.DeletionTimestamp != nil}
	for _, text := range obj.Spec.CIDRs {
		if p, err := netip.ParsePrefix(text); err == nil {
			kept.prefixes = append(kept.prefixes, p.Masked())
		}
	}
	c.ranges[rec.Key] = kept
	c.due.Add(rec.Key)
}

// Filter implements [step.Controller].
func (c *Controller) Filter(e storage.Event) bool {
	return e.Record.Key.Bucket == Bucket || e.Record.Key.Bucket == AddressBucket && len(c.ranges) > 0
}

// Handle implements [step.Controller].
func (c *Controller) Handle(e storage.Event) {
	switch key := e.Record.Key; {
	case key.Bucket == Bucket && e.Deleted:
		delete(c.ranges, key)
		delete(c.due, key)
		delete(c.again, key)
	case key.Bucket == Bucket:
		c.see(e.Record)
	}
	for key, kept := range c.ranges { // what they wait for may have happened
		if kept.deleting {
			c.due.Add(key)
		}
	}
}

// Sync implements [step.Controller].
func (c *Controller) Sync(view storage.View, now time.Time) []step.Request {
	c.again.Ring(now, c.due)
	var out []step.Request
	for _, key := range c.due.Sorted() {
		var obj networkingv1.ServiceCIDR
		if rec := view.Get(key); rec != nil && step.Decode(rec, &obj) == nil {
			out = append(out, c.look(view, key, &obj, now)...)
		}
	}
	clear(c.due)
	return out
}

// look returns what a ServiceCIDR lacks.
func (c *Controller) look(view storage.View, key storage.Key, obj *networkingv1.ServiceCIDR, now time.Time) []step.Request {
	var out []step.Request
	kept := slices.Contains(obj.Finalizers, Finalizer)
	ready := metav1.Condition{
		Type: networkingv1.ServiceCIDRConditionReady, Status: metav1.ConditionTrue, Message: "Kubernetes Service CIDR is ready",
	}
	switch {
	case obj.DeletionTimestamp == nil:
		if !kept {
			out = append(out, finalize(key, "finalizers"))
		}
	case !kept:
		return nil // others keep it
	case c.needed(view, key):
		ready.Status, ready.Reason = metav1.ConditionFalse, networkingv1.ServiceCIDRReasonTerminating
		ready.Message = "There are still IPAddresses referencing the ServiceCIDR, please remove them or create a new ServiceCIDR"
	default:
		if at := obj.DeletionTimestamp.Add(rangePatience); now.Before(at) {
			c.again[key] = at
			return nil
		}
		return []step.Request{finalize(key, "$deleteFromPrimitiveList/finalizers")}
	}
	if is := meta.FindStatusCondition(obj.Status.Conditions, ready.Type); is == nil || is.Status != ready.Status || is.Reason != ready.Reason || is.Message != ready.Message {
		ready.LastTransitionTime = metav1.NewTime(now)
		out = append(out, say(key, ready))
	}
	return out
}

// needed reports whether Services would be left with addresses that are of no range
// if a ServiceCIDR went. It can go in any case where others have all of it.
func (c *Controller) needed(view storage.View, key storage.Key) bool {
	own := c.ranges[key].prefixes
	covered := func(p netip.Prefix) bool {
		return c.othersHave(key, func(o netip.Prefix) bool { return o.Overlaps(p) && o.Bits() <= p.Bits() })
	}
	if !slices.ContainsFunc(own, func(p netip.Prefix) bool { return !covered(p) }) {
		return false
	}
	for rec := range view.Ascend(AddressBucket, "", "") {
		ip, err := netip.ParseAddr(rec.Key.Name)
		has := func(p netip.Prefix) bool { return IsHost(p, ip) }
		if err != nil || !slices.ContainsFunc(own, has) || c.othersHave(key, has) {
			continue
		}
		var address metav1.PartialObjectMetadata
		if step.Decode(rec, &address) == nil && address.Labels[networkingv1.LabelManagedBy] == Manager {
			return true
		}
	}
	return false
}

// othersHave reports whether another ServiceCIDR has such a range.
func (c *Controller) othersHave(key storage.Key, such func(netip.Prefix) bool) bool {
	for other, kept := range c.ranges {
		if other != key && slices.ContainsFunc(kept.prefixes, such) {
			return true
		}
	}
	return false
}

const rangeUser = step.KubeSystem + "service-cidrs-controller"

func rangePath(key storage.Key) string {
	return step.Resource{Group: networkingv1.GroupName, Version: "v1", Plural: "servicecidrs"}.Object(key)
}

// finalize is the request that names the finalizer in a list of the metadata.
func finalize(key storage.Key, list string) step.Request {
	body, _ := json.Marshal(map[string]any{"metadata": map[string]any{list: []string{Finalizer}}})
	r := step.Patch(rangeUser, rangePath(key), body, step.Subject{Key: key})
	r.ContentType = string(types.StrategicMergePatchType)
	return r
}

// say is the request that applies a condition.
func say(key storage.Key, condition metav1.Condition) step.Request {
	body, _ := json.Marshal(map[string]any{
		"apiVersion": networkingv1.SchemeGroupVersion.String(), "kind": "ServiceCIDR", "metadata": map[string]any{"name": key.Name},
		"status": map[string]any{"conditions": []metav1.Condition{condition}},
	})
	return step.Apply(rangeUser, rangePath(key)+"/status", ControllerName, body, step.Subject{Key: key})
}

// Wake implements [step.Waker].
func (c *Controller) Wake() time.Time { return c.again.Wake() }

// Done implements [step.Controller]. What was refused is looked at again.
func (c *Controller) Done(r step.Request, err error) {
	if err != nil {
		c.due.Add(r.Subject.Key)
	}
}
