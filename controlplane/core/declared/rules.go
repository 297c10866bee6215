// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package declared

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/operation"
	"k8s.io/apimachinery/pkg/api/validate"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/steer-dev/steer/apiserver/openapi/gotypes"
)

// rule validates a value. old is the one before, not valid if there is none. The errors have
// no paths.
type rule func(op operation.Operation, v, old reflect.Value) field.ErrorList

// enabled are the feature gates that conditional rules name, with what they are in the served
// minor by default. A gate that is not listed is an unknown rule.
func enabled(gate string) (on, known bool) {
	switch gate {
	case "HPAScaleToZero":
		return true, true
	case "DRAPartitionableDevicesType", "InPlacePodVerticalScalingSchedulerPreemption", "WorkloadWithJob":
		return false, true
	}
	return false, false
}

// add adds what a marker says of a value of type t.
func (s *site) add(t reflect.Type, text string) {
	name, argument, rest := parse(text)
	switch name {
	case "optional":
		s.optional = true
	case "required":
		s.first = append(s.first, func(_ operation.Operation, v, _ reflect.Value) field.ErrorList {
			if isAbsent(v) {
				return field.ErrorList{field.Required(nil, "")}
			}
			return nil
		})
	case "forbidden":
		s.first = append(s.first, func(_ operation.Operation, v, _ reflect.Value) field.ErrorList {
			if !isAbsent(v) {
				return field.ErrorList{field.Forbidden(nil, "")}
			}
			return nil
		})
	case "immutable":
		s.first = append(s.first, func(op operation.Operation, _, _ reflect.Value) field.ErrorList {
			return validate.Immutable[any](context.Background(), op, nil, nil, nil)
		})
	case "update":
		s.first = append(s.first, updateRule(rest))
	case "maxItems":
		most := number(text, rest)
		s.first = append(s.first, func(_ operation.Operation, v, _ reflect.Value) field.ErrorList {
			if n := v.Len(); n > most {
				return field.ErrorList{field.TooMany(nil, n, most).WithOrigin("maxItems")}
			}
			return nil
		})
	case "listType", "unique":
		switch rest {
		case "set":
			s.unique, s.identity = true, itself
		case "map":
			s.unique = true // by keys, which markers of their own name
		}
	case "listMapKey":
		s.keys = append(s.keys, rest)
	case "eachVal":
		if s.element == nil {
			s.element = &site{compared: true}
		}
		s.element.add(behind(t).Elem(), rest)
	case "eachKey":
		if s.key == nil {
			s.key = &site{compared: true}
		}
		s.key.add(behind(t).Key(), rest)
	case "subfield":
		s.field(behind(t), argument).add(behind(t), rest)
	case "ifEnabled", "ifDisabled":
		on, known := enabled(argument)
		if !known {
			panic(unknown(text))
		}
		if on == (name == "ifEnabled") {
			s.add(t, rest)
		}
	case "opaqueType", "customUnique": // of the whole site
	case "unionMember", "zeroOrOneOfMember": // of the struct around it
	case "modeDiscriminator", "ifMode", "item": // written by hand, in core/flowcontrol and controlplane/certificates
	default:
		s.rules = append(s.rules, valueRule(text, name, rest))
	}
}

// field is the site of a field of a value, by a rule of the value.
func (s *site) field(t reflect.Type, name string) *site {
	for i := range s.below {
		if s.below[i].name == name {
			return &s.below[i].site
		}
	}
	for i := range t.NumField() {
		if nameOf(t.Field(i)) == name {
			s.below = append(s.below, member{index: i, name: name, site: site{compared: true}})
			return &s.below[len(s.below)-1].site
		}
	}
	panic(unknown("subfield(" + name + ")"))
}

// parse takes a marker apart: name(argument)=rest. The rest may be a marker.
func parse(text string) (name, argument, rest string) {
	text = strings.TrimPrefix(text, "+k8s:")
	if open := strings.IndexByte(text, '('); open >= 0 && open < strings.IndexByte(text+"=", '=') {
		name, text = text[:open], text[open+1:]
		argument, rest, _ = strings.Cut(text, ")")
		return name, strings.Trim(argument, `"`), strings.TrimPrefix(rest, "=")
	}
	name, rest, _ = strings.Cut(text, "=")
	return name, "", strings.Trim(rest, `"`)
}

// unknown is a marker that this package does not know, which a test of it finds.
func unknown(text string) string {
	return fmt.Sprintf("declared: rule %q is not known: add it to package declared", text)
}

func number(text, digits string) int {
	n, err := strconv.Atoi(digits)
	if err != nil {
		panic(unknown(text))
	}
	return n
}

// stringRule is a rule of k8s.io/apimachinery.
type stringRule func(context.Context, operation.Operation, *field.Path, *string, *string) field.ErrorList

// format is the rule of a format, nil for one that is not known.
func format(name string) stringRule {
	switch name {
	case "k8s-short-name":
		return validate.ShortName[string]
	case "k8s-long-name":
		return validate.LongName[string]
	case "k8s-long-name-caseless":
		return validate.LongNameCaseless[string] //nolint:staticcheck // drivers have it
	case "k8s-label-key":
		return validate.LabelKey[string]
	case "k8s-prefixed-label-key":
		return validate.PrefixedLabelKey[string]
	case "k8s-label-value":
		return validate.LabelValue[string]
	case "k8s-path-segment-name":
		return validate.PathSegmentName[string]
	case "k8s-uuid":
		return validate.UUID[string]
	case "k8s-resource-pool-name":
		return validate.ResourcePoolName[string]
	case "k8s-extended-resource-name":
		return validate.ExtendedResourceName[string]
	case "k8s-resource-fully-qualified-name":
		return validate.ResourceFullyQualifiedName[string]
	default:
		return nil
	}
}

// valueRule is the rule for a value that is there.
func valueRule(text, name, value string) rule {
	switch name {
	case "format":
		if check := format(value); check != nil {
			return ofText(check)
		}
	case "maxLength":
		most := number(text, value)
		return ofText(func(ctx context.Context, op operation.Operation, path *field.Path, s, old *string) field.ErrorList {
			return validate.MaxLength(ctx, op, path, s, old, most)
		})
	case "maxBytes":
		most := number(text, value)
		return ofText(func(ctx context.Context, op operation.Operation, path *field.Path, s, old *string) field.ErrorList {
			return validate.MaxBytes(ctx, op, path, s, old, most)
		})
	case "minimum":
		least := int64(number(text, value))
		return func(op operation.Operation, v, _ reflect.Value) field.ErrorList {
			n := v.Int()
			return validate.Minimum(context.Background(), op, nil, &n, nil, least)
		}
	case "maximum":
		most := int64(number(text, value))
		return func(op operation.Operation, v, _ reflect.Value) field.ErrorList {
			n := v.Int()
			return validate.Maximum(context.Background(), op, nil, &n, nil, most)
		}
	}
	panic(unknown(text))
}

func ofText(check stringRule) rule {
	return func(op operation.Operation, v, _ reflect.Value) field.ErrorList {
		s := v.String()
		return check(context.Background(), op, nil, &s, nil)
	}
}

func updateRule(constraint string) rule {
	var c validate.UpdateConstraint
	switch constraint {
	case "NoSet":
		c = validate.NoSet
	case "NoUnset":
		c = validate.NoUnset
	case "NoModify":
		c = validate.NoModify
	default:
		panic(unknown("update=" + constraint))
	}
	given := func(v reflect.Value) *reflect.Value {
		if isAbsent(v) {
			return nil
		}
		return &v
	}
	return func(op operation.Operation, v, old reflect.Value) field.ErrorList {
		if !old.IsValid() {
			return nil
		}
		return validate.UpdatePointer(context.Background(), op, nil, given(v), given(old), c)
	}
}

// typeRule is a rule of a type: that it is one of some texts.
func typeRule(text string) rule {
	name, _, values := parse(text)
	if name != "enum" {
		panic(unknown(text))
	}
	supported := sets.New(strings.Split(values, "|")...)
	return ofText(func(ctx context.Context, op operation.Operation, path *field.Path, s, old *string) field.ErrorList {
		return validate.Enum(ctx, op, path, s, old, supported, nil)
	})
}

// unionRule is a rule of k8s.io/apimachinery.
type unionRule func(context.Context, operation.Operation, *field.Path, *reflect.Value, *reflect.Value, *validate.UnionMembership, ...validate.ExtractorFn[*reflect.Value, bool]) field.ErrorList

// unions are the rules of a struct of which exactly one of some fields has to be set, or at
// most one may be.
func unions(t reflect.Type) []rule {
	return slices.Concat(
		union(t, "unionMember", validate.Union[*reflect.Value]),
		union(t, "zeroOrOneOfMember", validate.ZeroOrOneOfUnion[*reflect.Value]))
}

func union(t reflect.Type, marker string, check unionRule) []rule {
	var members []validate.UnionMember
	var isSet []validate.ExtractorFn[*reflect.Value, bool]
	for i := range t.NumField() {
		if name := nameOf(t.Field(i)); name != "" && slices.Contains(gotypes.Rules(t, name), marker) {
			members = append(members, validate.NewUnionMember(name))
			isSet = append(isSet, func(v *reflect.Value) bool { return v != nil && !isAbsent(v.Field(i)) })
		}
	}
	if len(members) == 0 {
		return nil
	}
	membership := validate.NewUnionMembership(members...)
	return []rule{func(op operation.Operation, v, old reflect.Value) field.ErrorList {
		var was *reflect.Value
		if old.IsValid() {
			was = &old
		}
		return check(context.Background(), op, nil, &v, was, membership, isSet...)
	}}
}
