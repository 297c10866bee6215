// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package valid

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// NodeSelector checks which nodes are chosen. Values of labels are checked if
// values is set.
func (f *Field) NodeSelector(s *corev1.NodeSelector, values bool) {
	terms := f.Child("nodeSelectorTerms")
	if len(s.NodeSelectorTerms) == 0 {
		terms.Required(Self, "must have at least one node selector term")
	}
	for i := range s.NodeSelectorTerms {
		at := terms.Index(i)
		at.NodeSelectorTerm(&s.NodeSelectorTerms[i], values)
	}
}

// NodeSelectorTerm checks one of the alternatives of a selector.
func (f *Field) NodeSelectorTerm(t *corev1.NodeSelectorTerm, values bool) {
	list := f.Child("matchExpressions")
	for i := range t.MatchExpressions {
		at := list.Index(i)
		at.nodeExpression(&t.MatchExpressions[i], values)
	}
	list = f.Child("matchFields")
	for i := range t.MatchFields {
		at := list.Index(i)
		at.nodeField(&t.MatchFields[i])
	}
}

func (f *Field) nodeExpression(r *corev1.NodeSelectorRequirement, values bool) {
	switch r.Operator {
	case corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn:
		if len(r.Values) == 0 {
			f.Required("values", "must be specified when `operator` is 'In' or 'NotIn'")
		}
	case corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist:
		if len(r.Values) > 0 {
			f.Forbidden("values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
		}
	case corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt:
		if len(r.Values) != 1 {
			f.Required("values", "must be specified single value when `operator` is 'Lt' or 'Gt'")
		}
	default:
		f.Invalid("operator", r.Operator, "not a valid selector operator")
	}
	f.LabelKey("key", r.Key)
	if values {
		for i, v := range r.Values {
			list := f.Child("values")
			at := list.Index(i)
			at.Problems(Self, v, validation.IsValidLabelValue(v))
		}
	}
}

func (f *Field) nodeField(r *corev1.NodeSelectorRequirement) {
	switch r.Operator {
	case corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn:
		if len(r.Values) != 1 {
			f.Required("values", "must be only one value when `operator` is 'In' or 'NotIn' for node field selector")
		}
	default:
		f.Invalid("operator", r.Operator, "not a valid selector operator")
	}
	if r.Key != "metadata.name" {
		f.Invalid("key", r.Key, "not a valid field selector key")
		return
	}
	for i, v := range r.Values {
		list := f.Child("values")
		at := list.Index(i)
		at.Subdomain(Self, v)
	}
}

// Tolerations checks which taints of nodes are tolerated.
func (f *Field) Tolerations(list []corev1.Toleration) {
	for i := range list {
		t, at := &list[i], f.Index(i)
		if t.Key != "" {
			at.LabelKey("key", t.Key)
		} else if t.Operator != corev1.TolerationOpExists {
			at.Invalid("operator", t.Operator, `operator must be Exists when `+"`key`"+` is empty, which means "match all values and all keys"`)
		}
		if t.TolerationSeconds != nil && t.Effect != corev1.TaintEffectNoExecute {
			at.Invalid("effect", t.Effect, "effect must be 'NoExecute' when `tolerationSeconds` is set")
		}
		switch t.Operator {
		case corev1.TolerationOpEqual, "":
			if problems := validation.IsValidLabelValue(t.Value); len(problems) > 0 {
				at.Invalid("operator", t.Value, strings.Join(problems, ";"))
			}
		case corev1.TolerationOpExists:
			if t.Value != "" {
				at.Invalid("operator", t.Value, "value must be empty when `operator` is 'Exists'")
			}
		case corev1.TolerationOpLt, corev1.TolerationOpGt:
			NotSupported(&at, "operator", t.Operator, corev1.TolerationOpEqual, corev1.TolerationOpExists, corev1.TolerationOpLt, corev1.TolerationOpGt)
		default:
			Supported(&at, "operator", t.Operator, corev1.TolerationOpEqual, corev1.TolerationOpExists)
		}
		if t.Effect != "" {
			at.TaintEffect("effect", t.Effect)
		}
	}
}

// TaintEffect checks what a taint does.
func (f *Field) TaintEffect(name string, effect corev1.TaintEffect) {
	Supported(f, name, effect, corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute)
}
