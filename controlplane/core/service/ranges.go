// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/storage"
)

// rangesCommitted follows what is written of ServiceCIDRs.
func (a *ServiceAllocator) rangesCommitted(_ context.Context, change resource.Change) error {
	if c, ok := change.Object.(*networkingv1.ServiceCIDR); ok {
		a.note(func() {
			if a.addRanges(c); change.Deleted {
				delete(a.more, c.Name)
			}
		})
	}
	return nil
}

// addRanges takes what a ServiceCIDR offers: nothing while it is being deleted or
// said not to be ready. One without that condition is ready (KEP-1880).
func (a *ServiceAllocator) addRanges(c *networkingv1.ServiceCIDR) {
	delete(a.more, c.Name)
	for _, condition := range c.Status.Conditions {
		if condition.Type == networkingv1.ServiceCIDRConditionReady && condition.Status != metav1.ConditionTrue {
			return
		}
	}
	if c.DeletionTimestamp != nil {
		return
	}
	for _, text := range c.Spec.CIDRs {
		p, err := netip.ParsePrefix(text)
		if err == nil && p.Addr().Is6() == a.ips.Addr().Is6() {
			a.more[c.Name] = append(a.more[c.Name], p.Masked())
		}
	}
}

// ranges are all that addresses may come from: that of the server, then those of
// ServiceCIDRs in order of their names.
func (a *ServiceAllocator) ranges() []netip.Prefix {
	out := []netip.Prefix{a.ips}
	for _, name := range slices.Sorted(maps.Keys(a.more)) {
		for _, p := range a.more[name] {
			if !slices.Contains(out, p) {
				out = append(out, p)
			}
		}
	}
	return out
}

// offers reports whether an address can be one of a Service.
func (a *ServiceAllocator) offers(ip netip.Addr) bool {
	return slices.ContainsFunc(a.ranges(), func(p netip.Prefix) bool { return isHost(p, ip) })
}

// isHost reports whether an address of a range is neither that of the network nor,
// of IPv4, the one for all.
func isHost(p netip.Prefix, ip netip.Addr) bool {
	return p.Contains(ip) && ip != p.Addr() && (ip.Is6() || p.Contains(ip.Next()))
}

// loadAll visits the objects of a bucket.
func loadAll[T any](view storage.View, bucket string, visit func(*T)) error {
	for rec := range view.Ascend(bucket, "", "") {
		obj := new(T)
		if err := json.Unmarshal(rec.Value, obj); err != nil {
			return fmt.Errorf("read %s of %s: %w", rec.Key.Name, bucket, err)
		}
		visit(obj)
	}
	return nil
}
