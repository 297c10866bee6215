// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/steer-dev/steer/controlplane/admission"
)

// Resources are amounts by name: thousandths of CPUs, whole units of all else. Names without
// an amount are left out.
type Resources map[corev1.ResourceName]int64

// ResourcesOf returns the amounts of a list.
func ResourcesOf(list corev1.ResourceList) Resources {
	var out Resources
	for name, amount := range list {
		n := amount.Value()
		if name == corev1.ResourceCPU {
			n = amount.MilliValue()
		}
		if n == 0 {
			continue
		}
		if out == nil {
			out = Resources{}
		}
		out[name] = n
	}
	return out
}

// HostPort is a port of a node that a container takes. An empty IP stands for all addresses.
type HostPort struct {
	IP       string          `json:"ip,omitempty"`
	Protocol corev1.Protocol `json:"protocol,omitempty"`
	Port     int32           `json:"port"`
}

// conflicts reports whether two ports cannot be taken on one node.
func (p HostPort) conflicts(other HostPort) bool {
	return p.Port == other.Port && p.Protocol == other.Protocol && (p.IP == "" || other.IP == "" || p.IP == other.IP)
}

// Claim is a claim that a Pod mounts.
type Claim struct {
	Name string `json:"name"`
	// Ephemeral claims are made for the Pod.
	Ephemeral bool `json:"ephemeral,omitempty"`
}

// source is what a demand is made of. Pods with the same source have the same demand.
type source struct {
	Scheduler    string                            `json:"scheduler,omitempty"`
	Gated        bool                              `json:"gated,omitempty"`
	Never        bool                              `json:"never,omitempty"`
	Requests     Resources                         `json:"requests,omitempty"`
	Ports        []HostPort                        `json:"ports,omitempty"`
	Claims       []Claim                           `json:"claims,omitempty"`
	NodeSelector map[string]string                 `json:"nodeSelector,omitempty"`
	Affinity     *corev1.Affinity                  `json:"affinity,omitempty"`
	Tolerations  []corev1.Toleration               `json:"tolerations,omitempty"`
	Spread       []corev1.TopologySpreadConstraint `json:"spread,omitempty"`
}

// Demand is what a Pod asks of the node that it goes to. It is shared by all Pods that ask for
// the same, and not changed.
type Demand struct {
	// Scheduler is the name of the scheduler that is responsible for the Pod.
	Scheduler string
	// Gated Pods are not scheduled yet.
	Gated    bool
	Requests Resources
	Ports    []HostPort
	Claims   []Claim
	// Nodes are those that the Pod selects.
	Nodes       *NodeSelection
	Tolerations []corev1.Toleration

	// neverPreempts reports that the Pod must not displace others.
	neverPreempts          bool
	preferred              []preference
	affinity, antiAffinity []term
	spread                 []corev1.TopologySpreadConstraint
	// text is the source, as JSON.
	text string
}

// preference is a node selector term with a weight.
type preference struct {
	weight int32
	terms  []nodeTerm
}

// term is a required affinity to, or anti-affinity from, Pods.
type term struct {
	key string
	// namespaces of the Pods; empty with own: that of the Pod itself.
	namespaces []string
	own        bool
	// inNamespaces selects namespaces by their labels.
	inNamespaces labels.Selector
	pods         labels.Selector
}

// Equal reports whether two demands, nil for none, are the same.
func (d *Demand) Equal(other *Demand) bool {
	if d == nil || other == nil {
		return d == other
	}
	return d.text == other.text
}

// Relates reports whether it depends on other Pods where the Pod can go.
func (d *Demand) Relates() bool { return len(d.affinity)+len(d.antiAffinity)+len(d.spread) > 0 }

// Repels reports whether other Pods are kept away from where the Pod is.
func (d *Demand) Repels() bool { return len(d.antiAffinity) > 0 }

// Pool holds one demand for all Pods that ask for the same.
type Pool struct{ held map[string]*share }

type share struct {
	demand *Demand
	count  int
}

// Take returns the demand of a Pod, until it is given back with [Pool.Release].
func (p *Pool) Take(spec *corev1.PodSpec) *Demand {
	text, _ := json.Marshal(sourceOf(spec)) // parts of a Pod always encode
	s := p.held[string(text)]
	if s == nil {
		var from source
		_ = json.Unmarshal(text, &from) // was encoded above; the demand shares no memory with the Pod
		s = &share{demand: demandOf(&from, string(text))}
		if p.held == nil {
			p.held = map[string]*share{}
		}
		p.held[s.demand.text] = s
	}
	s.count++
	return s.demand
}

// Keep counts another holder of a demand.
func (p *Pool) Keep(d *Demand) { p.held[d.text].count++ }

// Release gives a demand back.
func (p *Pool) Release(d *Demand) {
	s := p.held[d.text]
	if s.count--; s.count == 0 {
		delete(p.held, d.text)
	}
}

// Holders returns how many hold each demand.
func (p *Pool) Holders() map[string]int {
	out := map[string]int{}
	for text, s := range p.held {
		out[text] = s.count
	}
	return out
}

func sourceOf(spec *corev1.PodSpec) *source {
	requests := admission.PodRequests(spec)
	admission.Add(requests, spec.Overhead)
	out := &source{
		Scheduler: spec.SchedulerName, Gated: len(spec.SchedulingGates) > 0,
		Never:    spec.PreemptionPolicy != nil && *spec.PreemptionPolicy == corev1.PreemptNever,
		Requests: ResourcesOf(requests), NodeSelector: spec.NodeSelector, Affinity: spec.Affinity, Tolerations: spec.Tolerations,
	}
	for i := range spec.Containers {
		out.takePorts(&spec.Containers[i])
	}
	for i := range spec.InitContainers {
		if c := &spec.InitContainers[i]; c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			out.takePorts(c)
		}
	}
	for i := range spec.TopologySpreadConstraints {
		if c := &spec.TopologySpreadConstraints[i]; c.WhenUnsatisfiable == corev1.DoNotSchedule {
			out.Spread = append(out.Spread, *c)
		}
	}
	for i := range spec.Volumes {
		switch v := &spec.Volumes[i]; {
		case v.PersistentVolumeClaim != nil:
			out.Claims = append(out.Claims, Claim{Name: v.PersistentVolumeClaim.ClaimName})
		case v.Ephemeral != nil:
			out.Claims = append(out.Claims, Claim{Name: v.Name, Ephemeral: true})
		}
	}
	return out
}

func (s *source) takePorts(c *corev1.Container) {
	for _, port := range c.Ports {
		if port.HostPort <= 0 {
			continue
		}
		taken := HostPort{IP: port.HostIP, Protocol: port.Protocol, Port: port.HostPort}
		if taken.IP == "0.0.0.0" {
			taken.IP = ""
		}
		if taken.Protocol == "" {
			taken.Protocol = corev1.ProtocolTCP
		}
		s.Ports = append(s.Ports, taken)
	}
}

func demandOf(s *source, text string) *Demand {
	d := &Demand{
		Scheduler: s.Scheduler, Gated: s.Gated, Requests: s.Requests, Ports: s.Ports, Claims: s.Claims,
		Nodes: newNodeSelection(s.NodeSelector, s.Affinity), Tolerations: s.Tolerations, neverPreempts: s.Never, spread: s.Spread, text: text,
	}
	if s.Affinity == nil {
		return d
	}
	if near := s.Affinity.PodAffinity; near != nil {
		d.affinity = termsOf(near.RequiredDuringSchedulingIgnoredDuringExecution)
	}
	if far := s.Affinity.PodAntiAffinity; far != nil {
		d.antiAffinity = termsOf(far.RequiredDuringSchedulingIgnoredDuringExecution)
	}
	if nodes := s.Affinity.NodeAffinity; nodes != nil {
		for i := range nodes.PreferredDuringSchedulingIgnoredDuringExecution {
			p := &nodes.PreferredDuringSchedulingIgnoredDuringExecution[i]
			d.preferred = append(d.preferred, preference{weight: p.Weight, terms: nodeTermsOf([]corev1.NodeSelectorTerm{p.Preference})})
		}
	}
	return d
}

func termsOf(list []corev1.PodAffinityTerm) (out []term) {
	for i := range list {
		t := &list[i]
		pods, err := metav1.LabelSelectorAsSelector(t.LabelSelector)
		if err != nil {
			pods = labels.Nothing() // was validated
		}
		namespaces, err := metav1.LabelSelectorAsSelector(t.NamespaceSelector)
		if err != nil {
			namespaces = labels.Nothing() // was validated
		}
		out = append(out, term{
			key: t.TopologyKey, namespaces: t.Namespaces, own: len(t.Namespaces) == 0 && t.NamespaceSelector == nil,
			inNamespaces: namespaces, pods: pods,
		})
	}
	return out
}

// covers reports whether a term of a Pod of a namespace is about another Pod.
func (t *term) covers(w World, namespace string, other *Bound) bool {
	in := t.own && namespace == other.Namespace || slices.Contains(t.namespaces, other.Namespace)
	if !in && !t.inNamespaces.Empty() {
		in = t.inNamespaces.Matches(w.NamespaceLabels(other.Namespace))
	} else if !in {
		in = t.everywhere()
	}
	return in && t.pods.Matches(labels.Set(other.Labels))
}

// everywhere reports whether a term is about the Pods of all namespaces: its selector of
// namespaces is there, and empty.
func (t *term) everywhere() bool {
	_, selects := t.inNamespaces.Requirements()
	return selects && t.inNamespaces.Empty()
}
