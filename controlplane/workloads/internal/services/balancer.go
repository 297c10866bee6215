// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package services

import (
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"

	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/controlplane/workloads/internal/cluster"
	"github.com/steer-dev/steer/storage"
)

const serviceController = step.KubeSystem + "service-controller"

// balancer gives Services of type LoadBalancer an address each, and takes it back when they are deleted or
// change their type. Nothing listens there. Services with a class of load balancers, and those that
// have an address of another controller, are left alone.
type balancer struct {
	all netip.Prefix
	// given are the addresses of Services, also those that are being written; waiting are the Services for
	// which none was left.
	given   map[storage.Key]netip.Addr
	holders map[netip.Addr]storage.Key
	waiting step.KeySet
}

func newBalancer(all netip.Prefix) balancer {
	return balancer{all: all.Masked(), given: map[storage.Key]netip.Addr{}, holders: map[netip.Addr]storage.Key{}, waiting: step.KeySet{}}
}

// look gives the Service an address, or takes it back and gives it to one that waits.
func (b *balancer) look(l *look) {
	if !b.all.IsValid() {
		return
	}
	if l.self != nil && l.s != nil && l.self.Balanced && !l.self.Deleting {
		b.assign(l)
		return
	}
	if !b.release(l.key) {
		return
	}
	for _, key := range b.waiting.Sorted() {
		if other := lookAt(l.Turn, key); other.self != nil && other.s != nil {
			b.assign(other)
		}
	}
}

// assign gives the Service an address unless it has one.
func (b *balancer) assign(l *look) {
	if l.self.Ingress != "" {
		if at, err := netip.ParseAddr(l.self.Ingress); err == nil && b.all.Contains(at) {
			b.give(l.key, at) // was given before this process started
		}
		return
	}
	if b.all.Addr().Is4() != (len(l.s.Spec.IPFamilies) == 0 || l.s.Spec.IPFamilies[0] == corev1.IPv4Protocol) {
		return // of another family
	}
	about := cluster.Note{User: serviceController, About: l.key, UID: l.self.UID}
	at, why := b.choose(l)
	if why != "" {
		if _, told := b.waiting[l.key]; !told {
			about.Warning, about.Reason = true, "SyncLoadBalancerFailed"
			about.Message = "Error syncing load balancer: failed to ensure load balancer: " + why
			l.Note(about, l.Now)
		}
		b.waiting.Add(l.key)
		return
	}
	delete(b.waiting, l.key)
	b.give(l.key, at)
	l.Patch(serviceController, l.key, l.key, map[string]any{
		"metadata": map[string]any{"uid": l.self.UID},
		"status":   map[string]any{"loadBalancer": map[string]any{"ingress": []any{map[string]any{"ip": at.String(), "ipMode": corev1.LoadBalancerIPModeVIP}}}},
	})
	l.Requests[len(l.Requests)-1].Path += "/status"
	about.Reason, about.Message = "EnsuringLoadBalancer", "Ensuring load balancer"
	l.Tell(about)
	about.Reason, about.Message = "EnsuredLoadBalancer", "Ensured load balancer"
	l.Tell(about)
}

func (b *balancer) give(key storage.Key, at netip.Addr) {
	b.given[key], b.holders[at] = at, key
}

// release takes the address of a Service back, and reports whether it had one.
func (b *balancer) release(key storage.Key) bool {
	delete(b.waiting, key)
	at, had := b.given[key]
	if had {
		delete(b.given, key)
		delete(b.holders, at)
	}
	return had
}

// choose returns the address for a Service: the one that it has been given, the one that it asks
// for, or else the lowest that is free; or why there is none.
func (b *balancer) choose(l *look) (at netip.Addr, why string) {
	if at, given := b.given[l.key]; given {
		return at, ""
	}
	free := func(at netip.Addr) bool {
		_, held := b.holders[at]
		return !held && !l.Index.HasIngress(at.String())
	}
	if asked := l.s.Spec.LoadBalancerIP; asked != "" {
		at, err := netip.ParseAddr(asked)
		if err != nil || !b.all.Contains(at) || !free(at) {
			return at, fmt.Sprintf("spec.loadBalancerIP %s is taken, or not in %s", asked, b.all)
		}
		return at, ""
	}
	for at := b.all.Addr().Next(); b.all.Contains(at); at = at.Next() {
		if last := !b.all.Contains(at.Next()); last && at.Is4() && b.all.Bits() < 31 {
			break // the broadcast address
		}
		if free(at) {
			return at, ""
		}
	}
	return netip.Addr{}, fmt.Sprintf("no address is left of %s", b.all)
}
