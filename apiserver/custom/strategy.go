// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package custom

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kschema "k8s.io/apimachinery/pkg/runtime/schema"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/apiserver/pkg/warning"

	"github.com/steer-dev/steer/apiserver/internal/doc"
	"github.com/steer-dev/steer/apiserver/resource"
)

// strategy holds the rules of one version of a custom resource.
type strategy struct {
	kind   kschema.GroupVersionKind
	schema *Schema
	// hasStatus reports whether status is a subresource.
	hasStatus bool
	scale     *scale
	// hooks are the rules in Go; nil: none.
	hooks hooks
}

// hooks are rules in Go on objects of one version. They do not change before, which is nil for
// a creation.
type hooks interface {
	setDefaults(d *resource.Doc)
	prepare(ctx context.Context, d, before *resource.Doc, status bool)
	validate(ctx context.Context, d, before *resource.Doc, status bool) field.ErrorList
	warnings(ctx context.Context, d, before *resource.Doc) []string
}

var _ resource.Strategy = (*strategy)(nil)

// Default coerces metadata, prunes what the schema does not know, drops nulls
// that it does not allow, and sets defaults.
func (s *strategy) Default(obj resource.Object) ([]string, error) {
	return s.applyDefaults(obj, coercion{dropNulls: true, defaults: true})
}

// defaultApplied is Default for the result of an apply, whose nulls stay.
func (s *strategy) defaultApplied(obj resource.Object) error {
	_, err := s.applyDefaults(obj, coercion{defaults: true})
	return err
}

func (s *strategy) applyDefaults(obj resource.Object, c coercion) ([]string, error) {
	d := obj.(*resource.Doc)
	unknown, err := s.coerce(d, c)
	if err == nil && s.hooks != nil {
		s.hooks.setDefaults(d)
	}
	return unknown, err
}

// coercion says what is done beside coercing metadata and pruning.
type coercion struct {
	// dropNulls drops nulls that the schema does not allow and that no default replaces.
	dropNulls bool
	defaults  bool
}

// coerce does as c says. What pruning and defaults would leave as it is, is not decoded.
func (s *strategy) coerce(d *resource.Doc, c coercion) ([]string, error) {
	structural, err := s.schema.Structural()
	if err != nil {
		return nil, err
	}
	kind, hasKind, err := textOf(d, "kind")
	if err != nil {
		return nil, err
	}
	apiVersion, hasVersion, err := textOf(d, "apiVersion")
	if err != nil {
		return nil, err
	}
	// The schema says nothing of what claims to be of another kind; it is refused later.
	unchanged := s.schema.defaulted().Accepts(d) || kind != s.kind.Kind || !strings.HasPrefix(apiVersion, s.kind.Group+"/")
	canonical := fastMetadata(d)
	names := []string{"metadata"}
	switch {
	case !unchanged || s.schema.features().embeds:
		names = nil // all
	case canonical:
		return nil, nil
	}
	content := d.Content(names...)
	var unknown []string
	var meta *metav1.ObjectMeta
	metadata, hasMeta := content["metadata"]
	if !canonical {
		meta, hasMeta, unknown, err = objectmeta.GetObjectMetaWithOptions(content, objectmeta.ObjectMetaOptions{ReturnUnknownFieldPaths: true})
		if err != nil {
			return nil, err
		}
	}
	if !unchanged {
		unknown = append(unknown, pruning.PruneWithOptions(content, structural, true, schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})...)
		if c.dropNulls {
			defaulting.PruneNonNullableNullsWithoutDefaults(content, structural)
		}
	}
	if names == nil && s.schema.features().embeds {
		coerceErr, dropped := objectmeta.CoerceWithOptions(nil, content, structural, false, objectmeta.CoerceOptions{ReturnUnknownFieldPaths: true})
		if coerceErr != nil {
			return nil, coerceErr
		}
		unknown = append(unknown, dropped...)
	}
	// Pruning knows nothing of type and object metadata.
	if hasKind {
		content["kind"] = kind
	}
	if hasVersion {
		content["apiVersion"] = apiVersion
	}
	if canonical {
		content["metadata"] = metadata
	} else if hasMeta {
		if err := objectmeta.SetObjectMeta(content, meta); err != nil {
			return nil, err
		}
	}
	if c.defaults && !unchanged && s.schema.features().defaults {
		defaulting.Default(content, structural)
	}
	d.SetContent(content, names...)
	return unknown, nil
}

// textOf returns a member that has to be a string, and whether it is there.
func textOf(d *resource.Doc, name string) (text string, has bool, err error) {
	value := d.Member(name)
	if text, ok := value.String(); ok || !value.Exists() {
		return text, ok, nil
	}
	return unstructured.NestedString(d.Content(name), name)
}

// Prepare keeps status out of the hands of those who write the object when it
// is a subresource, and counts the generation.
func (s *strategy) Prepare(ctx context.Context, obj, old resource.Object) {
	d := obj.(*resource.Doc)
	if old == nil {
		if s.hasStatus {
			d.SetMember("status", doc.Value{})
		}
		s.prepare(ctx, d, nil, false)
		d.SetGeneration(1)
		return
	}
	before := old.(*resource.Doc)
	if s.hasStatus {
		d.SetMember("status", before.Member("status"))
	}
	s.prepare(ctx, d, before, false)
	d.SetGeneration(before.GetGeneration())
	if !d.EqualBeyondMetadata(before) {
		d.SetGeneration(before.GetGeneration() + 1)
	}
}

// prepare calls the rules in Go.
func (s *strategy) prepare(ctx context.Context, d, before *resource.Doc, status bool) {
	if s.hooks != nil {
		s.hooks.prepare(ctx, d, before, status)
	}
}

// Validate checks the object against schema, list types and rules, and then by the rules in
// Go. The schema and its rules accept what an update does not change.
func (s *strategy) Validate(ctx context.Context, obj, old resource.Object) field.ErrorList {
	return s.validated(ctx, obj, old, s.validateSchema(ctx, obj, old), false)
}

// validated returns the errors that were found, or those of the rules in Go if there were
// none.
func (s *strategy) validated(ctx context.Context, obj, old resource.Object, found field.ErrorList, status bool) field.ErrorList {
	if len(found) > 0 || s.hooks == nil {
		return found
	}
	return s.hooks.validate(ctx, docOf(obj), docOf(old), status)
}

// docOf returns an object as what it is, nil for no object.
func docOf(obj resource.Object) *resource.Doc {
	d, _ := obj.(*resource.Doc)
	return d
}

func (s *strategy) validateSchema(ctx context.Context, obj, old resource.Object) field.ErrorList {
	d := obj.(*resource.Doc)
	if errs := s.validateType(d); len(errs) > 0 {
		return errs
	}
	structural, v, err := s.compiled()
	if err != nil {
		return field.ErrorList{field.InternalError(nil, err)}
	}
	var errs field.ErrorList
	var before map[string]any
	var correlated *common.CorrelatedObject
	accepted := v.fastObject.Accepts(d)
	if accepted && s.simple() {
		return nil
	}
	content := d.Content()
	if old == nil {
		if !accepted {
			errs = append(errs, validation.ValidateCustomResource(nil, content, v.object)...)
		}
	} else {
		before = docOf(old).Content()
		correlated = common.NewCorrelatedObject(content, before, &model.Structural{Structural: structural})
		if !accepted {
			errs = append(errs, validation.ValidateCustomResourceUpdate(nil, content, before, v.object, validation.WithRatcheting(correlated))...)
		}
	}
	errs = append(errs, s.scale.validateSpec(content)...)
	errs = append(errs, s.scale.validateStatus(content)...)
	if s.schema.features().embeds {
		errs = append(errs, validateEmbedded(ctx, content, structural)...)
	}
	return append(errs, s.validateInvariants(ctx, structural, content, before, correlated, errs)...)
}

// simple reports whether an object is valid when its schema accepts it: there are no rules
// beside.
func (s *strategy) simple() bool {
	has := s.schema.features()
	return !has.lists && !has.embeds && s.scale == nil && s.schema.rules() == nil
}

// compiled returns the forms of the schema that validation needs.
func (s *strategy) compiled() (*schema.Structural, *validators, error) {
	structural, err := s.schema.Structural()
	if err != nil {
		return nil, nil, err
	}
	v, err := s.schema.validators()
	return structural, v, err
}

// validateType checks that the object is of the kind that is served. Without
// that, nothing else that could be said about it would help.
func (s *strategy) validateType(d *resource.Doc) field.ErrorList {
	var errs field.ErrorList
	if kind := d.GetKind(); kind != s.kind.Kind {
		errs = append(errs, field.Invalid(field.NewPath("kind"), kind, "must be "+s.kind.Kind))
	}
	if want, got := s.kind.GroupVersion().String(), d.GetAPIVersion(); got != want {
		errs = append(errs, field.Invalid(field.NewPath("apiVersion"), got, "must be "+want))
	}
	return errs
}

// validateInvariants checks what holds between several fields: uniqueness in
// lists, and the rules unless found has errors that would make them misfire.
func (s *strategy) validateInvariants(ctx context.Context, structural *schema.Structural, content, before map[string]any, correlated *common.CorrelatedObject, found field.ErrorList) field.ErrorList {
	var errs field.ErrorList
	if s.schema.features().lists {
		errs = listtype.ValidateListSetsAndMaps(nil, structural, content)
	}
	if len(errs) > 0 && before != nil && len(listtype.ValidateListSetsAndMaps(nil, structural, before)) > 0 {
		errs = nil
	}
	rules := s.schema.rules()
	if rules == nil {
		return errs
	}
	if blocking(found) || blocking(errs) || blockingMetadata(content) {
		return append(errs, field.Invalid(nil, nil, "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation"))
	}
	var old any
	var options []cel.Option
	if before != nil {
		old = before
		options = append(options, cel.WithRatcheting(correlated))
	}
	// What ratcheting forgives becomes a warning.
	ctx = warning.WithWarningRecorder(ctx, recorder{resource.RequestFrom(ctx)})
	broken, _ := rules.Validate(ctx, nil, structural, content, old, celconfig.RuntimeCELCostBudget, options...)
	return append(errs, broken...)
}

// recorder passes the warnings of the rules on.
type recorder struct{ request *resource.Request }

// AddWarning implements [warning.Recorder].
func (r recorder) AddWarning(_, text string) {
	if r.request != nil {
		r.request.Warn(text)
	}
}

// blocking reports whether an error means that values do not have the types that
// rules count on.
func blocking(errs field.ErrorList) bool {
	return slices.ContainsFunc(errs, func(e *field.Error) bool {
		switch e.Type {
		case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
			return true
		}
		return false
	})
}

// blockingMetadata reports whether metadata, which is validated with that of all kinds, has
// an error as those above.
func blockingMetadata(content map[string]any) bool {
	u := unstructured.Unstructured{Object: content}
	return u.GetName() == "" || apivalidation.ValidateAnnotationsSize(u.GetAnnotations()) != nil
}

// Warnings returns those about finalizers whose names are not qualified by a domain, and
// those of the rules in Go.
func (s *strategy) Warnings(ctx context.Context, obj, old resource.Object) []string {
	var known []string
	if old != nil {
		known = old.GetFinalizers()
	}
	added := slices.DeleteFunc(slices.Clone(obj.GetFinalizers()), func(f string) bool { return slices.Contains(known, f) })
	slices.Sort(added)
	var warnings []string
	for _, f := range slices.Compact(added) {
		warnings = append(warnings, finalizerWarnings(f)...)
	}
	if s.hooks != nil {
		warnings = append(warnings, s.hooks.warnings(ctx, docOf(obj), docOf(old))...)
	}
	return warnings
}

func finalizerWarnings(name string) []string {
	const path = "metadata.finalizers"
	var out []string
	for _, message := range utilvalidation.IsQualifiedName(name) {
		out = append(out, fmt.Sprintf("%s: %q: %s", path, name, message))
	}
	switch {
	case strings.Contains(name, "/"):
	case name == metav1.FinalizerOrphanDependents, name == metav1.FinalizerDeleteDependents, name == "kubernetes":
	case strings.Contains(name, "."):
		out = append(out, fmt.Sprintf("%s: %q: prefer a domain-qualified finalizer name including a path (/) to avoid accidental conflicts with other finalizer writers", path, name))
	default:
		out = append(out, fmt.Sprintf("%s: %q: prefer a domain-qualified finalizer name to avoid accidental conflicts with other finalizer writers", path, name))
	}
	return out
}

// canonicalizer returns the Canonicalize of the stored version. It gives an object the
// default of a status that its creation has left out, and drops a count that a write of its
// scale has set and the schema does not know. nil if there is neither.
func (s *strategy) canonicalizer() func(resource.Object) {
	structural, err := s.schema.Structural()
	if err != nil || structural == nil {
		return nil
	}
	status := structural.Properties["status"]
	fills := s.hasStatus && status.Default.Object != nil
	only := &schema.Structural{Properties: map[string]schema.Structural{"status": status}}
	var drops []string
	if s.scale != nil && !knows(structural, fieldsOf(s.scale.specPath)) {
		drops = fieldsOf(s.scale.specPath)
	}
	if !fills && drops == nil {
		return nil
	}
	return func(obj resource.Object) {
		d := obj.(*resource.Doc)
		if drops != nil && d.Has(drops[0]) {
			content := d.Content(drops[0])
			unstructured.RemoveNestedField(content, drops...)
			d.SetContent(content, drops[0])
		}
		if fills && !d.Has("status") {
			read := map[string]any{}
			defaulting.Default(read, only)
			d.SetContent(read, "status")
		}
	}
}

// knows reports whether a schema keeps a field.
func knows(structural *schema.Structural, path []string) bool {
	for _, name := range path {
		switch property, known := structural.Properties[name]; {
		case known:
			structural = &property
		case structural.AdditionalProperties != nil:
			if structural = structural.AdditionalProperties.Structural; structural == nil {
				return true
			}
		default:
			return structural.XPreserveUnknownFields
		}
	}
	return true
}

// prune removes what the schema does not know from an object that was converted
// from another version. It sets no defaults: only requests in a version, and
// what is read in the version it was stored in, get those.
func (s *strategy) prune(obj resource.Object) {
	// Whatever could fail here has been checked when the object was stored.
	_, _ = s.coerce(obj.(*resource.Doc), coercion{dropNulls: true})
}
