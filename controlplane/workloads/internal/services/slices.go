// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package services

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/controlplane/workloads/internal/cluster"
	"github.com/steer-dev/steer/storage"
)

const (
	sliceController = step.KubeSystem + "endpointslice-controller"
	// sliceManager is how the controller calls itself in a label.
	sliceManager = "endpointslice-controller.k8s.io"
	// sliceSize is how many endpoints an EndpointSlice holds at most.
	sliceSize = 100
)

// group are the endpoints that have their ports in common, and the EndpointSlices
// that are for those ports.
type group struct {
	ports  []discoveryv1.EndpointPort
	wanted []discoveryv1.Endpoint
	stored []*discoveryv1.EndpointSlice
}

// writeSlices updates the EndpointSlices of every family of addresses.
func (l *look) writeSlices() {
	stored := map[discoveryv1.AddressType][]*discoveryv1.EndpointSlice{}
	for _, o := range l.Index.ChildrenOf(l.self.UID, cluster.EndpointSlices) {
		if o.Deleting || o.Labels[discoveryv1.LabelManagedBy] != sliceManager || o.Labels[discoveryv1.LabelServiceName] != l.s.Name {
			continue
		}
		if slice := cluster.Stored[discoveryv1.EndpointSlice](l.Turn, o.Key); slice != nil {
			stored[slice.AddressType] = append(stored[slice.AddressType], slice)
		}
	}
	for _, family := range l.s.Spec.IPFamilies {
		l.writeFamily(discoveryv1.AddressType(family), stored[discoveryv1.AddressType(family)])
		delete(stored, discoveryv1.AddressType(family))
	}
	for _, family := range slices.Sorted(maps.Keys(stored)) {
		l.removeAll(sliceController, stored[family])
	}
}

// changes are the EndpointSlices to create, update and delete.
type changes struct{ created, updated, deleted []*discoveryv1.EndpointSlice }

func (l *look) writeFamily(family discoveryv1.AddressType, stored []*discoveryv1.EndpointSlice) {
	groups := l.groups(family)
	for _, slice := range stored {
		key := keyOf(slice.Ports)
		if groups[key] == nil {
			groups[key] = &group{ports: slice.Ports}
		}
		groups[key].stored = append(groups[key].stored, slice)
	}
	var all changes
	for _, key := range slices.Sorted(maps.Keys(groups)) {
		l.arrange(groups[key], family, &all)
	}
	if len(stored) == len(all.deleted) && len(all.created) == 0 { // one without endpoints remains
		if len(stored) == 1 && len(stored[0].Ports)+len(stored[0].Endpoints) == 0 && maps.Equal(stored[0].Labels, l.sliceLabels()) {
			return
		}
		all.created = append(all.created, l.newSlice(family, nil))
	}
	for len(all.deleted) > 0 && len(all.created) > 0 { // update in place of deletion and creation
		old, fresh := all.deleted[0], all.created[len(all.created)-1]
		old.Ports, old.Endpoints, old.Labels = fresh.Ports, fresh.Endpoints, fresh.Labels
		all.deleted, all.created = all.deleted[1:], all.created[:len(all.created)-1]
		all.updated = append(all.updated, old)
	}
	for _, slice := range all.created {
		l.Create(sliceController, l.key, cluster.EndpointSlices, slice)
	}
	for _, slice := range all.updated {
		slice.TypeMeta = metav1.TypeMeta{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice"}
		slice.Annotations = l.annotate(slice.Annotations)
		l.update(sliceController, sliceKey(slice), slice)
	}
	l.removeAll(sliceController, all.deleted)
}

func sliceKey(slice *discoveryv1.EndpointSlice) storage.Key {
	return storage.Key{Bucket: cluster.EndpointSlices, Name: slice.Namespace + "/" + slice.Name}
}

func (l *look) removeAll(user string, list []*discoveryv1.EndpointSlice) {
	for _, slice := range list {
		if o := l.Index.Objects[sliceKey(slice)]; o != nil {
			l.Delete(user, l.key, o, metav1.DeleteOptions{})
		}
	}
}

// groups returns the endpoints that there should be, by their ports.
func (l *look) groups(family discoveryv1.AddressType) map[string]*group {
	out := map[string]*group{}
	for _, p := range l.pods {
		ip, err := netip.ParseAddr(p.Address)
		if err != nil || p.Ended() || ip.Is4() != (family == discoveryv1.AddressTypeIPv4) {
			continue
		}
		if l.Index.Node(p.Node) == nil && !l.s.Spec.PublishNotReadyAddresses {
			continue // without its node the Pod may be gone
		}
		ports := l.ports(p)
		key := keyOf(ports)
		if out[key] == nil {
			out[key] = &group{ports: ports}
		}
		out[key].wanted = append(out[key].wanted, l.endpoint(p))
	}
	return out
}

func (l *look) ports(p *cluster.Object) []discoveryv1.EndpointPort {
	out := []discoveryv1.EndpointPort{}
	if l.portless() {
		return out
	}
	for i := range l.s.Spec.Ports {
		port := &l.s.Spec.Ports[i]
		if number := l.portOf(p, port); number != 0 {
			out = append(out, discoveryv1.EndpointPort{Name: &port.Name, Protocol: &port.Protocol, Port: &number, AppProtocol: port.AppProtocol})
		}
	}
	return out
}

// keyOf returns a string that is the same for lists of ports that differ in their order alone.
func keyOf(ports []discoveryv1.EndpointPort) string {
	lines := make([]string, 0, len(ports))
	for _, p := range ports {
		line := ""
		if p.Name != nil {
			line = *p.Name
		}
		if p.Protocol != nil {
			line += "/" + string(*p.Protocol)
		}
		if p.Port != nil {
			line += fmt.Sprint("/", *p.Port)
		}
		if p.AppProtocol != nil {
			line += "/" + *p.AppProtocol
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return strings.Join(lines, " ")
}

func (l *look) endpoint(p *cluster.Object) discoveryv1.Endpoint {
	serving, terminating := p.Ready, p.Deleting
	ready := l.s.Spec.PublishNotReadyAddresses || serving && !terminating
	out := discoveryv1.Endpoint{
		Addresses:  []string{p.Address},
		Conditions: discoveryv1.EndpointConditions{Ready: &ready, Serving: &serving, Terminating: &terminating},
		TargetRef:  reference(p),
	}
	if p.Node != "" {
		out.NodeName = &p.Node
	}
	if node := l.Index.Node(p.Node); node != nil && node.Labels[corev1.LabelTopologyZone] != "" {
		out.Zone = new(node.Labels[corev1.LabelTopologyZone])
	}
	if name := l.hostname(p); name != "" {
		out.Hostname = &name
	}
	if ready {
		out.Hints = l.hints(&out)
	}
	return out
}

// hints are the zone or node that uses an endpoint, if the Service sets trafficDistribution.
// Hints in proportion to the CPUs of zones (topology mode Auto) are not computed.
func (l *look) hints(e *discoveryv1.Endpoint) *discoveryv1.EndpointHints {
	mode, old := l.s.Annotations[corev1.DeprecatedAnnotationTopologyAwareHints]
	if !old {
		mode = l.s.Annotations[corev1.AnnotationTopologyMode]
	}
	if l.s.Spec.TrafficDistribution == nil || mode == "Auto" || mode == "auto" {
		return nil
	}
	var out discoveryv1.EndpointHints
	switch *l.s.Spec.TrafficDistribution {
	case corev1.ServiceTrafficDistributionPreferSameNode:
		if e.NodeName != nil {
			out.ForNodes = []discoveryv1.ForNode{{Name: *e.NodeName}}
		}
	case corev1.ServiceTrafficDistributionPreferClose, corev1.ServiceTrafficDistributionPreferSameZone:
	default:
		return nil
	}
	if e.Zone != nil {
		out.ForZones = []discoveryv1.ForZone{{Name: *e.Zone}}
	}
	if out.ForNodes == nil && out.ForZones == nil {
		return nil
	}
	return &out
}

func (l *look) sliceLabels() map[string]string {
	return l.labels(map[string]string{discoveryv1.LabelServiceName: l.s.Name, discoveryv1.LabelManagedBy: sliceManager})
}

func (l *look) newSlice(family discoveryv1.AddressType, ports []discoveryv1.EndpointPort) *discoveryv1.EndpointSlice {
	out := &discoveryv1.EndpointSlice{
		TypeMeta:    metav1.TypeMeta{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice"},
		ObjectMeta:  l.objectMeta(l.sliceLabels()),
		AddressType: family, Ports: ports, Endpoints: []discoveryv1.Endpoint{},
	}
	out.GenerateName = prefix(l.s.Name)
	out.OwnerReferences = []metav1.OwnerReference{cluster.Reference(corev1.SchemeGroupVersion.WithKind("Service"), l.s.Name, l.s.UID)}
	return out
}

// arrange spreads the endpoints of a group over its EndpointSlices so that as few
// as possible are written: what stays, stays where it is; what is new goes first to those
// that change anyway, then to the one that it fills best.
func (l *look) arrange(g *group, family discoveryv1.AddressType, all *changes) {
	fresh := make(map[types.UID]discoveryv1.Endpoint, len(g.wanted))
	for _, e := range g.wanted {
		fresh[e.TargetRef.UID] = e
	}
	var changed, same []*discoveryv1.EndpointSlice
	for _, slice := range g.stored {
		var kept []discoveryv1.Endpoint
		differs := !maps.Equal(slice.Labels, l.sliceLabels())
		for _, e := range slice.Endpoints {
			wanted, ok := discoveryv1.Endpoint{}, false
			if e.TargetRef != nil {
				wanted, ok = fresh[e.TargetRef.UID]
				delete(fresh, e.TargetRef.UID)
			}
			if ok {
				kept = append(kept, wanted)
			}
			differs = differs || !ok || !equality.Semantic.DeepEqual(e, wanted)
		}
		switch {
		case len(kept) == 0:
			all.deleted = append(all.deleted, slice)
		case differs:
			slice.Endpoints, slice.Labels = kept, l.sliceLabels()
			changed = append(changed, slice)
		default:
			same = append(same, slice)
		}
	}
	rest := slices.DeleteFunc(g.wanted, func(e discoveryv1.Endpoint) bool { _, ok := fresh[e.TargetRef.UID]; return !ok })
	fill := func(slice *discoveryv1.EndpointSlice) {
		n := min(len(rest), sliceSize-len(slice.Endpoints))
		slice.Endpoints, rest = append(slice.Endpoints, rest[:n]...), rest[n:]
	}
	slices.SortStableFunc(changed, func(a, b *discoveryv1.EndpointSlice) int { return cmp.Compare(len(b.Endpoints), len(a.Endpoints)) })
	for _, slice := range changed {
		fill(slice)
	}
	for len(rest) > 0 {
		var into *discoveryv1.EndpointSlice
		for _, slice := range same {
			if n := len(slice.Endpoints); n+len(rest) <= sliceSize && (into == nil || n > len(into.Endpoints)) {
				into = slice
			}
		}
		if into == nil {
			into = l.newSlice(family, g.ports)
			all.created = append(all.created, into)
		} else {
			changed = append(changed, into)
		}
		fill(into)
	}
	all.updated = append(all.updated, changed...)
}
