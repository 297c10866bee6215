// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"context"
	"errors"
	"math"
	"net/http"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/steer-dev/steer/apiserver/internal/exchange"
	"github.com/steer-dev/steer/apiserver/internal/negotiation"
	"github.com/steer-dev/steer/apiserver/internal/registry"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/storage"
)

// newScaleKind describes autoscaling/v1 Scale as a resource, so that it is decoded and
// encoded like one.
func newScaleKind(g *registry.Registry) *registry.Served {
	r := &resource.Resource{
		Names:    resource.Names{Group: "autoscaling", Plural: "scales", Singular: "scale", Kind: "Scale", ListKind: "ScaleList", Namespaced: true},
		Versions: []resource.Version{{Name: "v1", New: func() resource.Object { return &autoscalingv1.Scale{} }, Strategy: noRules{}, Printer: scalePrinter{}}},
		Storage:  resource.Storage{Version: "v1"},
	}
	return g.Serve(r)
}

// noRules is the strategy of kinds that another strategy validates.
type noRules struct{}

func (noRules) Default(resource.Object) ([]string, error)                 { return nil, nil }
func (noRules) Prepare(context.Context, resource.Object, resource.Object) {}
func (noRules) Validate(context.Context, resource.Object, resource.Object) field.ErrorList {
	return nil
}
func (noRules) Warnings(context.Context, resource.Object, resource.Object) []string { return nil }

type scalePrinter struct{}

func (scalePrinter) Columns() []metav1.TableColumnDefinition {
	doc := metav1.ObjectMeta{}.SwaggerDoc()
	return []metav1.TableColumnDefinition{
		{Name: "Name", Type: "string", Format: "name", Description: doc["name"]},
		{Name: "Desired", Type: "integer", Description: autoscalingv1.ScaleSpec{}.SwaggerDoc()["replicas"]},
		{Name: "Available", Type: "integer", Description: autoscalingv1.ScaleStatus{}.SwaggerDoc()["replicas"]},
	}
}

func (scalePrinter) Cells(obj resource.Object) ([]any, error) {
	scale := obj.(*autoscalingv1.Scale)
	return []any{scale.Name, int64(scale.Spec.Replicas), int64(scale.Status.Replicas)}, nil
}

func (h *Handler) answerScale(ctx context.Context, w *exchange.Writer, req *Request, choice negotiation.Choice, scale *autoscalingv1.Scale) error {
	v := &h.scale.Versions[0]
	rec, err := h.registry.TransientRecord(h.scale, v, scale)
	if err != nil {
		return err
	}
	return h.answerRecord(ctx, w, req, choice, 200, h.scale, v, rec)
}

// updateScale answers a PUT of a Scale.
func (h *Handler) updateScale(ctx context.Context, w *exchange.Writer, req *Request) error {
	choice, err := req.negotiate(req.answerOffer())
	if err != nil {
		return err
	}
	put, options, err := h.readUpdate(req, h.scale, &h.scale.Versions[0])
	if err != nil {
		return err
	}
	op := h.newOperation(req, writeOptions(options.DryRun, options.FieldManager, options.FieldValidation))
	return h.writeScale(ctx, w, req, choice, op, func(ctx context.Context, old *autoscalingv1.Scale) (resource.Object, error) {
		wished, err := put.object()
		if err != nil || req.Sub.FieldManager == nil {
			return wished, err
		}
		return req.Sub.FieldManager.Update(ctx, old, wished, op.Manager)
	})
}

// patchScale answers a PATCH of a Scale.
func (h *Handler) patchScale(ctx context.Context, w *exchange.Writer, req *Request, choice negotiation.Choice, p *patcher, t types.PatchType, options *metav1.PatchOptions) error {
	v := h.scale.Versions[0]
	v.StrategicMerge = req.Version.StrategicMerge
	p.v, p.kind = &v, h.scale.GroupVersionKind("v1")
	p.strategy, p.ownership = noRules{}, req.Sub.FieldManager
	if err := h.parsePatch(req, p, t, options); err != nil {
		return err
	}
	return h.writeScale(ctx, w, req, choice, p.op, func(ctx context.Context, old *autoscalingv1.Scale) (resource.Object, error) {
		return p.change(ctx, old, nil)
	})
}

// unsetReplicas marks a Scale whose object has no replica count.
const unsetReplicas = math.MinInt32

// writeScale applies a change of a Scale to the object that it scales.
func (h *Handler) writeScale(ctx context.Context, w *exchange.Writer, req *Request, choice negotiation.Choice, op *registry.Operation, change func(context.Context, *autoscalingv1.Scale) (resource.Object, error)) error {
	record, _ := req.Sub.FieldManager.(resource.ScaleFieldManager)
	rec, obj, err := h.replace(ctx, req, op, func(ctx context.Context, old resource.Object) (resource.Object, error) {
		scale, missing := registry.Scale(req.Sub.Scale, old)
		if missing != nil {
			// The object has no replica count to read, but it can be set.
			scale = registry.BareScale(old)
			scale.Spec.Replicas = unsetReplicas
		}
		var err error
		if record != nil {
			if scale.ManagedFields, err = record.ToScale(old.GetManagedFields()); err != nil {
				return nil, err
			}
		}
		changed, err := change(ctx, scale)
		if err != nil {
			return nil, err
		}
		if changed, err = op.AdmitScale(ctx, changed, scale); err != nil {
			return nil, err
		}
		wished, ok := changed.(*autoscalingv1.Scale)
		if !ok {
			return nil, apierrors.NewInternalError(errors.New("admission replaced the Scale by something else"))
		}
		if wished.Spec.Replicas == unsetReplicas {
			return nil, missing
		}
		// The strategy of a custom resource validates the count under the name of its
		// own field.
		if wished.Spec.Replicas < 0 && req.Version.Typed() {
			return nil, apierrors.NewInvalid(autoscalingv1.SchemeGroupVersion.WithKind("Scale").GroupKind(), wished.Name, field.ErrorList{
				field.Invalid(field.NewPath("spec", "replicas"), wished.Spec.Replicas, "must be greater than or equal to 0"),
			})
		}
		obj := old.DeepCopyObject().(resource.Object)
		if err := req.Sub.Scale.SetReplicas(obj, wished.Spec.Replicas); err != nil {
			return nil, err
		}
		if wished.ResourceVersion != "" {
			obj.SetResourceVersion(wished.ResourceVersion)
		}
		if wished.UID != "" {
			obj.SetUID(wished.UID)
		}
		if record != nil {
			entries, err := record.ToParent(old.GetManagedFields(), wished.ManagedFields)
			if err != nil {
				return nil, err
			}
			obj.SetManagedFields(entries)
		}
		return obj, nil
	})
	if err != nil {
		return err
	}
	if rec != nil {
		obj, err = h.registry.Object(ctx, req.Served, req.Version, rec)
	} else {
		c := &backendHandler{h: h, in: req.Served, v: req.Version}
		obj, err = c.current(ctx, req, obj)
	}
	if err != nil {
		return err
	}
	scale, err := registry.Scale(req.Sub.Scale, obj)
	if err != nil && !apierrors.IsInternalError(err) { // the stored version may have no replica count
		return err
	}
	return h.answerScale(ctx, w, req, choice, scale)
}

// replace replaces an object, in the store or by its backend. It returns the record, or, from a
// backend, the object.
func (h *Handler) replace(ctx context.Context, req *Request, op *registry.Operation, wished change) (rec *storage.Record, obj resource.Object, err error) {
	switch b := req.Served.Backend.(type) {
	case nil:
		rec, _, err = op.Replace(ctx, func(ctx context.Context, old resource.Object, _ *storage.Record) (resource.Object, error) {
			return wished(ctx, old)
		})
	case resource.Updater:
		c := &backendHandler{h: h, in: req.Served, v: req.Version}
		obj, err = c.replace(ctx, req, op, b, wished)
	default:
		err = Refusal(http.StatusMethodNotAllowed, "")
	}
	return rec, obj, err
}
