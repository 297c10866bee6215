// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package crdvalidation

import (
	"reflect"
	"slices"

	"github.com/google/cel-go/cel"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/cel/environment"
)

// ratcheting lists the errors that an update may have because the old definition has
// them. The zero value allows none.
type ratcheting struct {
	// old is the old spec, if there is one.
	old *apiextensions.CustomResourceDefinitionSpec
	// established definitions cannot change scope and kind.
	established bool
	// reviews: no version of ConversionReview must be supported.
	reviews bool
	// missing schemas, of versions that are not served or do not prune.
	missing bool
	// types that JSON does not have.
	types bool
	// unstructured schemas, if nothing else requires structural ones.
	unstructured bool
	// unpruned defaults.
	unpruned bool
	// granular items of sets.
	granular bool
	// keys of lists that may be missing, and nullable items.
	keys bool
	// caBundle without certificates.
	caBundle bool
	// crowded are versions with too many selectable fields; "" is the top level.
	crowded sets.Set[string]
	// unchanged are versions with an unchanged schema: their rules may exceed the cost
	// limit.
	unchanged sets.Set[string]
	known     expressions
}

// ratchetingOf returns the errors that an update of old may have.
func ratchetingOf(crd, old *apiextensions.CustomResourceDefinition) ratcheting {
	f := ratcheting{
		old:         &old.Spec,
		established: apiextensions.IsCRDConditionTrue(old, apiextensions.Established),
		missing:     lacksSchema(&old.Spec),
		crowded:     sets.New[string](),
		unchanged:   sets.New[string](),
		known:       expressions{rules: sets.New[string](), messages: sets.New[string]()},
	}
	if c := old.Spec.Conversion; c != nil {
		f.reviews = len(c.ConversionReviewVersions) > 0 && !slices.ContainsFunc(c.ConversionReviewVersions, isReview)
	}
	f.caBundle = !f.established || distrusts(old.Spec.Conversion)
	for root := range schemas(&old.Spec) {
		walk(root, f.see)
		f.unstructured = f.unstructured || !structural(root)
		f.unpruned = f.unpruned || hasUnprunedDefaults(root)
	}
	f.compare(crd, old)
	return f
}

// compare finds the unchanged versions.
func (f *ratcheting) compare(crd, old *apiextensions.CustomResourceDefinition) {
	crowded := func(now, before []apiextensions.SelectableField) bool {
		return len(before) > maxSelectable && equality.Semantic.DeepEqual(now, before)
	}
	if crowded(crd.Spec.SelectableFields, old.Spec.SelectableFields) {
		f.crowded.Insert("")
	}
	for i := range crd.Spec.Versions {
		v := &crd.Spec.Versions[i]
		now, err := apiextensions.GetSchemaForVersion(crd, v.Name)
		before, gone := apiextensions.GetSchemaForVersion(old, v.Name)
		if err == nil && gone == nil && equality.Semantic.DeepEqual(now, before) {
			f.unchanged.Insert(v.Name)
		}
		// Of versions with one name the last one is used.
		for j := range slices.Backward(old.Spec.Versions) {
			if o := &old.Spec.Versions[j]; o.Name == v.Name {
				if crowded(v.SelectableFields, o.SelectableFields) {
					f.crowded.Insert(v.Name)
				}
				break
			}
		}
	}
}

// see records the errors in a node of an old schema, and its rules.
func (f *ratcheting) see(s *apiextensions.JSONSchemaProps) {
	f.types = f.types || s.Type != "" && !slices.Contains(jsonTypes(), s.Type)
	f.granular = f.granular || granularItem(s) != ""
	f.keys = f.keys || len(looseKeys(s, nil)) > 0
	for i := range s.XValidations {
		f.known.rules.Insert(s.XValidations[i].Rule)
		if m := s.XValidations[i].MessageExpression; m != "" {
			f.known.messages.Insert(m)
		}
	}
}

// lacksSchema reports whether some version has no schema.
func lacksSchema(spec *apiextensions.CustomResourceDefinitionSpec) bool {
	return !hasSchema(spec.Validation) && slices.ContainsFunc(spec.Versions, func(v apiextensions.CustomResourceDefinitionVersion) bool {
		return !hasSchema(v.Schema)
	})
}

func hasSchema(v *apiextensions.CustomResourceValidation) bool {
	return v != nil && v.OpenAPIV3Schema != nil
}

func structural(s *apiextensions.JSONSchemaProps) bool {
	ss, err := schema.NewStructural(s)
	return err == nil && len(schema.ValidateStructural(nil, ss)) == 0
}

func hasUnprunedDefaults(s *apiextensions.JSONSchemaProps) bool {
	defaults := false
	walk(s, func(s *apiextensions.JSONSchemaProps) { defaults = defaults || s.Default != nil })
	if !defaults || !structural(s) {
		return false
	}
	ss, err := schema.NewStructural(s)
	if err != nil {
		return false
	}
	pruned := ss.DeepCopy()
	return defaulting.PruneDefaults(pruned) == nil && !reflect.DeepEqual(ss, pruned)
}

// expressions are those that were stored before: they may use functions that new ones
// may not.
type expressions struct{ rules, messages sets.Set[string] }

// RuleEnv is the environment that a rule is compiled in.
func (e expressions) RuleEnv(envs *environment.EnvSet, rule string) *cel.Env {
	return environmentOf(envs, e.rules.Has(rule))
}

// MessageExpressionEnv is the environment that a message is compiled in.
func (e expressions) MessageExpressionEnv(envs *environment.EnvSet, message string) *cel.Env {
	return environmentOf(envs, e.messages.Has(message))
}

func environmentOf(envs *environment.EnvSet, stored bool) *cel.Env {
	if stored {
		return envs.StoredExpressionsEnv()
	}
	return envs.NewExpressionsEnv()
}
