// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/apiserver"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/component"
	"github.com/steer-dev/steer/controlplane/core/service/ranges"
	"github.com/steer-dev/steer/storage"
)

// ServiceAllocator gives Services their cluster IP and node ports. It is an
// admission, to be asked before any that wants to see them, and safe for
// concurrent use.
//
// What is in use, and which ranges there are, it reads from the store, once, and
// follows through what [ServiceAllocator.Component] adds to resources. An
// IPAddress stands for each address of a Service when its write returns. What was given
// to a Service is given back when its write is known not to happen, and not before.
type ServiceAllocator struct {
	store AllocatorStore
	ips   []netip.Prefix // one, or one of each family
	newID func() types.UID

	mu    sync.Mutex
	ready bool
	// changes counts what was noted of committed changes.
	changes uint64
	// cidrs are the ranges of ServiceCIDRs, by their names.
	cidrs map[string]offered
	// used are the addresses and node ports in use, by Service.
	used map[any]holder
	// doubts is how many of those are held by writes whose outcome is unknown.
	doubts int
}

// holder is who holds an address or port.
type holder struct {
	// key of the Service.
	key string
	// by is the write that is under way; nil: none is.
	by *taking
	// doubtful: the outcome of a write is unknown that would have stored the Service with
	// it or, if leaving is set, would have deleted or stored it without. The state of the
	// store after revision at shows what became of it; 0: that is not known yet.
	doubtful, leaving bool
	at                storage.Revision
}

// The range of node ports.
const (
	firstNodePort, lastNodePort = 30000, 32767
	// staticNodePorts are at the beginning of the range, for callers that name one, as
	// long as others are free. See KEP-3668.
	staticNodePorts = 86
)

// AllocatorStore is what a [ServiceAllocator] needs of a store.
type AllocatorStore interface {
	storage.Viewer
	storage.Committer
}

// NewServiceAllocator returns the allocator for the Services in a store. ips are the ranges
// of cluster IPs, see [CheckRanges]: the first address of the first is kept for the API
// server; none means 10.0.0.0/24. newID makes the UIDs of IPAddresses.
func NewServiceAllocator(store AllocatorStore, ips []netip.Prefix, newID func() types.UID) *ServiceAllocator {
	if len(ips) == 0 {
		ips = []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, 0, 0}), 24)}
	}
	a := &ServiceAllocator{store: store, newID: newID, used: map[any]holder{}, cidrs: map[string]offered{}}
	for _, p := range ips {
		a.ips = append(a.ips, p.Masked())
	}
	return a
}

// Ranges returns the ranges of cluster IPs, one or, for dual-stack, one of each family.
func (a *ServiceAllocator) Ranges() []netip.Prefix { return slices.Clone(a.ips) }

// Component returns the allocator as an admission of Services that learns of every change of
// Services, IPAddresses and ServiceCIDRs.
func (a *ServiceAllocator) Component() component.Component {
	return component.Component{
		Name: "addresses of services", Admission: a, For: []string{"services"},
		Lead: func(context.Context) error { a.forget(); return nil },
		Extend: []component.Extension{
			{Resource: "services", Committed: a.committed},
			{Resource: "ipaddresses." + networkingv1.GroupName, Committed: a.addressesCommitted},
			{Resource: "servicecidrs." + networkingv1.GroupName, Committed: a.rangesCommitted},
		},
	}
}

// Allocated is the health check by the name that kube-apiserver has for the first repair of
// addresses and node ports. Here nothing has to be repaired, as each write allocates what it
// needs and follows what is stored: it is done once the range of addresses is stored.
func Allocated(is component.Progress) []apiserver.Check {
	return component.Hooks(is.Booted, "start-service-ip-repair-controllers")
}

func (a *ServiceAllocator) committed(ctx context.Context, change resource.Change) error {
	s, ok := change.Object.(*corev1.Service)
	if !ok {
		return nil
	}
	old, _ := change.Old.(*corev1.Service)
	if change.Deleted {
		old, s = s, nil
	}
	if s != nil {
		a.note(func() { a.take(s) })
	}
	// The Service is stored, whatever becomes of its client.
	if err := a.publish(context.WithoutCancel(ctx), s, old); err != nil {
		return err
	}
	if old == nil {
		return nil
	}
	a.note(func() {
		a.drop(old) // an address is free for others once nothing stands for it any more
		if s != nil {
			a.take(s)
		}
	})
	return nil
}

// note changes what is known of what is in use after a write is committed.
func (a *ServiceAllocator) note(change func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.changes++
	change()
}

// take and drop note what a stored Service holds; the lock is held.
func (a *ServiceAllocator) take(s *corev1.Service) {
	for _, held := range heldBy(s) {
		a.set(held, holder{key: s.Namespace + "/" + s.Name})
	}
}

func (a *ServiceAllocator) drop(s *corev1.Service) {
	for _, held := range heldBy(s) {
		if h := a.used[held]; h.key == s.Namespace+"/"+s.Name {
			a.set(held, holder{})
		}
	}
}

// set notes which Service holds an address or port; none for the zero holder. The lock is held.
func (a *ServiceAllocator) set(held any, h holder) {
	if a.used[held].doubtful {
		a.doubts--
	}
	if h.doubtful {
		a.doubts++
	}
	if h == (holder{}) {
		delete(a.used, held)
	} else {
		a.used[held] = h
	}
}

// heldBy lists the addresses (netip.Addr) and ports (int32) of a Service.
func heldBy(s *corev1.Service) []any {
	var out []any
	for _, ip := range addressesOf(s) {
		out = append(out, ip)
	}
	for _, p := range s.Spec.Ports {
		if p.NodePort != 0 {
			out = append(out, p.NodePort)
		}
	}
	if p := s.Spec.HealthCheckNodePort; p != 0 {
		out = append(out, p)
	}
	return out
}

// forget has what is in use read again: requests that other servers have executed are not
// in it.
func (a *ServiceAllocator) forget() {
	a.note(func() {
		a.ready, a.doubts = false, 0
		clear(a.used)
		clear(a.cidrs)
	})
}

// load reads what is in use, once. The lock is not held while the store is read: if a
// change was noted meanwhile, which the state that was read may lack, it reads again.
func (a *ServiceAllocator) load() error {
	for {
		a.mu.Lock()
		ready, changes := a.ready, a.changes
		a.mu.Unlock()
		if ready {
			return nil
		}
		view := a.store.Latest()
		if loaded, err := a.loadFrom(view, changes); loaded || err != nil {
			return err
		}
	}
}

// loadFrom reads what is in use in a state of the store, unless something was committed
// since there were so many changes.
func (a *ServiceAllocator) loadFrom(view storage.View, changes uint64) (loaded bool, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ready || a.changes != changes {
		return a.ready, nil
	}
	err = errors.Join(loadAll(view, "services", a.take), loadAll(view, ranges.AddressBucket, a.takeAddress), loadAll(view, ranges.Bucket, a.addRanges))
	a.ready = err == nil
	return a.ready, err
}

// Admit implements resource.Admission.
func (a *ServiceAllocator) Admit(ctx context.Context, r *resource.AdmissionRequest) error {
	if r.Subresource != "" {
		return nil
	}
	if old, ok := r.Old.(*corev1.Service); ok {
		r.Finish.Add(func(o resource.Outcome) { a.replaced(old, o) })
	}
	s, ok := r.Object.(*corev1.Service)
	if !ok || r.Operation != resource.Create && r.Operation != resource.Update {
		return nil
	}
	if err := a.decide(ctx); err != nil {
		return err
	}
	if err := a.load(); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	t := &taking{a: a, service: s, key: s.Namespace + "/" + s.Name, dryRun: r.DryRun}
	if t.old, _ = r.Old.(*corev1.Service); t.old != nil {
		keepAllocated(s, t.old)
		alignAddresses(&s.Spec, &t.old.Spec)
	} else if s.Spec.ClusterIP != "" && len(s.Spec.ClusterIPs) == 0 {
		s.Spec.ClusterIPs = []string{s.Spec.ClusterIP}
	}
	if err := t.all(); err != nil {
		return err
	}
	if r.DryRun || len(t.taken) == 0 {
		return nil
	}
	for _, held := range t.taken {
		h, inUse := a.used[held]
		if inUse && !h.doubtful {
			continue // the stored Service has it, for another purpose
		}
		h.key, h.by = t.key, t
		a.set(held, h)
	}
	r.Finish.Add(t.finish)
	return nil
}

// Validate implements resource.Admission.
func (a *ServiceAllocator) Validate(context.Context, *resource.AdmissionRequest) error { return nil }

// Mutates implements resource.Mutator: Services are given what they lack.
func (a *ServiceAllocator) Mutates(r *resource.AdmissionRequest) bool {
	_, isService := r.Object.(*corev1.Service)
	return isService
}
