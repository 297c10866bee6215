// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package core

import (
	"context"
	"fmt"
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/steer-dev/steer/apiserver"
	"github.com/steer-dev/steer/apiserver/apply"
)

func workloadKinds() []*apiserver.Resource {
	type (
		deployment  = *appsv1.Deployment
		replicaSet  = *appsv1.ReplicaSet
		statefulSet = *appsv1.StatefulSet
		daemonSet   = *appsv1.DaemonSet
		controller  = *corev1.ReplicationController
	)
	all := []string{"all"}
	return []*apiserver.Resource{
		kind[appsv1.Deployment, deployment]{
			group: "apps", version: "v1", plural: "deployments", short: []string{"deploy"}, categories: all, family: podFamily(),
			status: true, generations: true, unconditional: true,
			defaults:     defaultDeployment,
			validate:     validateDeployment,
			subresources: scalable("apps", deploymentScale{}),
			columns:      columns("Name", "Ready", "Up-to-date", "Available", "Age", "Containers*", "Images*", "Selector*"),
			row: func(d deployment) []any {
				names, images := containerText(d.Spec.Template.Spec.Containers)
				return []any{
					d.Name, fraction(d.Status.ReadyReplicas, value(d.Spec.Replicas)), int64(d.Status.UpdatedReplicas),
					int64(d.Status.AvailableReplicas), age(d), names, images, selectorText(d.Spec.Selector),
				}
			},
		}.resource(),
		kind[appsv1.ReplicaSet, replicaSet]{
			group: "apps", version: "v1", plural: "replicasets", short: []string{"rs"}, categories: all, family: podFamily(),
			status: true, generations: true, unconditional: true,
			defaults: func(r replicaSet) {
				fill(&r.Spec.Replicas, int32(1))
				defaultPodTemplate(&r.Spec.Template)
			},
			validate:     validateReplicaSet,
			subresources: scalable("apps", replicaSetScale{}),
			columns:      columns("Name", "Desired:integer", "Current:integer", "Ready:integer", "Age", "Containers*", "Images*", "Selector*"),
			row: func(r replicaSet) []any {
				names, images := containerText(r.Spec.Template.Spec.Containers)
				return []any{
					r.Name, int64(value(r.Spec.Replicas)), int64(r.Status.Replicas), int64(r.Status.ReadyReplicas), age(r),
					names, images, selectorText(r.Spec.Selector),
				}
			},
			selectable: []selectable[replicaSet]{
				{path: "status.replicas", value: func(r replicaSet) string { return fmt.Sprint(r.Status.Replicas) }},
			},
		}.resource(),
		kind[appsv1.StatefulSet, statefulSet]{
			group: "apps", version: "v1", plural: "statefulsets", short: []string{"sts"}, categories: all, family: podFamily(),
			status: true, generations: true, unconditional: true,
			defaults:     defaultStatefulSet,
			validate:     validateStatefulSet,
			subresources: scalable("apps", statefulSetScale{}),
			columns:      columns("Name", "Ready", "Age", "Containers*", "Images*"),
			row: func(s statefulSet) []any {
				names, images := containerText(s.Spec.Template.Spec.Containers)
				return []any{s.Name, fraction(s.Status.ReadyReplicas, value(s.Spec.Replicas)), age(s), names, images}
			},
		}.resource(),
		kind[appsv1.DaemonSet, daemonSet]{
			group: "apps", version: "v1", plural: "daemonsets", short: []string{"ds"}, categories: all, family: podFamily(),
			status: true, generations: true, unconditional: true,
			defaults: defaultDaemonSet,
			prepare:  countTemplates,
			validate: validateDaemonSet,
			columns: columns("Name", "Desired:integer", "Current:integer", "Ready:integer", "Up-to-date:integer", "Available:integer",
				"Node Selector", "Age", "Containers*", "Images*", "Selector*"),
			row: func(d daemonSet) []any {
				names, images := containerText(d.Spec.Template.Spec.Containers)
				return []any{
					d.Name, int64(d.Status.DesiredNumberScheduled), int64(d.Status.CurrentNumberScheduled), int64(d.Status.NumberReady),
					int64(d.Status.UpdatedNumberScheduled), int64(d.Status.NumberAvailable), labelText(d.Spec.Template.Spec.NodeSelector),
					age(d), names, images, selectorText(d.Spec.Selector),
				}
			},
		}.resource(),
		kind[appsv1.ControllerRevision, *appsv1.ControllerRevision]{
			group: "apps", version: "v1", plural: "controllerrevisions", unconditional: true,
			validate: validateControllerRevision,
			columns:  columns("Name", "Controller", "Revision", "Age"),
			row: func(r *appsv1.ControllerRevision) []any {
				owner := none
				if ref := metav1.GetControllerOf(r); ref != nil {
					gv, _ := schema.ParseGroupVersion(ref.APIVersion) // an unreadable version shows as no group
					owner = schema.GroupKind{Group: gv.Group, Kind: ref.Kind}.String() + "/" + ref.Name
				}
				return []any{r.Name, owner, r.Revision, age(r)}
			},
		}.resource(),
		kind[corev1.ReplicationController, controller]{
			version: "v1", plural: "replicationcontrollers", short: []string{"rc"}, categories: all, family: podFamily(),
			status: true, generations: true, unconditional: true,
			defaults:     defaultReplicationController,
			subresources: scalable("", replicationScale{}),
			columns:      columns("Name", "Desired:integer", "Current:integer", "Ready:integer", "Age", "Containers*", "Images*", "Selector*"),
			row: func(r controller) []any {
				var names, images string
				if r.Spec.Template != nil {
					names, images = containerText(r.Spec.Template.Spec.Containers)
				}
				return []any{
					r.Name, int64(value(r.Spec.Replicas)), int64(r.Status.Replicas), int64(r.Status.ReadyReplicas), age(r),
					names, images, labelText(r.Spec.Selector),
				}
			},
			selectable: []selectable[controller]{
				{path: "status.replicas", value: func(r controller) string { return fmt.Sprint(r.Status.Replicas) }},
			},
			deletion: apiserver.DeletionRules{Propagation: metav1.DeletePropagationOrphan},
		}.resource(),
	}
}

func defaultDeployment(d *appsv1.Deployment) {
	s := &d.Spec
	fill(&s.Replicas, int32(1))
	orDefault(&s.Strategy.Type, appsv1.RollingUpdateDeploymentStrategyType)
	if s.Strategy.Type == appsv1.RollingUpdateDeploymentStrategyType {
		if s.Strategy.RollingUpdate == nil {
			s.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{}
		}
		fill(&s.Strategy.RollingUpdate.MaxUnavailable, intstr.FromString("25%"))
		fill(&s.Strategy.RollingUpdate.MaxSurge, intstr.FromString("25%"))
	}
	fill(&s.RevisionHistoryLimit, int32(10))
	fill(&s.ProgressDeadlineSeconds, int32(600))
	defaultPodTemplate(&s.Template)
}

func defaultStatefulSet(set *appsv1.StatefulSet) {
	s := &set.Spec
	orDefault(&s.PodManagementPolicy, appsv1.OrderedReadyPodManagement)
	orDefault(&s.UpdateStrategy.Type, appsv1.RollingUpdateStatefulSetStrategyType)
	if s.UpdateStrategy.Type == appsv1.RollingUpdateStatefulSetStrategyType {
		if s.UpdateStrategy.RollingUpdate == nil {
			s.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{}
		}
		fill(&s.UpdateStrategy.RollingUpdate.Partition, int32(0))
	}
	if s.PersistentVolumeClaimRetentionPolicy == nil {
		s.PersistentVolumeClaimRetentionPolicy = &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{}
	}
	orDefault(&s.PersistentVolumeClaimRetentionPolicy.WhenDeleted, appsv1.RetainPersistentVolumeClaimRetentionPolicyType)
	orDefault(&s.PersistentVolumeClaimRetentionPolicy.WhenScaled, appsv1.RetainPersistentVolumeClaimRetentionPolicyType)
	fill(&s.Replicas, int32(1))
	fill(&s.RevisionHistoryLimit, int32(10))
	defaultPodTemplate(&s.Template)
	for i := range s.VolumeClaimTemplates {
		claim := &s.VolumeClaimTemplates[i]
		claim.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"))
		defaultClaim(claim)
		orDefault(&claim.Status.Phase, corev1.ClaimPending)
	}
}

func defaultDaemonSet(d *appsv1.DaemonSet) {
	s := &d.Spec
	orDefault(&s.UpdateStrategy.Type, appsv1.RollingUpdateDaemonSetStrategyType)
	if s.UpdateStrategy.Type == appsv1.RollingUpdateDaemonSetStrategyType {
		if s.UpdateStrategy.RollingUpdate == nil {
			s.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateDaemonSet{}
		}
		fill(&s.UpdateStrategy.RollingUpdate.MaxUnavailable, intstr.FromInt32(1))
		fill(&s.UpdateStrategy.RollingUpdate.MaxSurge, intstr.FromInt32(0))
	}
	fill(&s.RevisionHistoryLimit, int32(10))
	defaultPodTemplate(&s.Template)
	if _, ok := d.Annotations[appsv1.DeprecatedTemplateGeneration]; !ok {
		d.Annotations = maps.Clone(d.Annotations)
		if d.Annotations == nil {
			d.Annotations = map[string]string{}
		}
		d.Annotations[appsv1.DeprecatedTemplateGeneration] = "0"
	}
}

// countTemplates keeps the annotation in which the number of the pod template of
// a DaemonSet survives.
func countTemplates(_ context.Context, d, old *appsv1.DaemonSet) {
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
		defaultPodTemplate(t)
	}
	fill(&r.Spec.Replicas, int32(1))
	orDefault(&r.Spec.MinReadySeconds, 0)
}

// scalable is the scale subresource of a kind with spec.replicas.
func scalable(group string, s apiserver.Scaler) []apiserver.Subresource {
	gv := schema.GroupVersion{Group: group, Version: "v1"}
	return []apiserver.Subresource{{
		Name: "scale", Scale: s,
		Ownership: apply.NewScale(gv, map[string]fieldpath.Path{gv.String(): fieldpath.MakePathOrDie("spec", "replicas")}),
	}}
}

// The scalers of kinds; see apiserver.Scaler.
type (
	deploymentScale  struct{}
	replicaSetScale  struct{}
	statefulSetScale struct{}
	replicationScale struct{}
)

func (deploymentScale) Replicas(obj apiserver.Object) (spec, status int32, selector string, err error) {
	d := obj.(*appsv1.Deployment)
	return scaleOf(d.Spec.Replicas, d.Status.Replicas, d.Spec.Selector)
}

func (deploymentScale) SetReplicas(obj apiserver.Object, n int32) error {
	obj.(*appsv1.Deployment).Spec.Replicas = &n
	return nil
}

func (replicaSetScale) Replicas(obj apiserver.Object) (spec, status int32, selector string, err error) {
	r := obj.(*appsv1.ReplicaSet)
	return scaleOf(r.Spec.Replicas, r.Status.Replicas, r.Spec.Selector)
}

func (replicaSetScale) SetReplicas(obj apiserver.Object, n int32) error {
	obj.(*appsv1.ReplicaSet).Spec.Replicas = &n
	return nil
}

func (statefulSetScale) Replicas(obj apiserver.Object) (spec, status int32, selector string, err error) {
	s := obj.(*appsv1.StatefulSet)
	return scaleOf(s.Spec.Replicas, s.Status.Replicas, s.Spec.Selector)
}

func (statefulSetScale) SetReplicas(obj apiserver.Object, n int32) error {
	obj.(*appsv1.StatefulSet).Spec.Replicas = &n
	return nil
}

func (replicationScale) Replicas(obj apiserver.Object) (spec, status int32, selector string, err error) {
	r := obj.(*corev1.ReplicationController)
	return scaleOf(r.Spec.Replicas, r.Status.Replicas, &metav1.LabelSelector{MatchLabels: r.Spec.Selector})
}

func (replicationScale) SetReplicas(obj apiserver.Object, n int32) error {
	obj.(*corev1.ReplicationController).Spec.Replicas = &n
	return nil
}

func scaleOf(want *int32, have int32, selector *metav1.LabelSelector) (int32, int32, string, error) {
	s, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return 0, 0, "", fmt.Errorf("selector for scale: %w", err)
	}
	return value(want), have, s.String(), nil
}
