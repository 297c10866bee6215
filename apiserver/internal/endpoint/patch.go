// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/steer-dev/steer/apiserver/internal/body"
	"github.com/steer-dev/steer/apiserver/internal/doc"
	"github.com/steer-dev/steer/apiserver/internal/exchange"
	"github.com/steer-dev/steer/apiserver/internal/negotiation"
	"github.com/steer-dev/steer/apiserver/internal/objectmeta"
	"github.com/steer-dev/steer/apiserver/internal/registry"
	"github.com/steer-dev/steer/apiserver/patch"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/internal/jsontext"
	"github.com/steer-dev/steer/storage"
)

// patch answers a PATCH of an object or a subresource of it.
func (h *Handler) patch(ctx context.Context, w *exchange.Writer, req *Request) error {
	t := types.PatchType(mediaType(req.HTTP))
	if supported := req.patchTypes(); !slices.Contains(supported, string(t)) {
		if req.Version.Typed() {
			return Refusal(http.StatusUnsupportedMediaType, "415: Unsupported Media Type")
		}
		return negotiation.Unsupported(supported)
	}
	choice, err := req.negotiate(req.answerOffer())
	if err != nil {
		return err
	}
	data, err := h.readBody(req)
	if err != nil {
		return err
	}
	options, err := patchOptions(req, t)
	if err != nil {
		return err
	}
	op := h.newOperation(req, writeOptions(options.DryRun, options.FieldManager, options.FieldValidation))
	p := h.newPatcher(op, options.FieldValidation, data)
	if req.Sub != nil && req.Sub.Scale != nil {
		return h.patchScale(ctx, w, req, choice, p, t, options)
	}
	if err := h.parsePatch(req, p, t, options); err != nil {
		return err
	}
	op.Applies = p.applied != nil
	op.Creates = op.Applies && req.Sub == nil
	rec, created, err := op.Replace(ctx, func(ctx context.Context, old resource.Object, rec *storage.Record) (resource.Object, error) {
		obj, err := p.change(ctx, old, rec)
		if err != nil {
			return nil, err
		}
		if old == nil {
			return op.PrepareApplied(ctx, obj)
		}
		return op.AdmitRevision(ctx, obj, old)
	})
	if err != nil {
		return err
	}
	return h.answerRecord(ctx, w, req, choice, codeOf(created), req.Served, req.Version, rec)
}

// mediaType is the Content-Type without its parameters.
func mediaType(r *http.Request) string {
	contentType, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	return strings.TrimSpace(contentType)
}

// patchTypes returns the patch formats that a resource supports.
func (r *Request) patchTypes() []string {
	out := []string{string(types.JSONPatchType), string(types.MergePatchType)}
	if r.Version.StrategicMerge {
		out = append(out, string(types.StrategicMergePatchType))
	}
	return append(out, string(types.ApplyYAMLPatchType))
}

// patcher turns the current object into the desired one. It may run several times, once
// per conflicting write.
type patcher struct {
	h         *Handler
	op        *registry.Operation
	kind      schema.GroupVersionKind
	v         *resource.Version
	strategy  resource.Strategy
	ownership resource.FieldManager
	directive string
	body      []byte

	// Exactly one of patch and applied is set.
	patch     patch.Patch
	strategic bool
	applied   *resource.Doc
	findings  []error // strict decoding errors of the applied configuration
	force     bool
}

// newPatcher prepares a patch; validation is the fieldValidation option of the request.
func (h *Handler) newPatcher(op *registry.Operation, validation string, body []byte) *patcher {
	return &patcher{
		h: h, op: op, kind: op.Served.GroupVersionKind(op.Version.Name), v: op.Version, strategy: op.Strategy, ownership: op.FieldManager,
		directive: effectiveFieldValidation(validation), body: body,
	}
}

// parsePatch reads the patch of a request.
func (h *Handler) parsePatch(req *Request, p *patcher, t types.PatchType, options *metav1.PatchOptions) error {
	if err := p.parse(t, options); err != nil {
		return err
	}
	if p.applied != nil {
		h.event(req).AppliedObject(p.applied)
	} else {
		h.event(req).Request(p.body)
	}
	return nil
}

// parse reads the patch.
func (p *patcher) parse(t types.PatchType, options *metav1.PatchOptions) (err error) {
	if t == types.ApplyYAMLPatchType {
		return p.parseApplied(options)
	}
	o := patch.Options{Strict: p.directive != metav1.FieldValidationIgnore, MaxOperations: p.h.options.PatchOperations}
	if p.v.StrategicMerge && p.v.Typed() {
		if o.Schema, err = strategicpatch.NewPatchMetaFromStruct(p.v.New()); err != nil {
			return err
		}
	}
	p.strategic = t == types.StrategicMergePatchType
	p.patch, err = patch.Parse(t, p.body, o)
	return err
}

func (p *patcher) parseApplied(options *metav1.PatchOptions) error {
	if p.ownership == nil {
		return apierrors.NewGenericServerResponse(501, "apply", schema.GroupResource{Group: p.kind.Group, Resource: p.kind.Kind}, "",
			"this server does not track the fields of this kind, so nothing can be applied to it", 0, false)
	}
	p.force = options.Force != nil && *options.Force
	if jsontext.PlainYAML(p.body) {
		var plain bool
		if p.applied, plain = doc.ParseFast(p.body); plain {
			return nil
		}
	}
	if p.directive != metav1.FieldValidationIgnore {
		if _, err := yaml.YAMLToJSONStrict(p.body); err != nil {
			if _, lenient := yaml.YAMLToJSON(p.body); lenient == nil {
				p.findings = []error{fmt.Errorf("error converting YAML to JSON: %w", err)}
			}
		}
	}
	raw, err := yaml.YAMLToJSON(p.body)
	if err != nil {
		return apierrors.NewBadRequest(fmt.Sprintf("error encoding patch: %v", err))
	}
	if p.applied, err = resource.ParseDoc(raw); err != nil {
		return apierrors.NewBadRequest(fmt.Sprintf("error decoding YAML: %v", err))
	}
	return nil
}

// change returns the object with the patch applied; rec is the record that old was
// decoded from, or nil.
//
// The result may share memory with old. That is safe because later defaulting and
// pruning do not change what is valid already, and old is; unless old comes from a
// backend rather than the store.
func (p *patcher) change(ctx context.Context, old resource.Object, rec *storage.Record) (obj resource.Object, err error) {
	base := old
	if old != nil && (rec == nil || !p.op.Served.IsStoredVersion(rec, p.v)) {
		base = old.DeepCopyObject().(resource.Object)
	}
	if p.applied != nil {
		obj, err = p.apply(ctx, base)
	} else {
		obj, err = p.patched(ctx, base, rec)
	}
	if err != nil {
		return nil, err
	}
	if old == nil && obj.GetUID() != "" {
		return nil, apierrors.NewConflict(p.op.Served.GroupResource(), p.op.Request.Name, fmt.Errorf("uid mismatch: the provided object specified uid %s, and no existing object was found", obj.GetUID()))
	}
	if err := objectmeta.EnsureNamespace(p.op.Request, p.op.Served.Resource, obj); err != nil {
		return nil, err
	}
	return obj, objectmeta.EnsureName(p.op.Request, obj)
}

// apply merges the applied configuration.
func (p *patcher) apply(ctx context.Context, old resource.Object) (resource.Object, error) {
	if old == nil {
		old = p.v.NewObject()
		old.GetObjectKind().SetGroupVersionKind(p.kind)
	}
	obj, err := p.ownership.Apply(ctx, old, p.applied, p.op.Manager, p.force)
	if err != nil {
		return nil, err
	}
	if p.v.DefaultApplied != nil {
		err = p.v.DefaultApplied(obj)
	} else {
		_, err = p.strategy.Default(obj)
	}
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if len(p.findings) > 0 {
		if p.directive == metav1.FieldValidationStrict {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("error strict decoding patch: %v", p.findings[0]))
		}
		body.Warn(p.op.Request, p.findings)
	}
	return obj, nil
}

// patched applies a patch to the text of an object.
func (p *patcher) patched(ctx context.Context, old resource.Object, rec *storage.Record) (resource.Object, error) {
	d, custom := old.(*resource.Doc)
	if !custom {
		value, err := p.encoded(ctx, old, rec)
		if err != nil {
			return nil, err
		}
		if d, err = resource.ParseDoc(value); err != nil {
			return nil, err
		}
	}
	patched, err := p.patch.Apply(d)
	if err != nil {
		return nil, err
	}
	var obj resource.Object
	var more []error
	var invalid error
	if custom {
		obj, invalid = patched, missingKind(patched)
	} else {
		d := body.Decoder{Kind: p.kind, Version: p.v, Known: p.h.options.Known}
		obj, more, invalid = d.Patched(patched, p.strategic)
	}
	var unknown []string
	if invalid == nil {
		unknown, invalid = p.strategy.Default(obj)
	}
	if invalid != nil {
		return nil, p.refuse(ctx, old, rec, invalid)
	}
	findings := slices.Clone(p.patch.Strict())
	for _, path := range unknown {
		more = append(more, fmt.Errorf("unknown field %q", path))
	}
	if p.directive != metav1.FieldValidationIgnore {
		findings = append(findings, more...)
	}
	if len(findings) > 0 {
		if p.directive == metav1.FieldValidationStrict {
			return nil, p.refuse(ctx, old, rec, runtime.NewStrictDecodingError(findings))
		}
		body.Warn(p.op.Request, findings)
	}
	if p.ownership == nil {
		return obj, nil
	}
	return p.ownership.Update(ctx, old, obj, p.op.Manager)
}

// encoded returns the object to be patched as JSON.
func (p *patcher) encoded(ctx context.Context, old resource.Object, rec *storage.Record) ([]byte, error) {
	if rec != nil {
		return p.h.registry.JSON(ctx, p.op.Served, p.v, rec)
	}
	return resource.EncodeObject(old)
}

func missingKind(d *resource.Doc) error {
	if d.GetKind() == "" {
		return runtime.NewMissingKindErr("patched object")
	}
	return nil
}

// refuse returns the 422 for a patch whose result is not an object of the kind. The
// message quotes the result before defaulting, or a strategic merge patch itself.
func (p *patcher) refuse(ctx context.Context, old resource.Object, rec *storage.Record, err error) error {
	var shown string
	if p.strategic {
		var sent map[string]any
		if err := kjson.UnmarshalCaseSensitivePreserveInts(p.body, &sent); err != nil {
			return err
		}
		shown = fmt.Sprintf("%+v", sent)
	} else {
		original, err := p.encoded(ctx, old, rec)
		if err != nil {
			return err
		}
		d, err := resource.ParseDoc(original)
		if err != nil {
			return err
		}
		patched, err := p.patch.Apply(d)
		if err != nil {
			return err
		}
		raw, err := patch.Quote(original, d.Content(), patched.Content())
		if err != nil {
			return err
		}
		shown = string(raw)
	}
	return apierrors.NewInvalid(schema.GroupKind{}, "", field.ErrorList{field.Invalid(field.NewPath("patch"), shown, err.Error())})
}
