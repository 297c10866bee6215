// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/controller/internal/status"
	"github.com/steer-dev/steer/trace"
)

// statusTries is how often the status of one attempt meets a newer revision
// before the attempt counts as a conflict.
const statusTries = 5

// statusWriter writes what a reconciler left in the status of its object.
type statusWriter struct {
	// fallback says once that the kind has no status subresource.
	fallback sync.Once
	differ   trace.Differ
}

// write sends the difference between the status of before and that of obj as
// one patch, provided that the object is still at the revision of before.
// Otherwise it reads the object anew and sends the same difference on top of
// it; conditions are merged by their type. A finished attempt also sets
// observedGeneration, where the status has it, except on kinds of Kubernetes
// itself, whose controllers say what they have observed. An object that is gone,
// or that another one has replaced, needs no status.
func (w *statusWriter) write(ctx context.Context, sh *shared, before, obj client.Object, finished bool) error {
	// Only the groups of Kubernetes have no dot.
	if finished && strings.Contains(sh.gvk.Group, ".") {
		status.SetObservedGeneration(obj, before.GetGeneration())
	}
	if w.sameStatus(before, obj) {
		return nil
	}
	was, ok, err := status.Of(before)
	if !ok || err != nil {
		return err
	}
	want, _, err := status.Of(obj)
	if err != nil {
		return err
	}
	change := status.Diff(was, want)
	if change == nil {
		return nil
	}
	base := before
	for try := 1; ; try++ {
		patch := status.MergePatch(was, change.On(was))
		if len(patch) == 0 {
			return nil
		}
		written := emptyLike(before)
		err := w.patch(ctx, sh, base, written, patch)
		switch {
		case err == nil:
			if !sh.silent {
				emitTransition(ctx, obj, was, change.On(was))
			}
			return nil
		case apierrors.IsNotFound(err):
			return nil
		case !apierrors.IsConflict(err) || try == statusTries:
			return err
		}
		latest := emptyLike(before)
		if err := sh.deps.Client.Get(ctx, client.ObjectKeyFromObject(before), latest, client.Live); err != nil {
			return client.IgnoreNotFound(err)
		}
		if latest.GetUID() != before.GetUID() {
			return nil
		}
		if base, was, err = rebase(latest); err != nil {
			return err
		}
	}
}

func rebase(latest client.Object) (client.Object, map[string]any, error) {
	now, _, err := status.Of(latest)
	return latest, now, err
}

// patch sends a merge patch of the status to the status subresource, or to the
// object itself where the kind has none.
func (w *statusWriter) patch(ctx context.Context, sh *shared, base, into client.Object, status map[string]any) error {
	data, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": base.GetResourceVersion()},
		"status":   status,
	})
	if err != nil {
		return err
	}
	into.SetNamespace(base.GetNamespace())
	into.SetName(base.GetName())
	return sh.own.Perform(client.ObjectKeyFromObject(base), base.GetResourceVersion(), data, func() (string, error) {
		err := w.send(ctx, sh, into, client.RawPatch(types.MergePatchType, data))
		return into.GetResourceVersion(), err
	})
}

func (w *statusWriter) send(ctx context.Context, sh *shared, into client.Object, patch client.Patch) error {
	owner := client.FieldOwner(sh.owner)
	resource, err := sh.deps.Client.Mapper().ForKind(ctx, sh.gvk)
	if err != nil && !meta.IsNoMatchError(err) {
		return err
	}
	if _, has := resource.Subresources["status"]; !has && err == nil {
		w.fallback.Do(func() {
			sh.log.Warn("The kind has no status subresource, so the status is written with the object and users can write it too; add the subresource to the CustomResourceDefinition (marker +kubebuilder:subresource:status)", "kind", sh.gvk.String())
		})
		return sh.deps.Client.Patch(ctx, into, patch, owner)
	}
	return sh.deps.Client.Status().Patch(ctx, into, patch, owner)
}

// emptyLike is a new object of the same type and kind.
func emptyLike(obj client.Object) client.Object {
	out := reflect.New(reflect.TypeOf(obj).Elem()).Interface().(client.Object)
	out.GetObjectKind().SetGroupVersionKind(obj.GetObjectKind().GroupVersionKind())
	return out
}

// sameStatus tells cheaply that nothing has changed. It may miss that two forms
// say the same.
func (w *statusWriter) sameStatus(before, obj client.Object) bool {
	if a, ok := before.(interface{ UnstructuredContent() map[string]any }); ok {
		b, ok := obj.(interface{ UnstructuredContent() map[string]any })
		return ok && reflect.DeepEqual(a.UnstructuredContent()["status"], b.UnstructuredContent()["status"])
	}
	a, b := reflect.ValueOf(before).Elem().FieldByName("Status"), reflect.ValueOf(obj).Elem().FieldByName("Status")
	if !a.IsValid() || !b.IsValid() {
		return false
	}
	return w.differ.Same(a.Addr().Interface(), b.Addr().Interface()) || reflect.DeepEqual(a.Interface(), b.Interface())
}

// errNoAttempt is the misuse of what works within a reconcile only.
var errNoAttempt = errors.New("the context does not belong to a reconcile: pass on the context that Reconcile was given")

// The types of conditions that tools know: kubectl wait, GitOps tools and
// package managers look at Ready, and at the other two to tell progress from
// failure.
const (
	// ReadyCondition is True when the object does what was asked for.
	ReadyCondition = "Ready"
	// ReconcilingCondition is True while work goes on; it is absent otherwise.
	ReconcilingCondition = "Reconciling"
	// StalledCondition is True when only a change by a user can help; it is
	// absent otherwise.
	StalledCondition = "Stalled"
)

// SetCondition sets a condition in the list of obj's status: it fills in the
// observed generation, and the time when the status of the condition changed.
// It reports whether anything changed. The reason must be set, in UpperCamelCase.
func SetCondition(obj client.Object, conditions *[]metav1.Condition, c metav1.Condition) bool {
	if c.ObservedGeneration == 0 {
		c.ObservedGeneration = obj.GetGeneration()
	}
	return meta.SetStatusCondition(conditions, c)
}

// SetReady sets the condition Ready to True and takes Reconciling and Stalled
// away.
func SetReady(obj client.Object, conditions *[]metav1.Condition, reason, message string) {
	meta.RemoveStatusCondition(conditions, ReconcilingCondition)
	meta.RemoveStatusCondition(conditions, StalledCondition)
	set(obj, conditions, ReadyCondition, metav1.ConditionTrue, reason, message)
}

// SetReconciling sets Ready to False and Reconciling to True: it will be ready
// by itself.
func SetReconciling(obj client.Object, conditions *[]metav1.Condition, reason, message string) {
	meta.RemoveStatusCondition(conditions, StalledCondition)
	set(obj, conditions, ReadyCondition, metav1.ConditionFalse, reason, message)
	set(obj, conditions, ReconcilingCondition, metav1.ConditionTrue, reason, message)
}

// SetStalled sets Ready to False and Stalled to True: a user has to change
// something.
func SetStalled(obj client.Object, conditions *[]metav1.Condition, reason, message string) {
	meta.RemoveStatusCondition(conditions, ReconcilingCondition)
	set(obj, conditions, ReadyCondition, metav1.ConditionFalse, reason, message)
	set(obj, conditions, StalledCondition, metav1.ConditionTrue, reason, message)
}

func set(obj client.Object, conditions *[]metav1.Condition, conditionType string, status metav1.ConditionStatus, reason, message string) {
	SetCondition(obj, conditions, metav1.Condition{Type: conditionType, Status: status, Reason: reason, Message: message})
}
