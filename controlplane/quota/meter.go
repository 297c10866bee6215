// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/steer-dev/steer/controlplane/admission"
)

// meter knows what the objects of one resource take up.
type meter struct {
	count corev1.ResourceName // the name under which they are counted
	other corev1.ResourceName // an older name for the same; empty: none
	// counts reports whether there is something of a name in them, besides count and
	// other; nil: no.
	counts func(corev1.ResourceName, classes) bool
	// usage adds what an object takes up besides being one; nil: nothing.
	usage func(obj any, in setting, to corev1.ResourceList)
}

// setting is what the use of an object depends on beside the object.
type setting struct {
	now     time.Time
	classes classes
}

// meterOf returns the meter of a resource, nil if no quota counts it.
func meterOf(gr schema.GroupResource) *meter {
	m := &meter{count: corev1.ResourceName("count/" + gr.String())}
	switch {
	case gr.Resource == "events" && (gr.Group == "" || gr.Group == "events.k8s.io"):
		return nil
	case gr.Group == resourcev1.GroupName && gr.Resource == "resourceclaims":
		m.counts, m.usage = countsOfDevices, usageOfDevices
		return m
	case gr.Group != "":
		return m
	}
	switch gr.Resource {
	case "bindings", "componentstatuses":
		return nil
	case "configmaps", "resourcequotas", "replicationcontrollers", "secrets":
		m.other = corev1.ResourceName(gr.Resource)
	case "pods":
		m.counts, m.usage = countsOfPods, usageOfPod
	case "services":
		m.other = corev1.ResourceServices
		m.counts = func(name corev1.ResourceName, _ classes) bool {
			return name == corev1.ResourceServicesNodePorts || name == corev1.ResourceServicesLoadBalancers
		}
		m.usage = usageOfService
	case "persistentvolumeclaims":
		m.other = corev1.ResourcePersistentVolumeClaims
		m.counts = func(name corev1.ResourceName, _ classes) bool {
			base := string(name)
			if _, after, byClass := strings.Cut(base, classSuffix); byClass {
				base = after
			}
			return base == string(corev1.ResourceRequestsStorage) || base == string(corev1.ResourcePersistentVolumeClaims)
		}
		m.usage = usageOfClaim
	}
	return m
}

// counted returns the names of a list that the meter has something to say about,
// in one order.
func (m *meter) counted(l corev1.ResourceList, by classes) []corev1.ResourceName {
	return slices.DeleteFunc(names(l), func(name corev1.ResourceName) bool {
		return name != m.count && name != m.other && (m.counts == nil || !m.counts(name, by))
	})
}

// read returns what an object takes up.
func (m *meter) read(obj any, in setting) corev1.ResourceList {
	one := *resource.NewQuantity(1, resource.DecimalSI)
	out := corev1.ResourceList{m.count: one}
	if m.other != "" {
		out[m.other] = one
	}
	if m.usage != nil {
		m.usage(obj, in, out)
	}
	return out
}

func countsOfPods(name corev1.ResourceName, _ classes) bool {
	switch name {
	case corev1.ResourcePods, corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage,
		corev1.ResourceRequestsCPU, corev1.ResourceRequestsMemory, corev1.ResourceRequestsEphemeralStorage,
		corev1.ResourceLimitsCPU, corev1.ResourceLimitsMemory, corev1.ResourceLimitsEphemeralStorage:
		return true
	}
	asked, isRequest := strings.CutPrefix(string(name), corev1.DefaultResourceRequestsPrefix)
	return strings.HasPrefix(asked, corev1.ResourceHugePagesPrefix) || isRequest && isExtended(asked)
}

// isExtended reports whether a resource is one that Kubernetes does not know, or devices of
// a class.
func isExtended(name string) bool {
	if strings.HasPrefix(name, resourcev1.ResourceDeviceClassPrefix) {
		return true
	}
	domain, _, qualified := strings.Cut(name, "/")
	return qualified && domain != "kubernetes.io" && !strings.HasSuffix(domain, ".kubernetes.io") && !strings.Contains(name, classSuffix)
}

// usageOfPod adds what a Pod requests and may use, unless it has ended.
func usageOfPod(obj any, in setting, to corev1.ResourceList) {
	p := obj.(*corev1.Pod)
	if ended(p, in.now) {
		return
	}
	requests, limits := admission.PodRequests(&p.Spec), admission.PodLimits(&p.Spec)
	admission.Add(requests, p.Spec.Overhead)
	admission.Add(limits, only(p.Spec.Overhead, limits))
	addUsage(requests, limits, to)
}

// addUsage adds amounts under the names that quotas have for them.
func addUsage(requests, limits, to corev1.ResourceList) {
	to[corev1.ResourcePods] = *resource.NewQuantity(1, resource.DecimalSI)
	for name, amount := range requests {
		switch {
		case name == corev1.ResourceCPU, name == corev1.ResourceMemory, name == corev1.ResourceEphemeralStorage,
			strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix):
			to[name] = amount
			fallthrough
		case isExtended(string(name)):
			to[corev1.DefaultResourceRequestsPrefix+name] = amount
		}
	}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage} {
		if amount, ok := limits[name]; ok {
			to["limits."+name] = amount
		}
	}
}

// ended reports whether a Pod uses nothing any more: it has run to its end, or was
// to be gone by now.
func ended(p *corev1.Pod, now time.Time) bool {
	if p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
		return true
	}
	if p.DeletionTimestamp == nil || p.DeletionGracePeriodSeconds == nil {
		return false
	}
	return now.After(p.DeletionTimestamp.Add(time.Duration(*p.DeletionGracePeriodSeconds) * time.Second))
}

// missing tells what containers have to say because a quota counts it, and which
// ones do not, as messages do.
func missing(p *corev1.Pod, counted []corev1.ResourceName) string {
	silent := map[corev1.ResourceName]sets.Set[string]{}
	for _, c := range slices.Concat(p.Spec.Containers, p.Spec.InitContainers) {
		says := corev1.ResourceList{}
		addUsage(c.Resources.Requests, c.Resources.Limits, says)
		if whole := p.Spec.Resources; whole != nil {
			addUsage(whole.Requests, whole.Limits, says)
		}
		for _, name := range counted {
			switch name {
			case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceRequestsCPU, corev1.ResourceRequestsMemory,
				corev1.ResourceLimitsCPU, corev1.ResourceLimitsMemory:
			default:
				continue // only these have to be said
			}
			if _, ok := says[name]; ok {
				continue
			}
			if silent[name] == nil {
				silent[name] = sets.New[string]()
			}
			silent[name].Insert(c.Name)
		}
	}
	var out []string
	for _, name := range counted {
		if containers := silent[name]; containers != nil {
			out = append(out, string(name)+" for: "+strings.Join(sets.List(containers), ","))
		}
	}
	return strings.Join(out, "; ")
}

func usageOfService(obj any, _ setting, to corev1.ResourceList) {
	s := obj.(*corev1.Service)
	ports, balancers := 0, 0
	switch s.Spec.Type {
	case corev1.ServiceTypeNodePort:
		ports = len(s.Spec.Ports)
	case corev1.ServiceTypeLoadBalancer:
		balancers = 1
		allocated := s.Spec.AllocateLoadBalancerNodePorts == nil || *s.Spec.AllocateLoadBalancerNodePorts
		for _, p := range s.Spec.Ports {
			if allocated || p.NodePort != 0 {
				ports++
			}
		}
	}
	to[corev1.ResourceServicesNodePorts] = *resource.NewQuantity(int64(ports), resource.DecimalSI)
	to[corev1.ResourceServicesLoadBalancers] = *resource.NewQuantity(int64(balancers), resource.DecimalSI)
}

// classSuffix follows the name of a storage class in what is counted of its
// claims alone.
const classSuffix = ".storageclass.storage.k8s.io/"

func usageOfClaim(obj any, _ setting, to corev1.ResourceList) {
	c := obj.(*corev1.PersistentVolumeClaim)
	size, ok := c.Spec.Resources.Requests[corev1.ResourceStorage]
	if granted, has := c.Status.AllocatedResources[corev1.ResourceStorage]; ok && has && granted.Cmp(size) > 0 {
		size = granted
	}
	class := corev1.ResourceName(admission.ClassOf(c))
	if class != "" {
		to[class+classSuffix+corev1.ResourcePersistentVolumeClaims] = *resource.NewQuantity(1, resource.DecimalSI)
	}
	if !ok {
		return
	}
	size = size.DeepCopy()
	size.RoundUp(0) // a quota counts whole bytes
	to[corev1.ResourceRequestsStorage] = size
	if class != "" {
		to[class+classSuffix+corev1.ResourceRequestsStorage] = size
	}
}
