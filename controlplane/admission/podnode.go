// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/storage"
)

// nodesOf are the nodes of a store.
func nodesOf(store storage.Viewer) *Lister[corev1.Node] {
	return NewLister[corev1.Node](store, "nodes")
}

// TopologyLabels tells Pods the zone and the region of their node, in labels
// (KEP-4742).
type TopologyLabels struct {
	resource.MutatesOnly
	nodes *Lister[corev1.Node]
}

var _ resource.Admission = (*TopologyLabels)(nil)

// NewTopologyLabels returns the admission over the nodes of a store.
func NewTopologyLabels(store storage.Viewer) *TopologyLabels {
	return &TopologyLabels{nodes: nodesOf(store)}
}

// placed returns what gets the labels, and the node that it is placed on.
func (*TopologyLabels) placed(r *resource.AdmissionRequest) (metav1.Object, string) {
	if r.Operation != resource.Create {
		return nil, ""
	}
	switch obj := r.Object.(type) {
	case *corev1.Pod:
		if r.Subresource == "" && obj.Spec.NodeName != "" {
			return obj, obj.Spec.NodeName
		}
	case *corev1.Binding:
		return obj, obj.Target.Name
	}
	return nil, ""
}

// Mutates implements [resource.Mutator].
func (t *TopologyLabels) Mutates(r *resource.AdmissionRequest) bool {
	obj, _ := t.placed(r)
	return obj != nil
}

// Admit implements [resource.Admission].
func (t *TopologyLabels) Admit(ctx context.Context, r *resource.AdmissionRequest) error {
	obj, name := t.placed(r)
	if obj == nil {
		return nil
	}
	node, err := t.nodes.Get(name)
	if err != nil || node == nil {
		return err
	}
	labels := obj.GetLabels()
	for _, key := range []string{corev1.LabelTopologyZone, corev1.LabelTopologyRegion} {
		if v, ok := node.Labels[key]; ok {
			if labels == nil {
				labels = map[string]string{}
			}
			labels[key] = v
		}
	}
	obj.SetLabels(labels)
	return nil
}

// changedOnNode returns the Pod of an update that changes what a node has to do,
// through one of the given ways ("": the Pod itself), and the Pod before.
func changedOnNode(r *resource.AdmissionRequest, ways ...string) (p, old *corev1.Pod) {
	if r.Operation != resource.Update || !slices.Contains(ways, r.Subresource) {
		return nil, nil
	}
	p, _ = r.Object.(*corev1.Pod)
	old, _ = r.Old.(*corev1.Pod)
	if p == nil || old == nil || p.Spec.NodeName == "" || p.Generation == old.Generation {
		return nil, nil
	}
	return p, old
}

// resizing is what the admissions of changes on nodes have in common.
type resizing struct {
	resource.ValidatesOnly
	nodes *Lister[corev1.Node]
}

// node reads the node of a Pod.
func (s resizing) node(r *resource.AdmissionRequest, name string) (*corev1.Node, error) {
	node, err := s.nodes.Get(name)
	if err == nil && node == nil {
		err = Forbidden(r, "node %q not found", name)
	}
	return node, err
}

// DeclaredFeatures refuses changes of Pods that their node says nothing of being
// able to follow (KEP-5328).
type DeclaredFeatures struct{ resizing }

var _ resource.Admission = DeclaredFeatures{}

// NewDeclaredFeatures returns the admission over the nodes of a store.
func NewDeclaredFeatures(store storage.Viewer) DeclaredFeatures {
	return DeclaredFeatures{resizing{nodes: nodesOf(store)}}
}

// Validate implements [resource.Admission].
func (d DeclaredFeatures) Validate(ctx context.Context, r *resource.AdmissionRequest) error {
	p, old := changedOnNode(r, "", "resize")
	if p == nil {
		return nil
	}
	needed := neededFeatures(&p.Spec, &old.Spec)
	if len(needed) == 0 {
		return nil
	}
	node, err := d.node(r, p.Spec.NodeName)
	if err != nil {
		return err
	}
	missing := slices.DeleteFunc(needed, func(name string) bool { return slices.Contains(node.Status.DeclaredFeatures, name) })
	if len(missing) > 0 {
		return Forbidden(r, "pod update requires features %s which are not available on node %q", strings.Join(missing, ", "), node.Name)
	}
	return nil
}

// neededFeatures of a node for a change of a Pod.
func neededFeatures(now, before *corev1.PodSpec) []string {
	var out []string
	if !equality.Semantic.DeepEqual(now.Resources, before.Resources) {
		out = append(out, "InPlacePodLevelResourcesVerticalScaling")
	}
	for i, c := range before.InitContainers {
		sidecar := c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
		if !sidecar && !equality.Semantic.DeepEqual(c.Resources, now.InitContainers[i].Resources) {
			return append(out, "InPlacePodVerticalScalingInitContainers")
		}
	}
	return out
}

// PodResize refuses resizes that the node of a Pod has no room for, and all on
// other systems than Linux.
type PodResize struct{ resizing }

var _ resource.Admission = PodResize{}

// NewPodResize returns the admission over the nodes of a store.
func NewPodResize(store storage.Viewer) PodResize { return PodResize{resizing{nodes: nodesOf(store)}} }

// Validate implements [resource.Admission].
func (s PodResize) Validate(ctx context.Context, r *resource.AdmissionRequest) error {
	p, _ := changedOnNode(r, "resize")
	if p == nil {
		return nil
	}
	node, err := s.node(r, p.Spec.NodeName)
	if err != nil {
		return err
	}
	if os := node.Labels[corev1.LabelOSStable]; os != "" && os != "linux" {
		return because("UnsupportedPlatform", Forbidden(r, "pod resize is only supported on linux nodes, node %q is %q", node.Name, os))
	}
	requests, room := PodRequests(&p.Spec), node.Status.Allocatable
	var short []string
	if cpu := requests[corev1.ResourceCPU]; cpu.Cmp(*room.Cpu()) > 0 {
		short = append(short, fmt.Sprintf("cpu, requested: %d, allocatable: %d", cpu.MilliValue(), room.Cpu().MilliValue()))
	}
	if memory := requests[corev1.ResourceMemory]; memory.Cmp(*room.Memory()) > 0 {
		short = append(short, fmt.Sprintf("memory, requested: %d, allocatable: %d", memory.Value(), room.Memory().Value()))
	}
	if len(short) > 0 {
		return because("NodeCapacity", Forbidden(r, "node didn't have enough allocatable resources: %s", strings.Join(short, "; ")))
	}
	return nil
}

// because adds to a refusal which kind of refusal it is.
func because(cause metav1.CauseType, err error) error {
	var refused *apierrors.StatusError
	if errors.As(err, &refused) && refused.ErrStatus.Details != nil {
		refused.ErrStatus.Details.Causes = append(refused.ErrStatus.Details.Causes, metav1.StatusCause{Type: cause})
	}
	return err
}
