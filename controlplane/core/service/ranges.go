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

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/core/service/ranges"
	"github.com/steer-dev/steer/storage"
)

// rangesCommitted follows what is written of ServiceCIDRs.
func (a *ServiceAllocator) rangesCommitted(_ context.Context, change resource.Change) error {
	if c, ok := change.Object.(*networkingv1.ServiceCIDR); ok {
		a.note(func() {
			if a.addRanges(c); change.Deleted {
				delete(a.cidrs, c.Name)
			}
		})
	}
	return nil
}

// offered are the ranges of a ServiceCIDR. New addresses come from those that are open.
type offered struct {
	ranges []netip.Prefix
	open   bool
}

// addRanges takes what a ServiceCIDR offers: it is not open while it is being deleted or
// said not to be ready. One without that condition is ready (KEP-1880).
func (a *ServiceAllocator) addRanges(c *networkingv1.ServiceCIDR) {
	o := offered{open: c.DeletionTimestamp == nil}
	for _, condition := range c.Status.Conditions {
		if condition.Type == networkingv1.ServiceCIDRConditionReady && condition.Status != metav1.ConditionTrue {
			o.open = false
		}
	}
	for _, text := range c.Spec.CIDRs {
		p, err := netip.ParsePrefix(text)
		if err == nil && a.has(familyOf(p.Addr())) {
			o.ranges = append(o.ranges, p.Masked())
		}
	}
	a.cidrs[c.Name] = o
}

// CheckRanges validates ranges of cluster IPs: there may be two, if they are of
// different families, and each has to have addresses for the API server and for one Service.
func CheckRanges(ranges []netip.Prefix) error {
	if len(ranges) > 2 || len(ranges) == 2 && ranges[0].Addr().Is6() == ranges[1].Addr().Is6() {
		return fmt.Errorf("%v: give one range, or one of IPv4 and one of IPv6", ranges)
	}
	for _, p := range ranges {
		if !p.IsValid() || p.Addr().BitLen()-p.Bits() < 3 {
			return fmt.Errorf("%v: there is no room for Services: give a range such as 10.0.0.0/24 or fd00::/108", p)
		}
	}
	return nil
}

func familyOf(ip netip.Addr) corev1.IPFamily {
	if ip.Is6() {
		return corev1.IPv6Protocol
	}
	return corev1.IPv4Protocol
}

// families are those of the ranges of the server, the default first.
func (a *ServiceAllocator) families() []corev1.IPFamily {
	var out []corev1.IPFamily
	for _, p := range a.ips {
		out = append(out, familyOf(p.Addr()))
	}
	return out
}

func (a *ServiceAllocator) has(family corev1.IPFamily) bool {
	return slices.Contains(a.families(), family)
}

// rangeOf is the server's own range of a family that it has.
func (a *ServiceAllocator) rangeOf(family corev1.IPFamily) netip.Prefix {
	for _, p := range a.ips {
		if familyOf(p.Addr()) == family {
			return p
		}
	}
	return netip.Prefix{}
}

// ranges are all that addresses of a family may come from: that of the server, unless no
// ServiceCIDR that has it is open, then those of ServiceCIDRs in order of their names.
func (a *ServiceAllocator) ranges(family corev1.IPFamily) []netip.Prefix {
	var open, shut []netip.Prefix
	for _, name := range slices.Sorted(maps.Keys(a.cidrs)) {
		if c := a.cidrs[name]; c.open {
			open = append(open, c.ranges...)
		} else {
			shut = append(shut, c.ranges...)
		}
	}
	var out []netip.Prefix
	for _, p := range a.ips {
		if slices.Contains(open, p) || !slices.Contains(shut, p) {
			out = append(out, p)
		}
	}
	for _, p := range open {
		if !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	return slices.DeleteFunc(out, func(p netip.Prefix) bool { return familyOf(p.Addr()) != family })
}

// offers reports whether an address can be one of a Service.
func (a *ServiceAllocator) offers(ip netip.Addr) bool {
	return slices.ContainsFunc(a.ranges(familyOf(ip)), func(p netip.Prefix) bool { return ranges.IsHost(p, ip) })
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
