// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package service

import (
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/steer-dev/steer/controlplane/core/kind"
	"github.com/steer-dev/steer/controlplane/core/valid"
)

// taking is one allocation under way: families, addresses and ports, one after the other.
// Errors of one are reported before the next is looked at, and before all other rules.
// A dry run shows addresses and ports that could not be, as kube-apiserver does.
type taking struct {
	a            *ServiceAllocator
	service, old *corev1.Service // old is nil for a creation
	key          string
	taken        []any
	dryRun       bool
}

func (t *taking) all() error {
	spec := &t.service.Spec
	if !t.prefersAsBefore() {
		if spec.Type != corev1.ServiceTypeExternalName {
			if err := t.families(); err != nil {
				return err
			}
		}
		if err := t.addresses(); err != nil {
			return err
		}
	}
	return t.ports()
}

// invalid refuses the Service if there are errors.
func (t *taking) invalid(errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Service").GroupKind(), t.service.Name, errs)
}

// prefersAsBefore reports whether nothing changes for a Service that takes as many families
// as there are: it keeps those that there were when it was made.
func (t *taking) prefersAsBefore() bool {
	if t.old == nil {
		return false
	}
	now, before := &t.service.Spec, &t.old.Spec
	prefers := func(s *corev1.ServiceSpec) bool {
		return kind.Value(s.IPFamilyPolicy) == corev1.IPFamilyPolicyPreferDualStack
	}
	return now.Type == before.Type && now.Type != corev1.ServiceTypeExternalName && prefers(now) && (before.IPFamilyPolicy == nil || prefers(before)) &&
		now.ClusterIP == before.ClusterIP && slices.Equal(now.ClusterIPs, before.ClusterIPs) && slices.Equal(now.IPFamilies, before.IPFamilies)
}

// families settles which families of addresses the Service has.
func (t *taking) families() error {
	s, own := &t.service.Spec, t.a.families()
	selfless := s.ClusterIP == corev1.ClusterIPNone && len(s.Selector) == 0
	switch {
	case s.IPFamilyPolicy != nil:
	case t.old != nil && t.old.Spec.IPFamilyPolicy != nil:
		s.IPFamilyPolicy = t.old.Spec.IPFamilyPolicy
	case selfless: // what its endpoints will be is up to others: it may have both families
		kind.Fill(&s.IPFamilyPolicy, corev1.IPFamilyPolicyRequireDualStack)
	default:
		kind.Fill(&s.IPFamilyPolicy, corev1.IPFamilyPolicySingleStack)
	}
	var errs field.ErrorList
	root := valid.Root(&errs)
	f := root.Child("spec")
	if checkAddresses(&f, s); len(errs) > 0 {
		return t.invalid(errs)
	}
	t.release(&f)
	single := *s.IPFamilyPolicy == corev1.IPFamilyPolicySingleStack
	if single && len(s.ClusterIPs) == 2 {
		f.Invalid("ipFamilyPolicy", s.IPFamilyPolicy, "must be 'RequireDualStack' or 'PreferDualStack' when multiple cluster IPs are specified")
	}
	if single && len(s.IPFamilies) == 2 {
		f.Invalid("ipFamilyPolicy", s.IPFamilyPolicy, "must be 'RequireDualStack' or 'PreferDualStack' when multiple IP families are specified")
	}
	t.infer(&f)
	if len(errs) > 0 {
		return t.invalid(errs)
	}
	if selfless {
		if len(s.IPFamilies) == 0 {
			s.IPFamilies = own[:1:1]
		}
		if len(s.IPFamilies) < 2 && !single {
			s.IPFamilies = append(s.IPFamilies, other(s.IPFamilies[0]))
		}
		return nil
	}
	if *s.IPFamilyPolicy == corev1.IPFamilyPolicyRequireDualStack && len(own) < 2 {
		f.Invalid("ipFamilyPolicy", s.IPFamilyPolicy, "this cluster is not configured for dual-stack services")
	}
	list := f.Child("ipFamilies")
	for i, family := range s.IPFamilies {
		if at := list.Index(i); !slices.Contains(own, family) {
			at.Invalid(valid.Self, family, "not configured on this cluster")
		}
	}
	if len(errs) > 0 {
		return t.invalid(errs)
	}
	if len(s.IPFamilies) == 0 {
		s.IPFamilies = own[:1:1]
	}
	if len(s.IPFamilies) == 1 && len(own) == 2 && !single {
		s.IPFamilies = append(s.IPFamilies, other(s.IPFamilies[0]))
	}
	return nil
}

// other is the family that there is beside one.
func other(family corev1.IPFamily) corev1.IPFamily {
	if family == corev1.IPv4Protocol {
		return corev1.IPv6Protocol
	}
	return corev1.IPv4Protocol
}

// release lets a Service that is to have one family go without its second, which those
// who have both have to ask for.
func (t *taking) release(f *valid.Field) {
	if t.old == nil {
		return
	}
	now, before := &t.service.Spec, &t.old.Spec
	if *now.IPFamilyPolicy == corev1.IPFamilyPolicySingleStack {
		if len(now.ClusterIPs) > 1 && slices.Equal(now.ClusterIPs, before.ClusterIPs) {
			now.ClusterIPs = now.ClusterIPs[:1]
		}
		if len(now.IPFamilies) > 1 && slices.Equal(now.IPFamilies, before.IPFamilies) {
			now.IPFamilies = now.IPFamilies[:1]
		}
		return
	}
	if len(now.ClusterIPs) == 1 && len(before.ClusterIPs) == 2 && now.ClusterIPs[0] == before.ClusterIPs[0] {
		f.Invalid("ipFamilyPolicy", now.IPFamilyPolicy, "must be 'SingleStack' to release the secondary cluster IP")
	}
	if len(now.IPFamilies) == 1 && len(before.IPFamilies) == 2 && now.IPFamilies[0] == before.IPFamilies[0] {
		f.Invalid("ipFamilyPolicy", now.IPFamilyPolicy, "must be 'SingleStack' to release the secondary IP family")
	}
}

// infer takes families that are not named from addresses.
func (t *taking) infer(f *valid.Field) {
	s, list := &t.service.Spec, f.Child("clusterIPs")
	for i, ip := range s.ClusterIPs {
		if ip == corev1.ClusterIPNone {
			return
		}
		if i < len(s.IPFamilies) {
			continue
		}
		family := corev1.IPv4Protocol
		if isIPv6(ip) {
			family = corev1.IPv6Protocol
		}
		if at := list.Index(i); !t.a.has(family) {
			at.Invalid(valid.Self, s.ClusterIPs, fmt.Sprintf("%s is not configured on this cluster", family))
			continue
		}
		s.IPFamilies = append(s.IPFamilies, family)
	}
}

// free reports whether nothing holds an address or port, but the Service itself, or
// an earlier write of the Service whose outcome is unknown.
func (t *taking) free(held any) bool {
	h, inUse := t.a.used[held]
	switch {
	case slices.Contains(t.taken, held):
		return false
	case !inUse:
		return true
	}
	return h.by == nil && h.key == t.key && (t.old != nil || h.doubtful)
}

// addresses takes those of a Service that is new or was of a type without, and the second
// of one that is to have both families from now on; that of others does not change.
func (t *taking) addresses() error {
	s := &t.service.Spec
	if s.Type == corev1.ServiceTypeExternalName || len(s.ClusterIPs) > 0 && s.ClusterIPs[0] == corev1.ClusterIPNone {
		return nil
	}
	from := 0
	if t.old != nil && t.old.Spec.Type != corev1.ServiceTypeExternalName {
		if len(t.old.Spec.IPFamilies) != 1 || len(s.IPFamilies) != 2 {
			return nil
		}
		from = 1
	}
	asked := slices.Clone(s.ClusterIPs)
	given := slices.Clone(s.ClusterIPs)
	for i := from; i < len(s.IPFamilies); i++ {
		if i >= len(given) {
			given = append(given, "")
		}
		ip, err := t.address(s.IPFamilies[i], given[i], asked)
		if err != nil {
			return err
		}
		given[i] = ip
	}
	s.ClusterIPs = given
	s.ClusterIP = given[0]
	return nil
}

// address takes an address of a family: the wanted one, unless that is empty. The error shows
// all that the Service asked for.
func (t *taking) address(family corev1.IPFamily, wanted string, asked []string) (string, error) {
	if wanted == "" {
		ip, ok := t.nextAddress(family)
		if !ok {
			return "", apierrors.NewInternalError(fmt.Errorf("failed to allocate a serviceIP for Service %q: range is full", t.service.Name))
		}
		return ip.String(), nil
	}
	ip, err := netip.ParseAddr(wanted)
	if err != nil { // such as 010.0.0.1, which is warned of
		return "", apierrors.NewInternalError(fmt.Errorf("failed to parse service IP %q", wanted))
	}
	if why := t.takeAddress(ip); why != "" {
		return "", t.invalid(field.ErrorList{field.Invalid(field.NewPath("spec", "clusterIPs"), asked, fmt.Sprintf("failed to allocate IP %s: %s", ip, why))})
	}
	return wanted, nil
}

// takeAddress says why an address cannot be had, if so. A dry run does not look at who
// has what.
func (t *taking) takeAddress(ip netip.Addr) string {
	switch {
	case t.dryRun && !t.a.offers(ip):
		return fmt.Sprintf("the provided IP (%s) is not in the valid range. The range of valid IPs is %s", ip, t.a.rangeOf(familyOf(ip)))
	case t.dryRun:
		return ""
	case !t.a.offers(ip):
		return "the provided network does not match the current range"
	case !t.free(ip):
		return "provided IP is already allocated"
	}
	t.taken = append(t.taken, ip)
	return ""
}

func (t *taking) nextAddress(family corev1.IPFamily) (netip.Addr, bool) {
	if t.dryRun {
		return t.a.rangeOf(family).Addr(), true
	}
	for _, p := range t.a.ranges(family) {
		first := p.Addr().Next()
		if p == t.a.ips[0] {
			first = first.Next() // that of the API server comes before
		}
		chosen := chosenFrom(p)
		if chosen.Less(first) {
			chosen = first
		}
		ip, ok := t.freeAddress(p, chosen, netip.Addr{})
		if !ok {
			ip, ok = t.freeAddress(p, first, chosen)
		}
		if ok {
			t.taken = append(t.taken, ip)
			return ip, true
		}
	}
	return netip.Addr{}, false
}

// freeAddress returns the first free address of a range from one on, before the end of the
// range or, if valid, before another address.
func (t *taking) freeAddress(p netip.Prefix, from, before netip.Addr) (netip.Addr, bool) {
	for ip := from; ip != before && p.Contains(ip.Next()); ip = ip.Next() {
		if t.free(ip) {
			return ip, true
		}
	}
	return netip.Addr{}, false
}

// chosenFrom is the address of a range from which on the server chooses. Those below, a
// sixteenth of the range, but 16 to 256, are for callers that name one, as long as
// others are free. See KEP-3070.
func chosenFrom(p netip.Prefix) netip.Addr {
	const fewest, most = 16, 256
	bits := p.Addr().BitLen() - p.Bits()
	kept := most
	if bits < 12 {
		kept = max(fewest, 1<<bits/fewest)
	}
	if bits < 5 { // there are not many more
		kept = 0
	}
	ip := p.Addr().Next()
	for range kept {
		ip = ip.Next()
	}
	return ip
}

// ports takes node ports, where the type has any.
func (t *taking) ports() error {
	s := t.service
	if hasNodePorts(&s.Spec) {
		take := t.newPorts
		if t.old != nil {
			take = t.changedPorts
		}
		if err := take(); err != nil {
			return err
		}
	}
	if !wantsHealthPort(s) || t.old != nil && wantsHealthPort(t.old) {
		return nil
	}
	port := &s.Spec.HealthCheckNodePort
	if *port == 0 {
		next, err := t.nextPort()
		if err != nil {
			return apierrors.NewInternalError(fmt.Errorf("failed to allocate a HealthCheck NodePort %v: %w", next, err))
		}
		*port = next
	} else if err := t.takePort(*port); err != nil {
		return apierrors.NewInternalError(fmt.Errorf("failed to allocate requested HealthCheck NodePort %v: %w", *port, err))
	}
	return nil
}

// newPorts gives one node port to all ports of the same number.
func (t *taking) newPorts() error {
	list, shared := t.service.Spec.Ports, map[int32]int32{}
	for i := range list {
		p := &list[i]
		if p.NodePort == 0 && !wantsNodePorts(t.service) {
			continue
		}
		want, known := shared[p.Port]
		switch {
		case known && (p.NodePort == 0 || p.NodePort == want):
			p.NodePort = want
			continue
		case known:
			want = p.NodePort
		default:
			if at := slices.IndexFunc(list, func(o corev1.ServicePort) bool { return o.Port == p.Port && o.NodePort != 0 }); at >= 0 {
				want = list[at].NodePort
			}
		}
		if want == 0 {
			next, err := t.nextPort()
			if err != nil {
				return apierrors.NewInternalError(fmt.Errorf("failed to allocate a nodePort: %w", err))
			}
			want = next
		} else if err := t.takePort(want); err != nil {
			return t.invalidPort(i, want, err)
		}
		if p.NodePort = want; !known {
			shared[p.Port] = want
		}
	}
	return nil
}

// changedPorts takes the node ports that the Service does not have yet.
func (t *taking) changedPorts() error {
	had, seen := map[int32]bool{}, map[string]bool{}
	for _, p := range t.old.Spec.Ports {
		had[p.NodePort] = true
	}
	list := t.service.Spec.Ports
	for i := range list {
		p := &list[i]
		switch {
		case p.NodePort == 0 && !wantsNodePorts(t.service):
			continue
		case p.NodePort == 0:
			next, err := t.nextPort()
			if err != nil {
				return apierrors.NewInternalError(fmt.Errorf("failed to allocate a nodePort: %w", err))
			}
			p.NodePort = next
		case !had[p.NodePort]:
			if err := t.takePort(p.NodePort); err != nil {
				return t.invalidPort(i, p.NodePort, err)
			}
			had[p.NodePort] = true
		}
		key := fmt.Sprintf("{%s %d}", p.Protocol, p.NodePort)
		if seen[key] {
			return fmt.Errorf("duplicate nodePort: %s", key)
		}
		seen[key] = true
	}
	return nil
}

func (t *taking) invalidPort(i int, port int32, err error) error {
	return t.invalid(field.ErrorList{field.Invalid(field.NewPath("spec", "ports").Index(i).Child("nodePort"), port, err.Error())})
}

// portError says why a node port cannot be had.
type portError string

func (e portError) Error() string { return string(e) }

const (
	errPortTaken portError = "provided port is already allocated"
	errPortsFull portError = "range is full"
)

func (t *taking) takePort(port int32) error {
	_, inUse := t.a.used[port]
	switch {
	case t.dryRun && (inUse || slices.Contains(t.taken, any(port))):
		return errPortTaken
	case t.dryRun:
	case port < firstNodePort || port > lastNodePort:
		return portError(fmt.Sprintf("provided port is not in the valid range. The range of valid ports is %d-%d", firstNodePort, lastNodePort))
	case !t.free(port):
		return errPortTaken
	}
	t.taken = append(t.taken, port)
	return nil
}

func (t *taking) nextPort() (int32, error) {
	if t.dryRun {
		last := int32(0)
		for _, held := range t.taken {
			if port, ok := held.(int32); ok {
				last = max(last, port)
			}
		}
		if last == 0 {
			last = lastNodePort + 1
		}
		t.taken = append(t.taken, last+1)
		return last + 1, nil
	}
	const ports = lastNodePort - firstNodePort + 1
	for i := range int32(ports) {
		port := firstNodePort + (i+staticNodePorts)%ports
		if t.free(port) {
			t.taken = append(t.taken, port)
			return port, nil
		}
	}
	return 0, errPortsFull
}
