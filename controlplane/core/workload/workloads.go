// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package workload serves the kinds that create Pods, from Deployments to CronJobs, and
// ControllerRevisions.
package workload

import (
	"context"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/steer-dev/steer/apiserver/apply"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/core/kind"
	"github.com/steer-dev/steer/controlplane/core/podspec"
	"github.com/steer-dev/steer/controlplane/core/podwarning"
	"github.com/steer-dev/steer/controlplane/core/volume"
)

// Resources returns the kinds of this package.
func Resources() []*resource.Resource {
	return slices.Concat(workloadKinds(), batchKinds())
}

func workloadKinds() []*resource.Resource { //nolint:funlen // a table of kinds
	type (
		deployment  = *appsv1.Deployment
		replicaSet  = *appsv1.ReplicaSet
		statefulSet = *appsv1.StatefulSet
		daemonSet   = *appsv1.DaemonSet
		controller  = *corev1.ReplicationController
	)
	all := []string{"all"}
	return []*resource.Resource{
		kind.Definition[appsv1.Deployment, deployment]{
			Group: "apps", Version: "v1", Plural: "deployments", Short: []string{"deploy"}, Categories: all, Family: podspec.Family(),
			Status: true, Generations: true, Unconditional: true,
			Defaults: defaultDeployment,
			Validate: validateDeployment, ValidateStatus: validateDeploymentStatus,
			Metadata:     kind.Metadata{KeepInStatus: []string{"labels"}},
			Prepare:      func(_ context.Context, o, _ deployment) { podspec.PrepareTemplate(&o.Spec.Template) },
			Warnings:     func(o, old deployment) []string { return templateWarnings(o, old, &o.Spec.Template) },
			Subresources: scalable("apps", scaling[*appsv1.Deployment]{deploymentScale}),
			Columns:      kind.Columns("Name", "Ready", "Up-to-date", "Available", "Age", "Containers*", "Images*", "Selector*"),
			Row: func(d deployment) []any {
				names, images := kind.ContainerText(d.Spec.Template.Spec.Containers)
				selector := ""
				if d.Spec.Selector != nil {
					selector = kind.SelectorText(d.Spec.Selector)
				}
				return []any{
					d.Name, kind.Fraction(d.Status.ReadyReplicas, kind.Value(d.Spec.Replicas)), int64(d.Status.UpdatedReplicas),
					int64(d.Status.AvailableReplicas), kind.Age(d), names, images, selector,
				}
			},
		}.Resource(),
		kind.Definition[appsv1.ReplicaSet, replicaSet]{
			Group: "apps", Version: "v1", Plural: "replicasets", Short: []string{"rs"}, Categories: all, Family: podspec.Family(),
			Status: true, Generations: true, Unconditional: true,
			Defaults: func(r replicaSet) {
				kind.Fill(&r.Spec.Replicas, int32(1))
				podspec.DefaultTemplate(&r.Spec.Template)
			},
			Validate: validateReplicaSet, ValidateStatus: validateReplicaSetStatus,
			Prepare:      func(_ context.Context, o, _ replicaSet) { podspec.PrepareTemplate(&o.Spec.Template) },
			Warnings:     func(o, old replicaSet) []string { return templateWarnings(o, old, &o.Spec.Template) },
			Subresources: scalable("apps", scaling[*appsv1.ReplicaSet]{replicaSetScale}),
			Columns:      kind.Columns("Name", "Desired:integer", "Current:integer", "Ready:integer", "Age", "Containers*", "Images*", "Selector*"),
			Row: func(r replicaSet) []any {
				names, images := kind.ContainerText(r.Spec.Template.Spec.Containers)
				return []any{
					r.Name, int64(kind.Value(r.Spec.Replicas)), int64(r.Status.Replicas), int64(r.Status.ReadyReplicas), kind.Age(r),
					names, images, kind.SelectorText(r.Spec.Selector),
				}
			},
		}.Resource(),
		kind.Definition[appsv1.StatefulSet, statefulSet]{
			Group: "apps", Version: "v1", Plural: "statefulsets", Short: []string{"sts"}, NameRule: apivalidation.NameIsDNSLabel, Categories: all, Family: podspec.Family(),
			Status: true, Generations: true, Unconditional: true,
			Defaults: defaultStatefulSet,
			Validate: validateStatefulSet, ValidateStatus: validateStatefulSetStatus,
			Prepare: func(_ context.Context, o, _ statefulSet) {
				podspec.PrepareTemplate(&o.Spec.Template)
			},
			Warnings: func(o, old statefulSet) []string {
				out := templateWarnings(o, old, &o.Spec.Template)
				if n := o.Spec.RevisionHistoryLimit; n != nil && *n < 0 && (old == nil || old.Generation != o.Generation) {
					out = append(out, "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended")
				}
				return out
			},
			Subresources: scalable("apps", scaling[*appsv1.StatefulSet]{statefulSetScale}),
			Columns:      kind.Columns("Name", "Ready", "Age", "Containers*", "Images*"),
			Row: func(s statefulSet) []any {
				names, images := kind.ContainerText(s.Spec.Template.Spec.Containers)
				return []any{s.Name, kind.Fraction(s.Status.ReadyReplicas, kind.Value(s.Spec.Replicas)), kind.Age(s), names, images}
			},
		}.Resource(),
		kind.Definition[appsv1.DaemonSet, daemonSet]{
			Group: "apps", Version: "v1", Plural: "daemonsets", Short: []string{"ds"}, Categories: all, Family: podspec.Family(),
			Status: true, Generations: true, Unconditional: true,
			Defaults: defaultDaemonSet,
			Prepare:  countTemplates, PrepareStatus: keepCount,
			Validate: validateDaemonSet, ValidateStatus: validateDaemonSetStatus,
			Warnings: func(o, old daemonSet) []string { // its Pods have a name made from it, but no hostname is
				if old != nil && old.Generation == o.Generation {
					return nil
				}
				return podwarning.OfTemplate(field.NewPath("spec", "template"), &o.Spec.Template)
			},
			Columns: kind.Columns("Name", "Desired:integer", "Current:integer", "Ready:integer", "Up-to-date:integer", "Available:integer",
				"Node Selector", "Age", "Containers*", "Images*", "Selector*"),
			Row: func(d daemonSet) []any {
				names, images := kind.ContainerText(d.Spec.Template.Spec.Containers)
				return []any{
					d.Name, int64(d.Status.DesiredNumberScheduled), int64(d.Status.CurrentNumberScheduled), int64(d.Status.NumberReady),
					int64(d.Status.UpdatedNumberScheduled), int64(d.Status.NumberAvailable), kind.LabelText(d.Spec.Template.Spec.NodeSelector),
					kind.Age(d), names, images, kind.SelectorText(d.Spec.Selector),
				}
			},
		}.Resource(),
		kind.Definition[appsv1.ControllerRevision, *appsv1.ControllerRevision]{
			Group: "apps", Version: "v1", Plural: "controllerrevisions", Unconditional: true,
			Metadata: kind.Metadata{RepeatCreationErrors: true},
			Validate: validateControllerRevision,
			Columns:  kind.Columns("Name", "Controller", "Revision", "Age"),
			Row: func(r *appsv1.ControllerRevision) []any {
				owner := kind.None
				if ref := metav1.GetControllerOf(r); ref != nil {
					gv, _ := schema.ParseGroupVersion(ref.APIVersion) // an unreadable version shows as no group
					owner = schema.GroupKind{Group: gv.Group, Kind: ref.Kind}.String() + "/" + ref.Name
				}
				return []any{r.Name, owner, r.Revision, kind.Age(r)}
			},
		}.Resource(),
		kind.Definition[corev1.ReplicationController, controller]{
			Version: "v1", Plural: "replicationcontrollers", Short: []string{"rc"}, Categories: all, Family: podspec.Family(),
			Status: true, Generations: true, Unconditional: true,
			Defaults: defaultReplicationController,
			Validate: validateReplicationController, ValidateStatus: validateReplicationControllerStatus,
			Prepare: func(_ context.Context, r, _ controller) {
				if r.Spec.Template != nil {
					podspec.PrepareTemplate(r.Spec.Template)
				}
			},
			Warnings: func(r, old controller) []string {
				if r.Spec.Template == nil {
					return nil
				}
				return templateWarnings(r, old, r.Spec.Template)
			},
			Subresources: scalable("", scaling[*corev1.ReplicationController]{replicationScale}),
			Columns:      kind.Columns("Name", "Desired:integer", "Current:integer", "Ready:integer", "Age", "Containers*", "Images*", "Selector*"),
			Row: func(r controller) []any {
				var names, images string
				if r.Spec.Template != nil {
					names, images = kind.ContainerText(r.Spec.Template.Spec.Containers)
				}
				return []any{
					r.Name, int64(kind.Value(r.Spec.Replicas)), int64(r.Status.Replicas), int64(r.Status.ReadyReplicas), kind.Age(r),
					names, images, kind.LabelText(r.Spec.Selector),
				}
			},
			Selectable: []kind.Selectable[controller]{
				{Path: "status.replicas", Value: func(r controller) string { return fmt.Sprint(r.Status.Replicas) }},
			},
			Deletion: resource.DeletionRules{Propagation: metav1.DeletePropagationOrphan},
		}.Resource(),
	}
}

func defaultDeployment(d *appsv1.Deployment) {
	s := &d.Spec
	kind.Fill(&s.Replicas, int32(1))
	kind.OrDefault(&s.Strategy.Type, appsv1.RollingUpdateDeploymentStrategyType)
	if s.Strategy.Type == appsv1.RollingUpdateDeploymentStrategyType {
		if s.Strategy.RollingUpdate == nil {
			s.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{}
		}
		kind.Fill(&s.Strategy.RollingUpdate.MaxUnavailable, intstr.FromString("25%"))
		kind.Fill(&s.Strategy.RollingUpdate.MaxSurge, intstr.FromString("25%"))
	}
	kind.Fill(&s.RevisionHistoryLimit, int32(10))
	kind.Fill(&s.ProgressDeadlineSeconds, int32(600))
	podspec.DefaultTemplate(&s.Template)
}

func defaultStatefulSet(set *appsv1.StatefulSet) {
	s := &set.Spec
	kind.OrDefault(&s.PodManagementPolicy, appsv1.OrderedReadyPodManagement)
	// Unlike that of a DaemonSet, a type that is written brings no rollingUpdate.
	if s.UpdateStrategy.Type == "" {
		s.UpdateStrategy.Type = appsv1.RollingUpdateStatefulSetStrategyType
		if s.UpdateStrategy.RollingUpdate == nil {
			s.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{}
		}
	}
	if rolling := s.UpdateStrategy.RollingUpdate; rolling != nil && s.UpdateStrategy.Type == appsv1.RollingUpdateStatefulSetStrategyType {
		kind.Fill(&rolling.Partition, int32(0))
		kind.Fill(&rolling.MaxUnavailable, intstr.FromInt32(1))
	}
	if s.PersistentVolumeClaimRetentionPolicy == nil {
		s.PersistentVolumeClaimRetentionPolicy = &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{}
	}
	kind.OrDefault(&s.PersistentVolumeClaimRetentionPolicy.WhenDeleted, appsv1.RetainPersistentVolumeClaimRetentionPolicyType)
	kind.OrDefault(&s.PersistentVolumeClaimRetentionPolicy.WhenScaled, appsv1.RetainPersistentVolumeClaimRetentionPolicyType)
	kind.Fill(&s.Replicas, int32(1))
	kind.Fill(&s.RevisionHistoryLimit, int32(10))
	podspec.DefaultTemplate(&s.Template)
	for i := range s.VolumeClaimTemplates {
		claim := &s.VolumeClaimTemplates[i]
		claim.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"))
		volume.DefaultClaim(claim)
	}
}

func defaultDaemonSet(d *appsv1.DaemonSet) {
	s := &d.Spec
	kind.OrDefault(&s.UpdateStrategy.Type, appsv1.RollingUpdateDaemonSetStrategyType)
	if s.UpdateStrategy.Type == appsv1.RollingUpdateDaemonSetStrategyType {
		if s.UpdateStrategy.RollingUpdate == nil {
			s.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateDaemonSet{}
		}
		kind.Fill(&s.UpdateStrategy.RollingUpdate.MaxUnavailable, intstr.FromInt32(1))
		kind.Fill(&s.UpdateStrategy.RollingUpdate.MaxSurge, intstr.FromInt32(0))
	}
	kind.Fill(&s.RevisionHistoryLimit, int32(10))
	podspec.DefaultTemplate(&s.Template)
	if _, ok := d.Annotations[appsv1.DeprecatedTemplateGeneration]; !ok {
		d.Annotations = maps.Clone(d.Annotations)
		if d.Annotations == nil {
			d.Annotations = map[string]string{}
		}
		d.Annotations[appsv1.DeprecatedTemplateGeneration] = "0"
	}
}

// keepCount is for writes of the status.
func keepCount(_ context.Context, d, old *appsv1.DaemonSet) {
	d.Annotations = maps.Clone(d.Annotations)
	d.Annotations[appsv1.DeprecatedTemplateGeneration] = old.Annotations[appsv1.DeprecatedTemplateGeneration]
}

// countTemplates keeps the annotation in which the number of the pod template of
// a DaemonSet survives.
func countTemplates(_ context.Context, d, old *appsv1.DaemonSet) {
	podspec.PrepareTemplate(&d.Spec.Template)
	next := int64(1)
	if old != nil {
		fmt.Sscan(old.Annotations[appsv1.DeprecatedTemplateGeneration], &next) //nolint:errcheck // without a number it stays 1
		if templateChanged(&d.Spec.Template, &old.Spec.Template) {
			next++
		}
	}
	d.Annotations[appsv1.DeprecatedTemplateGeneration] = fmt.Sprint(next) // there is one by default
}

func defaultReplicationController(r *corev1.ReplicationController) {
	if t := r.Spec.Template; t != nil {
		if len(r.Spec.Selector) == 0 {
			r.Spec.Selector = t.Labels
		}
		if len(r.Labels) == 0 {
			r.Labels = t.Labels
		}
		podspec.DefaultTemplate(t)
	}
	kind.Fill(&r.Spec.Replicas, int32(1))
	kind.OrDefault(&r.Spec.MinReadySeconds, 0)
}

// scalable is the scale subresource of a kind with spec.replicas.
func scalable(group string, s resource.Scaler) []resource.Subresource {
	gv := schema.GroupVersion{Group: group, Version: "v1"}
	return []resource.Subresource{{
		Name: "scale", Scale: s,
		FieldManager: apply.NewScale(gv, map[string]fieldpath.Path{gv.String(): fieldpath.MakePathOrDie("spec", "replicas")}),
	}}
}

// scaling implements resource.Scaler for a kind: parts finds what a scale shows
// in an object.
type scaling[P resource.Object] struct {
	parts func(P) (want **int32, have int32, selector *metav1.LabelSelector)
}

func (s scaling[P]) Replicas(obj resource.Object) (spec, status int32, selector string, err error) {
	want, have, selects := s.parts(obj.(P))
	chosen, err := metav1.LabelSelectorAsSelector(selects)
	if err != nil {
		return 0, 0, "", fmt.Errorf("selector for scale: %w", err)
	}
	return kind.Value(*want), have, chosen.String(), nil
}

func (s scaling[P]) SetReplicas(obj resource.Object, n int32) error {
	want, _, _ := s.parts(obj.(P))
	*want = &n
	return nil
}

func deploymentScale(d *appsv1.Deployment) (**int32, int32, *metav1.LabelSelector) {
	return &d.Spec.Replicas, d.Status.Replicas, d.Spec.Selector
}

func replicaSetScale(r *appsv1.ReplicaSet) (**int32, int32, *metav1.LabelSelector) {
	return &r.Spec.Replicas, r.Status.Replicas, r.Spec.Selector
}

func statefulSetScale(s *appsv1.StatefulSet) (**int32, int32, *metav1.LabelSelector) {
	return &s.Spec.Replicas, s.Status.Replicas, s.Spec.Selector
}

func replicationScale(r *corev1.ReplicationController) (**int32, int32, *metav1.LabelSelector) {
	return &r.Spec.Replicas, r.Status.Replicas, &metav1.LabelSelector{MatchLabels: r.Spec.Selector}
}

// templateWarnings are about the Pods of a new workload, or of one that has
// changed.
func templateWarnings[P interface {
	comparable
	resource.Object
}](obj, old P, t *corev1.PodTemplateSpec) []string {
	var none P
	if old != none && old.GetGeneration() == obj.GetGeneration() {
		return nil
	}
	return append(nameWarnings(obj, old == none), podwarning.OfTemplate(field.NewPath("spec", "template"), t)...)
}

func nameWarnings(obj resource.Object, isNew bool) []string {
	if !isNew {
		return nil
	}
	if problems := validation.IsDNS1123Label(obj.GetName()); len(problems) > 0 {
		return []string{fmt.Sprintf("metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; a DNS label is recommended: %v", problems)}
	}
	return nil
}
