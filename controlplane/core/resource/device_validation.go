// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"fmt"
	"strconv"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/steer-dev/steer/controlplane/core/valid"
)

// checkValue checks the value of an attribute. That it has one is declared.
func checkValue(f *valid.Field, a *resourcev1.DeviceAttribute) {
	const longest = resourcev1.DeviceAttributeMaxValueLength
	if v := a.StringValue; v != nil && len(*v) > longest {
		f.TooLong("string", longest)
	}
	if v := a.VersionValue; v != nil {
		if !isVersion(*v) {
			f.Invalid("version", *v, "must be a string compatible with semver.org spec 2.0.0")
		}
		if len(*v) > longest {
			f.TooLong("version", longest)
		}
	}
}

// isVersion reports whether a text is a version by https://semver.org, 2.0.0.
func isVersion(text string) bool {
	text, build, built := strings.Cut(text, "+")
	if built && !allOf(build, isIdentifier) {
		return false
	}
	core, pre, early := strings.Cut(text, "-")
	if early && !allOf(pre, func(s string) bool { return isIdentifier(s) && (!isDigits(s) || isNumber(s)) }) {
		return false
	}
	return strings.Count(core, ".") == 2 && allOf(core, isNumber)
}

// allOf reports whether all parts between dots are alike.
func allOf(text string, is func(string) bool) bool {
	for part := range strings.SplitSeq(text, ".") {
		if !is(part) {
			return false
		}
	}
	return true
}

func isDigits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// isNumber reports whether a text is a number without zeros that it could do without.
func isNumber(s string) bool { return isDigits(s) && (s == "0" || s[0] != '0') }

func isIdentifier(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	})
}

// checkRequestPolicy checks which shares of a capacity can be asked for (KEP-5075).
func checkRequestPolicy(f *valid.Field, p *resourcev1.CapacityRequestPolicy, capacity resource.Quantity) {
	const values, span = "validValues", "validRange"
	some := len(p.ValidValues) > 0
	switch {
	case some && p.ValidRange != nil:
		f.Forbidden(valid.Self, `exactly one policy can be specified, cannot specify "`+values+`" and "`+span+`" at the same time`)
	case some && p.Default == nil:
		f.Required("default", "required when "+values+" is defined")
	case p.ValidRange != nil && p.Default == nil:
		f.Required("default", "required when "+span+" is defined")
	case some:
		checkOptions(f, values, p.ValidValues, *p.Default, capacity)
	case p.ValidRange != nil:
		at := f.Child(span)
		checkRange(&at, p.ValidRange, *p.Default, capacity)
	}
}

// checkOptions checks amounts of which one can be asked for.
func checkOptions(in *valid.Field, name string, options []resource.Quantity, preset, capacity resource.Quantity) {
	const most = 10
	f := in.Child(name)
	for i := 1; i < len(options); i++ {
		if options[i-1].Cmp(options[i]) > 0 {
			at := f.Index(i)
			at.Invalid(valid.Self, options[i].String(), "values must be sorted in ascending order")
		}
	}
	found := false
	if checkBounded(in, name, options, most, func(at *valid.Field, q *resource.Quantity) {
		if q.Cmp(capacity) > 0 {
			at.Invalid(valid.Self, q.String(), "option is larger than capacity value: "+capacity.String())
		}
		found = found || q.Cmp(preset) == 0
	}) {
		checkUnique(in, name, options, func(q *resource.Quantity) string { return strconv.FormatInt(q.Value(), 10) })
	}
	if !found {
		f.Invalid(valid.Self, preset.String(), "default value is not valid according to the requestPolicy")
	}
}

// checkRange checks bounds and steps of the amounts that can be asked for.
func checkRange(f *valid.Field, r *resourcev1.CapacityRequestPolicyRange, preset, capacity resource.Quantity) {
	if r.Min == nil {
		f.Required("min", "required when validRange is defined")
		return
	}
	low, high := r.Min, r.Max
	above := func(name string, q, bound resource.Quantity, what string) {
		if q.Cmp(bound) > 0 {
			f.Invalid(name, q.String(), what+": "+bound.String())
		}
	}
	above("min", *low, capacity, "min is larger than capacity value")
	if preset.Cmp(*low) < 0 {
		f.Invalid("default", preset.String(), "default is less than min: "+low.String())
	}
	if high != nil {
		above("max", *low, *high, "min is larger than max")
		above("max", *high, capacity, "max is larger than capacity value")
		above("default", preset, *high, "default is more than max")
	}
	if r.Step == nil {
		return
	}
	if r.Step.Value() == 0 {
		f.Invalid("step", r.Step.String(), "must not be zero")
		return
	}
	first := low.DeepCopy()
	if first.Add(*r.Step); first.Cmp(capacity) > 0 {
		f.Invalid("step", r.Step.String(), fmt.Sprintf("one step %s is larger than capacity value: %s", first.String(), capacity.String()))
	}
	checkStep(f, preset, *low, *r.Step)
	if high != nil {
		checkStep(f, *high, *low, *r.Step)
	}
}

func checkStep(f *valid.Field, q, low, step resource.Quantity) {
	if (q.Value()-low.Value())%step.Value() != 0 {
		f.Invalid("step", q.String(), fmt.Sprintf("value is not a multiple of a given step (%s) from (%s)", step.String(), low.String()))
	}
}
