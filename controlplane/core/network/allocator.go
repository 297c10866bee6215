// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package network

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/core/kind"
	"github.com/steer-dev/steer/controlplane/core/valid"
	"github.com/steer-dev/steer/storage"
)

// ServiceAllocator gives Services their cluster IP and node ports. It is an
// admission, to be asked before any that wants to see them, and safe for
// concurrent use.
//
// What is in use, and which ranges there are, it reads from the store, once, and
// follows through the resources that [ServiceAllocator.Services] returns. An
// IPAddress stands for each address of a Service when its write returns. An address that was given
// to a Service is not given to another for a minute, stored or not: by then the
// write has happened or will not happen any more.
type ServiceAllocator struct {
	store AllocatorStore
	ips   netip.Prefix
	newID func() types.UID

	mu    sync.Mutex
	ready bool
	// more are the ranges of ServiceCIDRs that can be used, by their names.
	more map[string][]netip.Prefix
	// used are the addresses and node ports in use, by Service.
	used map[any]holder
}

// holder is who holds an address or port: a stored Service, or since when one is
// being written.
type holder struct {
	key   string
	since time.Time // zero: stored
}

// The range of node ports, and for how long one that is given out waits for its
// Service to be stored.
const (
	firstNodePort, lastNodePort = 30000, 32767
	allocationPatience          = time.Minute
)

// AllocatorStore is what a [ServiceAllocator] needs of a store.
type AllocatorStore interface {
	storage.Viewer
	storage.Committer
}

// NewServiceAllocator returns the allocator for the Services in a store. ips is
// the range of cluster IPs, of which the first is kept for the API server; the
// zero Prefix means 10.0.0.0/24. newID makes the UIDs of IPAddresses.
func NewServiceAllocator(store AllocatorStore, ips netip.Prefix, newID func() types.UID) *ServiceAllocator {
	if !ips.IsValid() {
		ips = netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, 0, 0}), 24)
	}
	return &ServiceAllocator{store: store, ips: ips.Masked(), newID: newID, used: map[any]holder{}, more: map[string][]netip.Prefix{}}
}

// Range returns the range of cluster IPs.
func (a *ServiceAllocator) Range() netip.Prefix { return a.ips }

// Services returns the resources with those of Services, IPAddresses and
// ServiceCIDRs changed such that the allocator learns of every change. The others
// are as they were.
func (a *ServiceAllocator) Services(resources []*resource.Resource) []*resource.Resource {
	out := slices.Clone(resources)
	for i, r := range out {
		learn := map[string]func(context.Context, resource.Change) error{
			"services": a.committed, "ipaddresses": a.addressesCommitted, "servicecidrs": a.rangesCommitted,
		}[r.Plural]
		if learn != nil && (r.Group == "" || r.Group == networkingv1.GroupName) {
			watched := *r
			watched.Committed = learn
			out[i] = &watched
		}
	}
	return out
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
	// An address is free for others once nothing stands for it any more.
	if err := a.publish(ctx, s, old); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if old != nil {
		a.drop(old)
	}
	if s != nil {
		a.drop(s)
		a.take(s)
	}
	return nil
}

// take and drop note what a stored Service holds; the lock is held.
func (a *ServiceAllocator) take(s *corev1.Service) {
	for _, held := range heldBy(s) {
		a.used[held] = holder{key: s.Namespace + "/" + s.Name}
	}
}

func (a *ServiceAllocator) drop(s *corev1.Service) {
	for _, held := range heldBy(s) {
		if a.used[held].key == s.Namespace+"/"+s.Name {
			delete(a.used, held)
		}
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

// load reads what is in use; the lock is held.
func (a *ServiceAllocator) load(ctx context.Context) error {
	if a.ready {
		return nil
	}
	view, err := a.store.View(ctx, 0)
	if err != nil {
		return fmt.Errorf("read services: %w", err)
	}
	err = errors.Join(loadAll(view, "services", a.take), loadAll(view, addressBucket, a.takeAddress), loadAll(view, rangeBucket, a.addRanges))
	a.ready = err == nil
	return err
}

// Admit implements resource.Admission.
func (a *ServiceAllocator) Admit(ctx context.Context, r *resource.AdmissionRequest) error {
	s, ok := r.Object.(*corev1.Service)
	if !ok || r.Subresource != "" || r.Operation != resource.Create && r.Operation != resource.Update {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.load(ctx); err != nil {
		return err
	}
	old, _ := r.Old.(*corev1.Service)
	if old != nil {
		keepAllocated(s, old)
	}
	if s.Spec.ClusterIP != "" && len(s.Spec.ClusterIPs) == 0 && old == nil {
		s.Spec.ClusterIPs = []string{s.Spec.ClusterIP}
	}
	var errs field.ErrorList
	f := valid.Root(&errs)
	spec := f.Child("spec")
	if checkAddresses(&spec, &s.Spec); len(errs) > 0 { // which is said before all else
		return apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Service").GroupKind(), s.Name, errs)
	}
	t := taking{a: a, key: s.Namespace + "/" + s.Name, dryRun: r.DryRun}
	if old == nil || old.Spec.Type == corev1.ServiceTypeExternalName || s.Spec.Type == corev1.ServiceTypeExternalName {
		errs = t.addresses(s) // those of a Service that has some do not change
	}
	errs = append(errs, t.ports(s)...)
	if len(errs) > 0 {
		return apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Service").GroupKind(), s.Name, errs)
	}
	if !r.DryRun {
		for _, held := range t.taken {
			a.used[held] = holder{key: t.key, since: time.Now()}
		}
	}
	return nil
}

// Validate implements resource.Admission.
func (a *ServiceAllocator) Validate(context.Context, *resource.AdmissionRequest) error { return nil }

// Mutates implements resource.Mutator: Services are given what they lack.
func (a *ServiceAllocator) Mutates(r *resource.AdmissionRequest) bool {
	_, isService := r.Object.(*corev1.Service)
	return isService
}

// keepAllocated gives an update that says nothing about them the addresses and
// ports that its Service has.
func keepAllocated(s, old *corev1.Service) {
	dropUnneeded(&s.Spec, &old.Spec)
	hadIP := old.Spec.Type != corev1.ServiceTypeExternalName
	alignAddresses(&s.Spec, &old.Spec)
	if hadIP && s.Spec.Type != corev1.ServiceTypeExternalName {
		if s.Spec.ClusterIP == "" && len(s.Spec.ClusterIPs) == 0 {
			s.Spec.ClusterIP, s.Spec.ClusterIPs = old.Spec.ClusterIP, old.Spec.ClusterIPs
		}
		if len(s.Spec.ClusterIPs) == 0 && s.Spec.ClusterIP == old.Spec.ClusterIP {
			s.Spec.ClusterIPs = old.Spec.ClusterIPs
		}
		if len(s.Spec.IPFamilies) == 0 {
			s.Spec.IPFamilies = old.Spec.IPFamilies
		}
		if s.Spec.IPFamilyPolicy == nil {
			s.Spec.IPFamilyPolicy = old.Spec.IPFamilyPolicy
		}
	}
	if !wantsNodePorts(s) || !wantsNodePorts(old) {
		return
	}
	for i := range s.Spec.Ports {
		for _, p := range old.Spec.Ports {
			if s.Spec.Ports[i].NodePort == 0 && p.Port == s.Spec.Ports[i].Port && p.Protocol == s.Spec.Ports[i].Protocol {
				s.Spec.Ports[i].NodePort = p.NodePort
			}
		}
	}
	if s.Spec.HealthCheckNodePort == 0 && wantsHealthPort(s) {
		s.Spec.HealthCheckNodePort = old.Spec.HealthCheckNodePort
	}
}

// dropUnneeded takes from an update what the old type had and the new one has no
// use for, unless it is the update that brings it.
func dropUnneeded(now, before *corev1.ServiceSpec) {
	of := func(s *corev1.ServiceSpec) *corev1.Service { return &corev1.Service{Spec: *s} }
	if wantsNodePorts(of(before)) && !wantsNodePorts(of(now)) {
		was := map[int32]bool{}
		for _, p := range before.Ports {
			was[p.NodePort] = true
		}
		same := !slices.ContainsFunc(now.Ports, func(p corev1.ServicePort) bool { return !was[p.NodePort] })
		for i := range now.Ports {
			if same && !isBalancer(now) {
				now.Ports[i].NodePort = 0
			}
		}
	}
	if wantsHealthPort(of(before)) && !wantsHealthPort(of(now)) && now.HealthCheckNodePort == before.HealthCheckNodePort {
		now.HealthCheckNodePort = 0
	}
	if isAccessible(before) && !isAccessible(now) && now.ExternalTrafficPolicy == before.ExternalTrafficPolicy {
		now.ExternalTrafficPolicy = ""
	}
	if isBalancer(before) && !isBalancer(now) {
		if equality.Semantic.DeepEqual(now.AllocateLoadBalancerNodePorts, before.AllocateLoadBalancerNodePorts) {
			now.AllocateLoadBalancerNodePorts = nil
		}
		if equality.Semantic.DeepEqual(now.LoadBalancerClass, before.LoadBalancerClass) {
			now.LoadBalancerClass = nil
		}
	}
	if now.Type == corev1.ServiceTypeExternalName && equality.Semantic.DeepEqual(now.InternalTrafficPolicy, before.InternalTrafficPolicy) {
		now.InternalTrafficPolicy = nil
	}
	if before.Type == corev1.ServiceTypeExternalName || now.Type != corev1.ServiceTypeExternalName {
		return
	}
	if now.ClusterIP == before.ClusterIP {
		now.ClusterIP = ""
	}
	if slices.Equal(now.ClusterIPs, before.ClusterIPs) {
		now.ClusterIPs = nil
	}
	if slices.Equal(now.IPFamilies, before.IPFamilies) {
		now.IPFamilies = nil
	}
	if equality.Semantic.DeepEqual(now.IPFamilyPolicy, before.IPFamilyPolicy) {
		now.IPFamilyPolicy = nil
	}
}

// alignAddresses lets a client that knows only one of clusterIP and clusterIPs
// change the other with it.
func alignAddresses(now, before *corev1.ServiceSpec) {
	same := slices.Equal(now.ClusterIPs, before.ClusterIPs)
	switch {
	case before.ClusterIP != "" && now.ClusterIP == "" && same:
		now.ClusterIPs = nil
	case len(before.ClusterIPs) > 0 && len(now.ClusterIPs) == 0 && now.ClusterIP == before.ClusterIP:
		now.ClusterIP = ""
	case now.ClusterIP != before.ClusterIP && same:
		now.ClusterIPs = []string{now.ClusterIP}
	}
}

func wantsNodePorts(s *corev1.Service) bool {
	return s.Spec.Type == corev1.ServiceTypeNodePort ||
		s.Spec.Type == corev1.ServiceTypeLoadBalancer && (s.Spec.AllocateLoadBalancerNodePorts == nil || *s.Spec.AllocateLoadBalancerNodePorts)
}

func wantsHealthPort(s *corev1.Service) bool {
	return s.Spec.Type == corev1.ServiceTypeLoadBalancer && s.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal
}

// taking is one allocation under way.
type taking struct {
	a     *ServiceAllocator
	key   string
	taken []any
	// dryRun takes any port: the real server does not look at the range then.
	dryRun bool
}

// free tells whether nobody else holds an address or port.
func (t *taking) free(held any) bool {
	h, inUse := t.a.used[held]
	if slices.Contains(t.taken, held) {
		return false
	}
	return !inUse || h.key == t.key || !h.since.IsZero() && time.Since(h.since) > allocationPatience
}

func (t *taking) addresses(s *corev1.Service) field.ErrorList {
	spec := &s.Spec
	if spec.ClusterIP != "" && len(spec.ClusterIPs) == 0 {
		spec.ClusterIPs = []string{spec.ClusterIP}
	}
	if spec.Type == corev1.ServiceTypeExternalName {
		return nil
	}
	own, other := corev1.IPv4Protocol, corev1.IPv6Protocol
	if t.a.ips.Addr().Is6() {
		own, other = other, own
	}
	if spec.ClusterIP == corev1.ClusterIPNone && len(spec.Selector) == 0 && spec.IPFamilyPolicy == nil {
		// What its endpoints will be is up to others: it may have both families.
		kind.Fill(&spec.IPFamilyPolicy, corev1.IPFamilyPolicyRequireDualStack)
		switch {
		case len(spec.IPFamilies) == 0:
			spec.IPFamilies = []corev1.IPFamily{own, other}
		case len(spec.IPFamilies) == 1 && spec.IPFamilies[0] == own:
			spec.IPFamilies = append(spec.IPFamilies, other)
		case len(spec.IPFamilies) == 1:
			spec.IPFamilies = append(spec.IPFamilies, own)
		}
	}
	if len(spec.IPFamilies) == 0 {
		spec.IPFamilies = []corev1.IPFamily{own}
	}
	kind.Fill(&spec.IPFamilyPolicy, corev1.IPFamilyPolicySingleStack)
	if spec.ClusterIP == corev1.ClusterIPNone {
		return nil
	}
	path := field.NewPath("spec", "clusterIPs")
	if spec.ClusterIP != "" {
		ip, err := netip.ParseAddr(spec.ClusterIP)
		switch {
		case err != nil: // validation says what is wrong
			return nil
		case !t.a.offers(ip):
			why := "the provided network does not match the current range"
			if t.dryRun {
				why = fmt.Sprintf("the provided IP (%s) is not in the valid range. The range of valid IPs is %s", ip, t.a.ips)
			}
			return field.ErrorList{field.Invalid(path, spec.ClusterIPs, fmt.Sprintf("failed to allocate IP %s: %s", ip, why))}
		case !t.free(ip):
			return field.ErrorList{field.Invalid(path, spec.ClusterIPs, fmt.Sprintf("failed to allocate IP %s: provided IP is already allocated", ip))}
		}
		t.taken = append(t.taken, ip)
		return nil
	}
	if t.dryRun { // the real server shows no address that could be one
		spec.ClusterIP, spec.ClusterIPs = t.a.ips.Addr().String(), []string{t.a.ips.Addr().String()}
		return nil
	}
	for _, p := range t.a.ranges() {
		first := p.Addr().Next()
		if p == t.a.ips {
			first = first.Next() // that of the API server comes before
		}
		for ip := first; p.Contains(ip.Next()); ip = ip.Next() {
			if t.free(ip) {
				t.taken = append(t.taken, ip)
				spec.ClusterIP, spec.ClusterIPs = ip.String(), []string{ip.String()}
				return nil
			}
		}
	}
	return field.ErrorList{field.InternalError(path, fmt.Errorf("failed to allocate a serviceIP: range is full"))}
}

func (t *taking) ports(s *corev1.Service) field.ErrorList {
	var errs field.ErrorList
	take := func(path *field.Path, port *int32, want bool) {
		switch {
		case *port != 0 && slices.Contains(t.taken, any(*port)): // twice in one Service, which its rules are about
		case *port != 0 && t.dryRun && (*port < firstNodePort || *port > lastNodePort):
		case *port != 0 && (*port < firstNodePort || *port > lastNodePort):
			errs = append(errs, field.Invalid(path, *port, fmt.Sprintf(
				"provided port is not in the valid range. The range of valid ports is %d-%d", firstNodePort, lastNodePort)))
		case *port != 0 && !t.free(*port):
			errs = append(errs, field.Invalid(path, *port, "provided port is already allocated"))
		case *port != 0:
			t.taken = append(t.taken, *port)
		case want:
			for p := int32(firstNodePort); p <= lastNodePort; p++ {
				if t.free(p) {
					t.taken, *port = append(t.taken, p), p
					return
				}
			}
			errs = append(errs, field.InternalError(path, fmt.Errorf("failed to allocate a nodePort: range is full")))
		}
	}
	for i := range s.Spec.Ports {
		take(field.NewPath("spec", "ports").Index(i).Child("nodePort"), &s.Spec.Ports[i].NodePort, wantsNodePorts(s))
	}
	take(field.NewPath("spec", "healthCheckNodePort"), &s.Spec.HealthCheckNodePort, wantsHealthPort(s))
	return errs
}
