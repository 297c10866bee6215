// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"errors"
	"math"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/steer-dev/steer/apiserver/internal/exchange"
	"github.com/steer-dev/steer/apiserver/internal/negotiate"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/storage"
)

// newScaleKind describes Scale as if it were a resource, for the decoding and
// encoding of it.
func newScaleKind() *installed {
	r := &resource.Resource{
		Names:    resource.Names{Group: "autoscaling", Plural: "scales", Singular: "scale", Kind: "Scale", ListKind: "ScaleList", Namespaced: true},
		Versions: []resource.Version{{Name: "v1", New: func() resource.Object { return &autoscalingv1.Scale{} }, Strategy: anything{}, Printer: scalePrinter{}}},
		Storage:  resource.Storage{Version: "v1"},
	}
	return &installed{Resource: r, versions: map[string]*resource.Version{"v1": &r.Versions[0]}}
}

// anything is the strategy of kinds whose rules are elsewhere.
type anything struct{}

func (anything) Normalize(resource.Object) ([]string, error)               { return nil, nil }
func (anything) Prepare(context.Context, resource.Object, resource.Object) {}
func (anything) Validate(context.Context, resource.Object, resource.Object) field.ErrorList {
	return nil
}
func (anything) Warnings(context.Context, resource.Object, resource.Object) []string { return nil }

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

// answerOffer is what a request can be answered with.
func (r *request) answerOffer() negotiate.Offer {
	offer := r.offer()
	if r.sub != nil && r.sub.Scale != nil {
		offer.Protobuf = true
	}
	return offer
}

// scaleOf shows an object as a Scale.
func (r *request) scaleOf(obj resource.Object) (*autoscalingv1.Scale, error) {
	spec, status, selector, err := r.sub.Scale.Replicas(obj)
	if err != nil {
		return nil, err
	}
	scale := r.scaleMeta(obj)
	scale.Spec.Replicas, scale.Status.Replicas, scale.Status.Selector = spec, status, selector
	return scale, nil
}

// unset is the count of a Scale whose object has none.
const unset = math.MinInt32

// scaleMeta is a Scale with nothing but the identity of its object.
func (r *request) scaleMeta(obj resource.Object) *autoscalingv1.Scale {
	return &autoscalingv1.Scale{
		TypeMeta: metav1.TypeMeta{APIVersion: "autoscaling/v1", Kind: "Scale"},
		ObjectMeta: metav1.ObjectMeta{
			Name: obj.GetName(), Namespace: obj.GetNamespace(), UID: obj.GetUID(),
			ResourceVersion: obj.GetResourceVersion(), CreationTimestamp: obj.GetCreationTimestamp(),
		},
	}
}

func (s *Server) answerScale(ctx context.Context, w *exchange.Writer, req *request, choice negotiate.Choice, code int, obj resource.Object) error {
	scale, err := req.scaleOf(obj)
	if err != nil {
		return err
	}
	v := &s.scale.Versions[0]
	rec, err := s.transient(s.scale, v, scale)
	if err != nil {
		return err
	}
	return s.answerRecord(ctx, w, req, choice, code, s.scale, v, rec)
}

// updateScale answers a PUT of a Scale.
func (s *Server) updateScale(ctx context.Context, w *exchange.Writer, req *request) error {
	choice, err := req.negotiate(req.answerOffer())
	if err != nil {
		return err
	}
	data, err := s.readBody(req)
	if err != nil {
		return err
	}
	options, err := updateOptions(req)
	if err != nil {
		return err
	}
	media, err := negotiate.Input(req.http.Header.Get("Content-Type"), negotiate.Offer{Protobuf: true})
	if err != nil {
		return err
	}
	v := &s.scale.Versions[0]
	d := s.decoder(s.scale, v, options.FieldValidation)
	obj, err := d.body(req, media, data)
	if err != nil {
		return err
	}
	if err := settleNamespace(req, req.in, obj); err != nil {
		return err
	}
	if err := checkName(req, obj); err != nil {
		return err
	}
	wr := s.newWrite(req, options.DryRun, options.FieldManager, options.FieldValidation)
	return s.writeScale(ctx, w, req, choice, wr, func(_ context.Context, old *autoscalingv1.Scale) (resource.Object, error) {
		wished := obj.DeepCopyObject().(resource.Object)
		if req.sub.Ownership == nil {
			return wished, nil
		}
		return req.sub.Ownership.Update(old, wished, wr.manager)
	})
}

// patchScale answers a PATCH of a Scale.
func (s *Server) patchScale(ctx context.Context, w *exchange.Writer, req *request, choice negotiate.Choice, p *patching, t types.PatchType, options *metav1.PatchOptions) error {
	p.v, p.kind = &s.scale.Versions[0], s.scale.GroupVersionKind("v1")
	p.strategy, p.ownership = anything{}, req.sub.Ownership
	if err := p.parse(t, options); err != nil {
		return err
	}
	return s.writeScale(ctx, w, req, choice, p.wr, func(ctx context.Context, old *autoscalingv1.Scale) (resource.Object, error) {
		return p.change(ctx, old, nil)
	})
}

// writeScale carries a change of a Scale over to the object.
func (s *Server) writeScale(ctx context.Context, w *exchange.Writer, req *request, choice negotiate.Choice, wr *write, change func(context.Context, *autoscalingv1.Scale) (resource.Object, error)) error {
	record, _ := req.sub.Ownership.(resource.ScaleOwnership)
	rec, _, err := wr.replace(ctx, func(ctx context.Context, old resource.Object, _ *storage.Record) (resource.Object, error) {
		scale, missing := req.scaleOf(old)
		if missing != nil {
			// Without a count there is nothing to read, but one can be set.
			scale = req.scaleMeta(old)
			scale.Spec.Replicas = unset
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
		if changed, err = wr.admitScale(ctx, changed, scale); err != nil {
			return nil, err
		}
		wished, ok := changed.(*autoscalingv1.Scale)
		if !ok {
			return nil, apierrors.NewInternalError(errors.New("admission replaced the Scale by something else"))
		}
		if wished.Spec.Replicas == unset {
			return nil, missing
		}
		// The strategy of a custom resource knows its own field by name.
		if wished.Spec.Replicas < 0 && req.Version.Typed() {
			return nil, apierrors.NewInvalid(autoscalingv1.SchemeGroupVersion.WithKind("Scale").GroupKind(), wished.Name, field.ErrorList{
				field.Invalid(field.NewPath("spec", "replicas"), wished.Spec.Replicas, "must be greater than or equal to 0"),
			})
		}
		obj := old.DeepCopyObject().(resource.Object)
		if err := req.sub.Scale.SetReplicas(obj, wished.Spec.Replicas); err != nil {
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
	obj, err := s.object(ctx, req.in, req.Version, rec)
	if err != nil {
		return err
	}
	return s.answerScale(ctx, w, req, choice, 200, obj)
}

func (wr *write) admitScale(ctx context.Context, scale, old resource.Object) (resource.Object, error) {
	if wr.s.options.Admission == nil {
		return scale, nil
	}
	a := wr.admission(scale, old)
	err := wr.s.options.Admission.Admit(ctx, a)
	return a.Object, err
}
