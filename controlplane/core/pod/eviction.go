// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/component"
	"github.com/steer-dev/steer/controlplane/kubelet"
	"github.com/steer-dev/steer/storage"
)

// Subresources are those of Pods and nodes that need more than the object.
type Subresources struct {
	Store storage.Viewer
	// Send carries out a request of the API server itself. What is refused comes
	// back as an API status.
	Send func(ctx context.Context, method, path string, body []byte) error
	// Authorizer says who may open connections to containers.
	Authorizer auth.Authorizer
	// Kubelets are where logs and connections come from.
	Kubelets *kubelet.Proxy
}

// Component returns the subresources, and the resource by which Pods are bound without the path
// of the Pod.
func (s Subresources) Component() component.Component {
	evict := resource.Subresource{
		Name: "eviction", Backend: eviction{s}, Kind: policyv1.SchemeGroupVersion.WithKind("Eviction"), EquivalentVersions: []string{"v1beta1"},
		New: func() resource.Object { return &policyv1.Eviction{} },
	}
	return component.Component{
		Name:      "connections, evictions and bindings of pods",
		Resources: []*resource.Resource{s.bindings()},
		Extend: []component.Extension{
			{Resource: "pods", Subresources: append(s.connections("pods", "PodAttachOptions", "PodExecOptions", "PodPortForwardOptions", "PodProxyOptions"), evict)},
			{Resource: "services", Subresources: s.connections("services", "ServiceProxyOptions")},
			{Resource: "nodes", Subresources: s.connections("nodes", "NodeProxyOptions")},
		},
		Close: s.Kubelets.Close,
	}
}

// load reads an object; nil if there is none.
func load[T any](store storage.Viewer, bucket, namespace, name string) (*T, error) {
	key := name
	if namespace != "" {
		key = namespace + "/" + name
	}
	rec := store.Get(storage.Key{Bucket: bucket, Name: key})
	if rec == nil {
		return nil, nil
	}
	obj := new(T)
	if err := json.Unmarshal(rec.Value, obj); err != nil {
		return nil, fmt.Errorf("read %s %s: %w", bucket, name, err)
	}
	return obj, nil
}

// eviction deletes a Pod unless too many of its kind are away already.
type eviction struct{ Subresources }

// Create implements resource.Creater.
func (e eviction) Create(ctx context.Context, r *resource.Request, obj resource.Object, options *metav1.CreateOptions) (resource.Object, error) {
	wish := obj.(*policyv1.Eviction)
	if wish.Name != r.Name {
		return nil, apierrors.NewBadRequest("name in URL does not match name in Eviction object")
	}
	p, err := load[corev1.Pod](e.Store, "pods", r.Namespace, r.Name)
	if err != nil {
		return nil, err
	}
	if p == nil {
		return nil, apierrors.NewNotFound(corev1.Resource("pods"), r.Name)
	}
	how := wish.DeleteOptions
	if how == nil {
		how = &metav1.DeleteOptions{}
	}
	dry := slices.Concat(how.DryRun, options.DryRun)
	if len(dry) > 0 {
		how.DryRun = []string{metav1.DryRunAll}
	}
	free := p.DeletionTimestamp != nil || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed ||
		p.Status.Phase == corev1.PodPending
	if !free {
		if err := e.budget(ctx, p, len(dry) > 0); err != nil {
			return nil, err
		}
	}
	if len(dry) == 0 {
		if how, err = e.mark(ctx, p, how); err != nil {
			return nil, err
		}
	}
	body, err := json.Marshal(how)
	if err != nil {
		return nil, fmt.Errorf("evict %s: %w", r.Name, err)
	}
	return nil, e.Send(ctx, http.MethodDelete, "/api/v1/namespaces/"+r.Namespace+"/pods/"+r.Name, body)
}

// markKey is in the contexts of the writes that mark a Pod.
type markKey struct{}

// marks tells the write that marks a Pod. The mark has no entry in managedFields.
func marks(ctx context.Context) bool { return ctx.Value(markKey{}) != nil }

// mark writes into the status of a Pod that it is evicted, for those who look at
// why it ended, and returns how it is deleted then. One that is not as the
// deletion asks for is left alone.
func (e eviction) mark(ctx context.Context, p *corev1.Pod, how *metav1.DeleteOptions) (*metav1.DeleteOptions, error) {
	ctx = context.WithValue(ctx, markKey{}, true)
	for {
		if err := asAsked(p, how.Preconditions); err != nil {
			return nil, err
		}
		disrupted := corev1.PodCondition{
			Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "EvictionByEvictionAPI", Message: "Eviction API: evicting",
			LastTransitionTime: metav1.Now().Rfc3339Copy(),
		}
		if p.Status.ObservedGeneration != 0 {
			disrupted.ObservedGeneration = p.Generation
		}
		i := slices.IndexFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.DisruptionTarget })
		if i >= 0 && p.Status.Conditions[i].Status == corev1.ConditionTrue {
			disrupted.LastTransitionTime = p.Status.Conditions[i].LastTransitionTime
		}
		if i < 0 {
			i = len(p.Status.Conditions)
			p.Status.Conditions = append(p.Status.Conditions, disrupted)
		}
		p.Status.Conditions[i] = disrupted
		p.APIVersion, p.Kind = "v1", "Pod"
		body, err := json.Marshal(p)
		if err != nil {
			return nil, fmt.Errorf("mark pod %s as evicted: %w", p.Name, err)
		}
		err = e.Send(ctx, http.MethodPut, "/api/v1/namespaces/"+p.Namespace+"/pods/"+p.Name+"/status", body)
		switch {
		case err == nil:
			how = how.DeepCopy()
			how.Preconditions = &metav1.Preconditions{UID: &p.UID}
			return how, nil
		case !apierrors.IsConflict(err) || ctx.Err() != nil:
			return nil, err
		}
		namespace, name := p.Namespace, p.Name
		if p, err = load[corev1.Pod](e.Store, "pods", namespace, name); err != nil {
			return nil, err
		}
		if p == nil {
			return nil, apierrors.NewNotFound(corev1.Resource("pods"), name)
		}
	}
}

// asAsked refuses a Pod that is another than is asked for.
func asAsked(p *corev1.Pod, only *metav1.Preconditions) error {
	var err error
	switch {
	case only == nil:
	case only.UID != nil && *only.UID != p.UID:
		err = fmt.Errorf("the UID in the precondition (%s) does not match the UID in record (%s). The object might have been deleted and then recreated", *only.UID, p.UID)
	case only.ResourceVersion != nil && *only.ResourceVersion != p.ResourceVersion:
		err = fmt.Errorf("the ResourceVersion in the precondition (%s) does not match the ResourceVersion in record (%s). The object might have been modified", *only.ResourceVersion, p.ResourceVersion)
	}
	if err == nil {
		return nil
	}
	return apierrors.NewConflict(schema.GroupResource{Resource: "Pod"}, p.Name, err)
}

// retryAfter is when the caller is asked to evict again where that is known,
// in seconds.
const retryAfter = 10

func tooMany(detail string, seconds int) error {
	err := apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", seconds)
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{Type: policyv1.DisruptionBudgetCause, Message: detail})
	return err
}

// budget takes the Pod from the disruption budget that it is in.
func (e eviction) budget(ctx context.Context, p *corev1.Pod, dryRun bool) error {
	for {
		b, err := e.budgetOf(p)
		if b == nil || err != nil {
			return err
		}
		s := &b.Status
		if !podReady(p) {
			// It does not count as available, so that nothing is lost with it.
			always := b.Spec.UnhealthyPodEvictionPolicy != nil && *b.Spec.UnhealthyPodEvictionPolicy == policyv1.AlwaysAllow
			if always || s.CurrentHealthy >= s.DesiredHealthy && s.DesiredHealthy > 0 {
				return nil
			}
		}
		switch {
		case s.ObservedGeneration < b.Generation:
			return tooMany(fmt.Sprintf("The disruption budget %s is still being processed by the server.", b.Name), retryAfter)
		case s.DisruptionsAllowed < 0:
			return apierrors.NewForbidden(policyv1.Resource("poddisruptionbudget"), b.Name, fmt.Errorf("pdb disruptions allowed is negative"))
		case s.DisruptionsAllowed == 0:
			detail := fmt.Sprintf("The disruption budget %s needs %d healthy pods and has %d currently", b.Name, s.DesiredHealthy, s.CurrentHealthy)
			return tooMany(detail, 0)
		}
		s.DisruptionsAllowed--
		s.DisruptedPods = maps.Clone(s.DisruptedPods)
		if s.DisruptedPods == nil {
			s.DisruptedPods = map[string]metav1.Time{}
		}
		s.DisruptedPods[p.Name] = metav1.NewTime(time.Now().UTC().Truncate(time.Second))
		if s.DisruptionsAllowed == 0 {
			meta.SetStatusCondition(&s.Conditions, metav1.Condition{
				Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse, Reason: policyv1.InsufficientPodsReason,
				ObservedGeneration: s.ObservedGeneration,
			})
		}
		if dryRun {
			return nil
		}
		b.APIVersion, b.Kind = "policy/v1", "PodDisruptionBudget"
		body, err := json.Marshal(b)
		if err != nil {
			return fmt.Errorf("take pod %s from its disruption budget: %w", p.Name, err)
		}
		path := "/apis/policy/v1/namespaces/" + p.Namespace + "/poddisruptionbudgets/" + b.Name + "/status"
		if err := e.Send(ctx, http.MethodPut, path, body); !apierrors.IsConflict(err) || ctx.Err() != nil {
			return err
		}
	}
}

// budgetOf returns the one disruption budget that a Pod is in; nil if there is
// none.
func (e eviction) budgetOf(p *corev1.Pod) (*policyv1.PodDisruptionBudget, error) {
	view := e.Store.Latest()
	var found *policyv1.PodDisruptionBudget
	prefix := p.Namespace + "/"
	for rec := range view.Ascend("policy/poddisruptionbudgets", prefix, "") {
		b := &policyv1.PodDisruptionBudget{}
		if err := json.Unmarshal(rec.Value, b); err != nil {
			return nil, fmt.Errorf("read disruption budget %s: %w", rec.Key.Name, err)
		}
		selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
		if err != nil || !selector.Matches(labels.Set(p.Labels)) {
			continue
		}
		if found != nil {
			return nil, apierrors.NewInternalError(fmt.Errorf("This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.")) // as it is on the wire
		}
		found = b
	}
	return found, nil
}
