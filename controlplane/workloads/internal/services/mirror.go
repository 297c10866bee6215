// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package services

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/controlplane/workloads/internal/cluster"
	"github.com/steer-dev/steer/storage"
)

const (
	mirrorController = step.KubeSystem + "endpointslicemirroring-controller"
	// mirrorManager is how the controller calls itself in a label.
	mirrorManager = "endpointslicemirroring-controller.k8s.io"
	// mostMirrored is how many addresses of a subset are mirrored at most.
	mostMirrored = 1000
	// leaderAnnotation is on Endpoints that were a lock once, and nothing else.
	leaderAnnotation = "control-plane.alpha.kubernetes.io/leader"
)

// mirror copies the Endpoints that a user writes for a Service without a selector to
// EndpointSlices.
func (l *look) mirror() {
	endpoints := cluster.Stored[corev1.Endpoints](l.Turn, storage.Key{Bucket: cluster.Endpoints, Name: l.key.Name})
	if endpoints == nil {
		return // the copies are garbage collected with their owner
	}
	groups, skipped := map[string]*group{}, 0
	if mirrored(endpoints) {
		groups, skipped = mirroredGroups(endpoints.Subsets)
	}
	for _, slice := range l.mirrors(endpoints) {
		key := string(slice.AddressType) + " " + keyOf(slice.Ports)
		if groups[key] == nil {
			groups[key] = &group{ports: slice.Ports}
		}
		groups[key].stored = append(groups[key].stored, slice)
	}
	var all changes
	for _, key := range slices.Sorted(maps.Keys(groups)) {
		g, family := groups[key], discoveryv1.AddressType(strings.Fields(key)[0])
		if len(g.wanted) == 0 {
			all.deleted = append(all.deleted, g.stored...)
			continue
		}
		fresh := newMirror(endpoints, family, g)
		if len(g.stored) == 0 {
			all.created = append(all.created, fresh)
			continue
		}
		first := g.stored[0]
		all.deleted = append(all.deleted, g.stored[1:]...)
		if !sameMirror(first, fresh) {
			fresh.Name, fresh.GenerateName = first.Name, ""
			all.updated = append(all.updated, fresh)
		}
	}
	if l.writeMirrors(all, endpoints.DeletionTimestamp != nil) && skipped > 0 {
		l.Note(cluster.Note{
			User: mirrorController, About: storage.Key{Bucket: cluster.Endpoints, Name: l.key.Name}, UID: endpoints.UID, Warning: true, Reason: "TooManyAddressesToMirror",
			Message: fmt.Sprintf("A max of %d addresses can be mirrored to EndpointSlices per Endpoints subset. %d addresses were skipped", mostMirrored, skipped),
		}, l.Now)
	}
}

// writeMirrors requests the changes, and reports whether there are any. An EndpointSlice that would be
// deleted is updated to one that would be created, if both have the same family.
func (l *look) writeMirrors(all changes, deleting bool) bool {
	all.created = slices.DeleteFunc(all.created, func(fresh *discoveryv1.EndpointSlice) bool {
		i := slices.IndexFunc(all.deleted, func(old *discoveryv1.EndpointSlice) bool { return old.AddressType == fresh.AddressType })
		if i < 0 {
			return deleting
		}
		fresh.Name = all.deleted[i].Name
		all.updated, all.deleted = append(all.updated, fresh), slices.Delete(all.deleted, i, i+1)
		return true
	})
	for _, slice := range all.created {
		l.Create(mirrorController, l.key, cluster.EndpointSlices, slice)
	}
	for _, slice := range all.updated {
		l.update(mirrorController, sliceKey(slice), slice)
	}
	l.removeAll(mirrorController, all.deleted)
	return len(all.created)+len(all.updated)+len(all.deleted) > 0
}

// mirrors are the EndpointSlices of the controller.
func (l *look) mirrors(endpoints *corev1.Endpoints) []*discoveryv1.EndpointSlice { // clients still write it
	var out []*discoveryv1.EndpointSlice
	for _, o := range l.Index.ChildrenOf(endpoints.UID, cluster.EndpointSlices) {
		if o.Deleting || o.Labels[discoveryv1.LabelManagedBy] != mirrorManager || o.Labels[discoveryv1.LabelServiceName] != endpoints.Name {
			continue
		}
		if slice := cluster.Stored[discoveryv1.EndpointSlice](l.Turn, o.Key); slice != nil {
			out = append(out, slice)
		}
	}
	return out
}

// mirrored reports whether Endpoints are to be mirrored.
func mirrored(endpoints *corev1.Endpoints) bool {
	skip, err := strconv.ParseBool(endpoints.Labels[discoveryv1.LabelSkipMirror])
	_, locks := endpoints.Annotations[leaderAnnotation]
	return !(skip && err == nil) && !locks
}

// seat is an address of Endpoints with its readiness.
type seat struct {
	corev1.EndpointAddress
	ready bool
}

// mirroredGroups returns the endpoints of subsets by family and ports: ports that are found at
// the same addresses are together, as are the addresses of the same ports. An address that is
// not ready in one subset is not ready.
func mirroredGroups(subsets []corev1.EndpointSubset) (groups map[string]*group, skipped int) { //nolint:staticcheck // as above
	type place struct {
		port  *discoveryv1.EndpointPort // nil: none
		seats map[string]seat
	}
	places := map[string]*place{}
	for _, s := range subsets {
		ports := make([]*discoveryv1.EndpointPort, 0, len(s.Ports))
		for _, p := range s.Ports {
			ports = append(ports, &discoveryv1.EndpointPort{Name: &p.Name, Port: &p.Port, Protocol: &p.Protocol, AppProtocol: p.AppProtocol})
		}
		if len(ports) == 0 {
			ports = append(ports, nil)
		}
		for _, port := range ports {
			key := ""
			if port != nil {
				key = keyOf([]discoveryv1.EndpointPort{*port})
			}
			if places[key] == nil {
				places[key] = &place{port: port, seats: map[string]seat{}}
			}
			for _, a := range s.Addresses {
				if _, known := places[key].seats[seatName(a)]; !known {
					places[key].seats[seatName(a)] = seat{a, true}
				}
			}
			for _, a := range s.NotReadyAddresses {
				places[key].seats[seatName(a)] = seat{a, false}
			}
		}
	}
	together, bySeats := map[string][]discoveryv1.EndpointPort{}, map[string]map[string]seat{}
	for _, key := range slices.Sorted(maps.Keys(places)) {
		p, names := places[key], ""
		for _, name := range slices.Sorted(maps.Keys(p.seats)) {
			names += fmt.Sprintln(name, p.seats[name].ready)
		}
		if bySeats[names] = p.seats; p.port != nil {
			together[names] = append(together[names], *p.port)
		}
	}
	groups = map[string]*group{}
	for _, names := range slices.Sorted(maps.Keys(bySeats)) {
		skipped += seatAll(groups, together[names], bySeats[names])
	}
	return groups, skipped
}

// seatAll makes endpoints of addresses, those that are ready first, and returns how many are above
// the limit.
func seatAll(groups map[string]*group, ports []discoveryv1.EndpointPort, seats map[string]seat) int {
	names := slices.SortedFunc(maps.Keys(seats), func(a, b string) int {
		if seats[a].ready != seats[b].ready {
			return map[bool]int{true: -1, false: 1}[seats[a].ready]
		}
		return cmp.Compare(a, b)
	})
	for _, name := range names[:min(len(names), mostMirrored)] {
		a := seats[name]
		family := discoveryv1.AddressTypeIPv4
		if ip, err := netip.ParseAddr(a.IP); err == nil && ip.Is6() && !ip.Is4In6() {
			family = discoveryv1.AddressTypeIPv6
		}
		endpoint := discoveryv1.Endpoint{
			Addresses: []string{a.IP}, Conditions: discoveryv1.EndpointConditions{Ready: &a.ready}, TargetRef: a.TargetRef, NodeName: a.NodeName,
		}
		if a.Hostname != "" {
			endpoint.Hostname = &a.Hostname
		}
		key := string(family) + " " + keyOf(ports)
		if groups[key] == nil {
			groups[key] = &group{ports: ports}
		}
		groups[key].wanted = append(groups[key].wanted, endpoint)
	}
	return max(0, len(names)-mostMirrored)
}

// seatName tells addresses apart.
func seatName(a corev1.EndpointAddress) string {
	if a.TargetRef == nil {
		return a.IP
	}
	return a.IP + " " + string(a.TargetRef.UID)
}

// newMirror is the EndpointSlice of a group.
func newMirror(endpoints *corev1.Endpoints, family discoveryv1.AddressType, g *group) *discoveryv1.EndpointSlice {
	out := &discoveryv1.EndpointSlice{
		TypeMeta:    metav1.TypeMeta{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice"},
		AddressType: family, Ports: g.ports, Endpoints: g.wanted,
	}
	out.Namespace, out.GenerateName = endpoints.Namespace, prefix(endpoints.Name)
	out.OwnerReferences = []metav1.OwnerReference{cluster.Reference(corev1.SchemeGroupVersion.WithKind("Endpoints"), endpoints.Name, endpoints.UID)}
	out.Labels = cluster.With(cluster.With(endpoints.Labels, discoveryv1.LabelServiceName, endpoints.Name), discoveryv1.LabelManagedBy, mirrorManager)
	out.Annotations = maps.Clone(endpoints.Annotations)
	delete(out.Annotations, corev1.EndpointsLastChangeTriggerTime)
	delete(out.Annotations, corev1.LastAppliedConfigAnnotation)
	return out
}

// sameMirror reports whether an EndpointSlice has the wanted content, in any order.
func sameMirror(is, should *discoveryv1.EndpointSlice) bool {
	sorted := func(list []discoveryv1.Endpoint) []discoveryv1.Endpoint {
		return slices.SortedFunc(slices.Values(list), func(a, b discoveryv1.Endpoint) int { return slices.Compare(a.Addresses, b.Addresses) })
	}
	return maps.Equal(is.Labels, should.Labels) && maps.Equal(is.Annotations, should.Annotations) &&
		equality.Semantic.DeepEqual(sorted(is.Endpoints), sorted(should.Endpoints))
}
