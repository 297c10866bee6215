// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package services writes the EndpointSlices and the Endpoints of Services from their
// Pods, copies the Endpoints of Services without a selector to EndpointSlices, and gives
// Services of type LoadBalancer an address.
package services

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/controlplane/workloads/internal/cluster"
	"github.com/steer-dev/steer/storage"
)

// Controllers are those of EndpointSlices, Endpoints, mirrored EndpointSlices and load balancers.
type Controllers struct {
	// seen is, for each Service, when it and its Pods had changed as of the last
	// look at it.
	seen     map[storage.Key]moments
	balancer balancer
}

// New returns controllers that have seen nothing. Load balancers get addresses of a range; of the
// zero one, none.
func New(balancers netip.Prefix) *Controllers {
	return &Controllers{seen: map[storage.Key]moments{}, balancer: newBalancer(balancers)}
}

// moments are the creation of a Service, and the last changes of the readiness of
// its Pods.
type moments struct {
	service time.Time
	pods    map[types.UID]time.Time
}

// look is one look at a Service.
type look struct {
	*cluster.Turn
	key  storage.Key
	self *cluster.Object
	s    *corev1.Service
	pods []*cluster.Object
	// stored are Pods whose ports had to be read.
	stored map[types.UID]*podPorts
	// trigger is the value of the annotation endpoints.kubernetes.io/last-change-trigger-time;
	// empty if the time is not known.
	trigger string
}

func lookAt(t *cluster.Turn, key storage.Key) *look {
	return &look{Turn: t, key: key, self: t.Index.Objects[key], s: cluster.Stored[corev1.Service](t, key), stored: map[types.UID]*podPorts{}}
}

// Look updates the slices and the Endpoints of a Service from its Pods. If this step writes
// one of those, it is the next step that updates them.
func (c *Controllers) Look(t *cluster.Turn, key storage.Key) {
	l := lookAt(t, key)
	c.balancer.look(l)
	if l.self == nil || l.s == nil {
		delete(c.seen, key)
		l.forget()
		return
	}
	if len(l.self.Selects) == 0 {
		l.mirror()
		return
	}
	if l.self.Deleting || l.s.Spec.Type == corev1.ServiceTypeExternalName {
		return
	}
	for _, p := range t.Index.SelectedBy(l.self) {
		if _, written := t.Written[p.Key]; written {
			t.Due.Add(key)
			return
		}
		l.pods = append(l.pods, p)
	}
	slices.SortFunc(l.pods, func(a, b *cluster.Object) int {
		return cmp.Or(cmp.Compare(a.Address, b.Address), step.CompareKeys(a.Key, b.Key))
	})
	l.trigger = c.triggerOf(l)
	l.writeSlices()
	l.writeEndpoints()
}

// triggerOf returns when the first of the changes since the last look happened.
func (c *Controllers) triggerOf(l *look) string {
	before, known := c.seen[l.key]
	now := moments{service: l.s.CreationTimestamp.Time, pods: make(map[types.UID]time.Time, len(l.pods))}
	var first time.Time
	note := func(at, last time.Time) {
		if at.After(last) && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	note(now.service, before.service)
	for _, p := range l.pods {
		if !p.ReadyAt.IsZero() {
			now.pods[p.UID] = p.ReadyAt
			note(p.ReadyAt, before.pods[p.UID])
		}
	}
	c.seen[l.key] = now
	if !known {
		first = now.service
	}
	if first.IsZero() {
		return ""
	}
	return first.UTC().Format(time.RFC3339Nano)
}

// annotate sets the time of the change that caused a write.
func (l *look) annotate(annotations map[string]string) map[string]string {
	if l.trigger != "" {
		return cluster.With(annotations, corev1.EndpointsLastChangeTriggerTime, l.trigger)
	}
	out := cluster.With(annotations, corev1.EndpointsLastChangeTriggerTime, "")
	delete(out, corev1.EndpointsLastChangeTriggerTime)
	return out
}

// labels are those of the Service, but for those that other writers own.
func (l *look) labels(own map[string]string) map[string]string {
	out := map[string]string{}
	for key, value := range l.s.Labels {
		out[key] = value
	}
	delete(out, corev1.IsHeadlessService)
	if l.s.Spec.ClusterIP == "" || l.s.Spec.ClusterIP == corev1.ClusterIPNone {
		out[corev1.IsHeadlessService] = ""
	}
	for key, value := range own {
		out[key] = value
	}
	return out
}

// forget deletes the Endpoints of a Service that is gone. They have no owner, as EndpointSlices
// do, which are garbage collected.
func (l *look) forget() {
	key := storage.Key{Bucket: cluster.Endpoints, Name: l.key.Name}
	if l.View.Get(key) == nil {
		return
	}
	l.Send(step.Delete(endpointController, cluster.ResourceOf(key.Bucket).Object(key), []byte(`{"kind":"DeleteOptions","apiVersion":"v1"}`),
		step.Subject{Key: l.key}))
}

// update replaces an object of the Service.
func (l *look) update(user string, key storage.Key, obj step.Typed) {
	l.Update(user, key, "", obj)
	l.Requests[len(l.Requests)-1].Subject.Key = l.key
}

// reference is the targetRef of the address of a Pod.
func reference(p *cluster.Object) *corev1.ObjectReference {
	namespace, name := step.SplitName(p.Key.Name)
	return &corev1.ObjectReference{Kind: "Pod", Namespace: namespace, Name: name, UID: p.UID}
}

// hostname is the DNS name of a Pod within the Service; empty if it has none.
func (l *look) hostname(p *cluster.Object) string {
	if p.Subdomain != l.s.Name {
		return ""
	}
	return p.Hostname
}

// podPorts are the ports of the containers of a stored Pod.
type podPorts struct {
	Spec struct {
		Containers     []portedContainer `json:"containers"`
		InitContainers []portedContainer `json:"initContainers"`
	} `json:"spec"`
}

type portedContainer struct {
	RestartPolicy *corev1.ContainerRestartPolicy `json:"restartPolicy"`
	Ports         []corev1.ContainerPort         `json:"ports"`
}

// portOf returns the number of a port of the Service at a Pod; 0 if the Pod does not have it.
func (l *look) portOf(p *cluster.Object, port *corev1.ServicePort) int32 {
	name := port.TargetPort.StrVal
	if name == "" {
		return port.TargetPort.IntVal
	}
	ports, read := l.stored[p.UID]
	if !read {
		ports = cluster.Stored[podPorts](l.Turn, p.Key)
		l.stored[p.UID] = ports
	}
	if ports == nil {
		return 0
	}
	find := func(list []corev1.ContainerPort) int32 {
		i := slices.IndexFunc(list, func(c corev1.ContainerPort) bool { return c.Name == name && c.Protocol == port.Protocol })
		if i < 0 {
			return 0
		}
		return list[i].ContainerPort
	}
	for _, c := range ports.Spec.Containers {
		if n := find(c.Ports); n != 0 {
			return n
		}
	}
	for _, c := range ports.Spec.InitContainers {
		if sidecar := c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways; !sidecar {
			continue
		}
		if n := find(c.Ports); n != 0 {
			return n
		}
	}
	return 0
}

// portless reports whether the Service has no address and no ports.
func (l *look) portless() bool {
	return len(l.s.Spec.Ports) == 0 && l.s.Spec.ClusterIP == corev1.ClusterIPNone
}

// prefix begins the names of what is made for a Service.
func prefix(service string) string { return strings.TrimSuffix(service, "-") + "-" }

// objectMeta is that of a new object of the Service.
func (l *look) objectMeta(labels map[string]string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: l.s.Namespace, Labels: labels, Annotations: l.annotate(nil)}
}
