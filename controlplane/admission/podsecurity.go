// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"

	"github.com/steer-dev/steer/apiserver/audit"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/storage"
)

// PodSecurity refuses Pods that are less secure than the labels
// pod-security.kubernetes.io/* of their namespace ask for, and warns of Pods,
// templates and namespaces where that is asked for. Verdicts and words are those of
// the library that Kubernetes uses. Those of its audit mode are audit annotations.
type PodSecurity struct {
	resource.ValidatesOnly
	namespaces *Lister[corev1.Namespace]
	counts     podSecurityCounts
}

var _ resource.Admission = (*PodSecurity)(nil)

// NewPodSecurity returns the admission over the namespaces of a store.
func NewPodSecurity(store storage.Viewer) *PodSecurity {
	return &PodSecurity{namespaces: NewLister[corev1.Namespace](store, "namespaces"), counts: newPodSecurityCounts()}
}

// checks evaluates Pods; planes share it.
var checks = sync.OnceValues(func() (policy.Evaluator, error) { return policy.NewEvaluator(policy.DefaultChecks(), nil) })

// labelPrefix begins the labels that ask for something.
const labelPrefix = "pod-security.kubernetes.io/"

// Validate implements [resource.Admission].
func (a *PodSecurity) Validate(ctx context.Context, r *resource.AdmissionRequest) error {
	if r.Operation != resource.Create && r.Operation != resource.Update {
		return nil
	}
	switch obj := r.Object.(type) {
	case *corev1.Namespace:
		return a.namespace(r, obj)
	case *corev1.Pod:
		return a.pod(ctx, r, obj)
	}
	t := template(r)
	if t == nil {
		return nil
	}
	asked, err := a.asked(r.Namespace)
	if err != nil || asked == nil || asked.Warn.Level == api.LevelPrivileged && asked.Audit.Level == api.LevelPrivileged {
		return err
	}
	return a.warn(ctx, r, asked, &t.ObjectMeta, &t.Spec)
}

// template returns the Pods that an object makes, nil for none.
func template(r *resource.AdmissionRequest) *corev1.PodTemplateSpec {
	if r.Subresource != "" {
		return nil
	}
	switch obj := r.Object.(type) {
	case *corev1.PodTemplate:
		return &obj.Template
	case *corev1.ReplicationController:
		return obj.Spec.Template
	case *appsv1.ReplicaSet:
		return &obj.Spec.Template
	case *appsv1.Deployment:
		return &obj.Spec.Template
	case *appsv1.DaemonSet:
		return &obj.Spec.Template
	case *appsv1.StatefulSet:
		return &obj.Spec.Template
	case *batchv1.Job:
		return &obj.Spec.Template
	case *batchv1.CronJob:
		return &obj.Spec.JobTemplate.Spec.Template
	}
	return nil
}

// asked returns what a namespace asks for, nil if it asks for nothing.
func (a *PodSecurity) asked(namespace string) (*api.Policy, error) {
	ns, err := a.namespaces.Get(namespace)
	if err != nil || ns == nil || !asks(ns) {
		return nil, err
	}
	p, _ := policyOf(ns)
	return &p, nil
}

func asks(ns *corev1.Namespace) bool {
	for key := range ns.Labels {
		if strings.HasPrefix(key, labelPrefix) {
			return true
		}
	}
	return false
}

// openPolicy is what holds where nothing is asked for.
func openPolicy() api.LevelVersion {
	return api.LevelVersion{Level: api.LevelPrivileged, Version: api.LatestVersion()}
}

// policyOf returns the policy in the labels of a namespace, and the errors of the labels.
func policyOf(ns *corev1.Namespace) (api.Policy, field.ErrorList) {
	open := openPolicy()
	return api.PolicyToEvaluate(ns.Labels, api.Policy{Enforce: open, Audit: open, Warn: open})
}

// pod refuses a Pod, or warns of it.
func (a *PodSecurity) pod(ctx context.Context, r *resource.AdmissionRequest, pod *corev1.Pod) error {
	switch r.Subresource {
	case "exec", "attach", "binding", "eviction", "log", "portforward", "proxy", "status":
		return nil
	}
	asked, err := a.asked(r.Namespace)
	if err != nil {
		return err
	}
	if asked == nil || asked.FullyPrivileged() {
		a.counts.evaluated(r, true, openPolicy(), modeEnforce)
		annotateEnforced(ctx, openPolicy())
		return nil
	}
	if old := podBefore(r); r.Operation == resource.Update && old != nil && !significant(&pod.Spec, &old.Spec) {
		return nil
	}
	verdict, err := evaluate(asked.Enforce, &pod.ObjectMeta, &pod.Spec)
	if err != nil {
		return err
	}
	a.counts.evaluated(r, verdict.Allowed, asked.Enforce, modeEnforce)
	annotateEnforced(ctx, asked.Enforce)
	if !verdict.Allowed {
		err := fmt.Errorf("violates PodSecurity %q: %s", asked.Enforce.String(), verdict.ForbiddenDetail())
		return apierrors.NewForbidden(r.Resource.GroupResource(), nameOf(r), err)
	}
	return a.warn(ctx, r, asked, &pod.ObjectMeta, &pod.Spec)
}

// annotateEnforced adds the policy that is enforced to the audit annotations.
func annotateEnforced(ctx context.Context, enforced api.LevelVersion) {
	if e := audit.From(ctx); e != nil {
		e.Annotate(api.AuditAnnotationPrefix+api.EnforcedPolicyAnnotationKey, enforced.String())
	}
}

func nameOf(r *resource.AdmissionRequest) string { return cmp.Or(r.Name, r.Object.GetName()) }

// warn says that a Pod is less secure than it should be, to the client and in audit annotations.
func (a *PodSecurity) warn(ctx context.Context, r *resource.AdmissionRequest, asked *api.Policy, about *metav1.ObjectMeta, spec *corev1.PodSpec) error {
	audited, err := evaluate(asked.Audit, about, spec)
	if err != nil {
		return err
	}
	if !audited.Allowed {
		a.counts.evaluated(r, false, asked.Audit, modeAudit)
		audit.From(ctx).Annotate(api.AuditAnnotationPrefix+api.AuditViolationsAnnotationKey, fmt.Sprintf("would violate PodSecurity %q: %s", asked.Audit.String(), audited.ForbiddenDetail()))
	}
	verdict, err := evaluate(asked.Warn, about, spec)
	if err == nil && !verdict.Allowed {
		a.counts.evaluated(r, false, asked.Warn, modeWarn)
		r.Warn(fmt.Sprintf("would violate PodSecurity %q: %s", asked.Warn.String(), verdict.ForbiddenDetail()))
	}
	return err
}

func evaluate(asked api.LevelVersion, about *metav1.ObjectMeta, spec *corev1.PodSpec) (policy.AggregateCheckResult, error) {
	evaluator, err := checks()
	if err != nil {
		return policy.AggregateCheckResult{}, fmt.Errorf("admission: make the checks of PodSecurity: %w", err)
	}
	return policy.AggregateCheckResults(evaluator.EvaluatePod(asked, about, spec)), nil
}

// significant reports whether an update may make a Pod less secure: what can change
// of it is containers that are added, and images.
func significant(now, old *corev1.PodSpec) bool {
	changed := func(a, b []corev1.Container) bool {
		return !slices.EqualFunc(a, b, func(x, y corev1.Container) bool { return x.Image == y.Image })
	}
	if changed(now.Containers, old.Containers) || changed(now.InitContainers, old.InitContainers) {
		return true
	}
	return slices.ContainsFunc(now.EphemeralContainers, func(c corev1.EphemeralContainer) bool {
		return !slices.ContainsFunc(old.EphemeralContainers, func(b corev1.EphemeralContainer) bool { return b.Name == c.Name && b.Image == c.Image })
	})
}

// namespace refuses labels that say nothing, and warns of Pods that a namespace has
// and would not admit any more.
func (a *PodSecurity) namespace(r *resource.AdmissionRequest, ns *corev1.Namespace) error {
	if r.Subresource != "" || !asks(ns) {
		return nil
	}
	asked, errs := policyOf(ns)
	old, _ := r.Old.(*corev1.Namespace)
	var before api.Policy
	if old != nil {
		var wrong field.ErrorList
		if before, wrong = policyOf(old); len(wrong) > 0 && reflect.DeepEqual(wrong, errs) {
			errs = nil
		}
	}
	if len(errs) > 0 {
		return apierrors.NewInvalid(schema.GroupKind{Kind: "Namespace"}, nameOf(r), errs)
	}
	same := asked.Enforce.Version == before.Enforce.Version
	if old == nil || asked.Enforce.Level == api.LevelPrivileged || same && api.CompareLevels(asked.Enforce.Level, before.Enforce.Level) < 1 {
		return nil
	}
	return a.warnOfPods(r, ns.Name, asked.Enforce)
}

// warnOfPods says which Pods of a namespace violate what it is about to ask for.
func (a *PodSecurity) warnOfPods(r *resource.AdmissionRequest, namespace string, asked api.LevelVersion) error {
	const most = 3000 // are looked at
	pods, err := a.podsOf(namespace)
	if err != nil {
		return err
	}
	if len(pods) > most {
		r.Warn(fmt.Sprintf("new PodSecurity enforce level only checked against the first %d of %d existing pods", most, len(pods)))
		pods = pods[:most]
	}
	violating := map[string][]string{} // names of Pods, by what they violate
	for _, pod := range pods {
		verdict, err := evaluate(asked, &pod.ObjectMeta, &pod.Spec)
		if err != nil {
			return err
		}
		if !verdict.Allowed {
			reason := verdict.ForbiddenReason()
			violating[reason] = append(violating[reason], pod.Name)
		}
	}
	if len(violating) == 0 {
		return nil
	}
	r.Warn(fmt.Sprintf("existing pods in namespace %q violate the new PodSecurity enforce level %q", namespace, asked.String()))
	var warnings []string
	for reason, names := range violating {
		others := ""
		switch n := len(names) - 1; n {
		case 0:
		case 1:
			others = " (and 1 other pod)"
		default:
			others = fmt.Sprintf(" (and %d other pods)", n)
		}
		warnings = append(warnings, slices.Min(names)+others+": "+reason)
	}
	for _, w := range slices.Sorted(slices.Values(warnings)) {
		r.Warn(w)
	}
	return nil
}

// podsOf returns the Pods of a namespace, the first of each controller first.
func (a *PodSecurity) podsOf(namespace string) ([]*corev1.Pod, error) {
	view := a.namespaces.store.Latest()
	var first, more []*corev1.Pod
	seen := map[types.UID]bool{}
	for rec := range view.Ascend("pods", namespace+"/", "") {
		pod := &corev1.Pod{}
		if err := json.Unmarshal(rec.Value, pod); err != nil {
			return nil, fmt.Errorf("admission: read the Pod %s: %w", rec.Key.Name, err)
		}
		owner := metav1.GetControllerOfNoCopy(pod)
		if owner != nil && seen[owner.UID] {
			more = append(more, pod)
			continue
		}
		if owner != nil {
			seen[owner.UID] = true
		}
		first = append(first, pod)
	}
	return append(first, more...), nil
}
