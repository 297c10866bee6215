// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package services

import (
	"maps"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/controlplane/workloads/internal/cluster"
	"github.com/steer-dev/steer/storage"
)

const (
	endpointController = step.KubeSystem + "endpoint-controller"
	// managedEndpoints is the label of the Endpoints that the controller writes.
	managedEndpoints = "endpoints.kubernetes.io/managed-by"
	// mostAddresses is how many addresses Endpoints hold at most.
	mostAddresses = 1000
)

// writeEndpoints updates the Endpoints of the Service.
func (l *look) writeEndpoints() {
	key := storage.Key{Bucket: cluster.Endpoints, Name: l.key.Name}
	stored := cluster.Stored[corev1.Endpoints](l.Turn, key)
	if stored != nil && len(l.Index.Children[stored.UID]) > 0 { // the Service had no selector
		l.removeAll(mirrorController, l.mirrors(stored))
	}
	subsets, truncated := l.subsets()
	labels := l.labels(map[string]string{managedEndpoints: "endpoint-controller"})
	if stored != nil && maps.Equal(stored.Labels, labels) && equality.Semantic.DeepEqual(stored.Subsets, subsets) {
		return
	}
	fresh := &corev1.Endpoints{}
	if stored != nil {
		fresh = stored
		fresh.Labels, fresh.Annotations = labels, l.annotate(stored.Annotations)
	} else {
		fresh.ObjectMeta = l.objectMeta(labels)
		fresh.Name = l.s.Name
	}
	fresh.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Endpoints"}
	fresh.Subsets = subsets
	if delete(fresh.Annotations, corev1.EndpointsOverCapacity); truncated {
		fresh.Annotations[corev1.EndpointsOverCapacity] = "truncated"
	}
	if stored != nil {
		l.update(endpointController, key, fresh)
		return
	}
	l.Create(endpointController, l.key, cluster.Endpoints, fresh)
}

// subsets groups ports that are found at the same Pods.
func (l *look) subsets() (out []corev1.EndpointSubset, truncated bool) { //nolint:staticcheck // clients still read it
	type place struct {
		port corev1.EndpointPort
		pods []*cluster.Object
	}
	var places []*place
	index := map[string]*place{}
	n := 0
	for _, p := range l.pods {
		ip, err := netip.ParseAddr(p.Address)
		isPrimary := len(l.s.Spec.IPFamilies) == 0 || ip.Is4() == (l.s.Spec.IPFamilies[0] == corev1.IPv4Protocol)
		if err != nil || p.Ended() || !isPrimary || p.Deleting && !l.s.Spec.PublishNotReadyAddresses {
			continue
		}
		if n++; n > mostAddresses {
			truncated = true
			break
		}
		ports := l.ports(p)
		if l.portless() {
			ports = []discoveryv1.EndpointPort{{Name: new(""), Port: new(int32(0)), Protocol: new(corev1.Protocol(""))}}
		}
		for _, port := range ports {
			key := keyOf([]discoveryv1.EndpointPort{port})
			if index[key] == nil {
				index[key] = &place{port: corev1.EndpointPort{Name: *port.Name, Port: *port.Port, Protocol: *port.Protocol, AppProtocol: port.AppProtocol}}
				places = append(places, index[key])
			}
			index[key].pods = append(index[key].pods, p)
		}
	}
	for len(places) > 0 {
		first := places[0]
		var subset corev1.EndpointSubset //nolint:staticcheck // as above
		places = slices.DeleteFunc(places, func(other *place) bool {
			together := slices.Equal(first.pods, other.pods)
			if together && other.port.Port != 0 {
				subset.Ports = append(subset.Ports, other.port)
			}
			return together
		})
		for _, p := range first.pods {
			if p.Ready || l.s.Spec.PublishNotReadyAddresses {
				subset.Addresses = append(subset.Addresses, l.address(p))
			} else {
				subset.NotReadyAddresses = append(subset.NotReadyAddresses, l.address(p))
			}
		}
		out = append(out, subset)
	}
	return out, truncated
}

func (l *look) address(p *cluster.Object) corev1.EndpointAddress {
	out := corev1.EndpointAddress{IP: p.Address, Hostname: l.hostname(p), TargetRef: reference(p)}
	if p.Node != "" {
		out.NodeName = &p.Node
	}
	return out
}
