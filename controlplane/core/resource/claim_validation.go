// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"encoding/json"
	"strings"
	"sync"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	dracel "k8s.io/dynamic-resource-allocation/cel"

	"github.com/steer-dev/steer/controlplane/core/valid"
)

// Bounds of lists and texts.
const (
	mostRequests     = resourcev1.DeviceRequestsMaxSize
	mostConstraints  = resourcev1.DeviceConstraintsMaxSize
	mostConfigs      = resourcev1.DeviceConfigMaxSize
	mostSelectors    = resourcev1.DeviceSelectorsMaxSize
	mostAlternatives = resourcev1.FirstAvailableDeviceRequestMaxSize
	longestSelector  = resourcev1.CELSelectorExpressionMaxLength
	longestConfig    = resourcev1.OpaqueParametersMaxLength
	mostCost         = resourcev1.CELSelectorExpressionMaxCost
	longestDriver    = 63
)

// requests are the names of the requests of a claim, with those of their
// alternatives.
type requests map[string]sets.Set[string]

func requestsOf(c *resourcev1.DeviceClaim) requests {
	out := requests{}
	for i := range c.Requests {
		r := &c.Requests[i]
		var names sets.Set[string]
		for j := range r.FirstAvailable {
			if names == nil {
				names = sets.New[string]()
			}
			names.Insert(r.FirstAvailable[j].Name)
		}
		out[r.Name] = names
	}
	return out
}

// has reports whether a name is that of a request, or of one of its alternatives.
func (r requests) has(name string) bool {
	name, alternative, two := strings.Cut(name, "/")
	names, ok := r[name]
	return ok && (!two || names.Has(alternative))
}

// checkList checks the elements of a list, unless it has more than it may: that is an error
// of a declared rule.
func checkList[T any](in *valid.Field, name string, list []T, most int, check func(at *valid.Field, v *T)) {
	if len(list) > most {
		return
	}
	f := in.Child(name)
	for i := range list {
		at := f.Index(i)
		check(&at, &list[i])
	}
}

// checkBounded checks a list of at most so many elements where that is not declared, and
// reports whether it has no more.
func checkBounded[T any](in *valid.Field, name string, list []T, most int, check func(at *valid.Field, v *T)) bool {
	if len(list) > most {
		in.TooMany(name, len(list), most)
		return false
	}
	checkList(in, name, list, most, check)
	return true
}

// checkUnique checks that no element of a list is there twice.
func checkUnique[T any, K comparable](in *valid.Field, name string, list []T, key func(v *T) K) {
	f, seen := in.Child(name), sets.New[K]()
	for i := range list {
		k := key(&list[i])
		if seen.Has(k) {
			at := f.Index(i)
			at.Duplicate(valid.Self, k)
		}
		seen.Insert(k)
	}
}

func itself(s *string) string { return *s }

func checkTemplate(f *valid.Field, t *resourcev1.ResourceClaimTemplateSpec) {
	metadata := f.Child("metadata")
	metadata.TemplateMetadata(&t.ObjectMeta)
	spec := f.Child("spec")
	checkClaim(&spec, &t.Spec.Devices)
}

func checkClaim(in *valid.Field, c *resourcev1.DeviceClaim) {
	f, known := in.Child("devices"), requestsOf(c)
	checkList(&f, "requests", c.Requests, mostRequests, checkRequest)
	checkList(&f, "constraints", c.Constraints, mostConstraints, func(at *valid.Field, v *resourcev1.DeviceConstraint) {
		known.checkConstraint(at, v)
	})
	checkList(&f, "config", c.Config, mostConfigs, func(at *valid.Field, v *resourcev1.DeviceClaimConfiguration) {
		checkList(at, "requests", v.Requests, mostRequests, known.checkName)
		checkConfig(at, &v.DeviceConfiguration)
	})
}

func checkRequest(f *valid.Field, r *resourcev1.DeviceRequest) {
	const one = "exactly one of `exactly` or `firstAvailable` is required"
	f.DNSLabel("name", r.Name)
	switch {
	case r.Exactly == nil && len(r.FirstAvailable) == 0:
		f.Required(valid.Self, one)
	case r.Exactly != nil && len(r.FirstAvailable) > 0:
		f.Add(field.Invalid(f.Path(), nil, one+", but multiple fields are set"))
	case r.Exactly != nil:
		e, at := r.Exactly, f.Child("exactly")
		if at.NonEmpty("deviceClassName", e.DeviceClassName) {
			at.Subdomain("deviceClassName", e.DeviceClassName)
		}
		checkWanted(&at, wanted{e.Selectors, e.AllocationMode, e.Count, e.Tolerations})
	default:
		checkList(f, "firstAvailable", r.FirstAvailable, mostAlternatives, func(at *valid.Field, s *resourcev1.DeviceSubRequest) {
			at.DNSLabel("name", s.Name)
			checkWanted(at, wanted{s.Selectors, s.AllocationMode, s.Count, s.Tolerations})
		})
	}
}

// wanted is what requests and their alternatives have in common.
type wanted struct {
	selectors   []resourcev1.DeviceSelector
	mode        resourcev1.DeviceAllocationMode
	count       int64
	tolerations []resourcev1.DeviceToleration
}

func checkWanted(f *valid.Field, w wanted) {
	checkList(f, "selectors", w.selectors, mostSelectors, newSelector)
	switch w.mode {
	case resourcev1.DeviceAllocationModeAll:
		if w.count != 0 {
			f.Invalid("count", w.count, "must not be specified when allocationMode is 'All'")
		}
	case resourcev1.DeviceAllocationModeExactCount:
		if w.count <= 0 {
			f.Invalid("count", w.count, "must be greater than zero")
		}
	}
	list := f.Child("tolerations")
	for i := range w.tolerations {
		at := list.Index(i)
		checkToleration(&at, &w.tolerations[i])
	}
}

func checkToleration(f *valid.Field, t *resourcev1.DeviceToleration) {
	switch t.Operator {
	case resourcev1.DeviceTolerationOpExists:
		if t.Value != "" {
			f.Invalid("value", t.Value, "must be empty for operator `Exists`")
		}
	case resourcev1.DeviceTolerationOpEqual:
		f.Problems("value", t.Value, validation.IsValidLabelValue(t.Value))
	}
}

func newSelector(f *valid.Field, s *resourcev1.DeviceSelector) {
	checkSelector(f, s, environment.NewExpressions)
}

// compiling is held while a selector is compiled: the process has one compiler of them, and
// to check an expression, cel-go adds the names of types that it has found to the
// environment, without a lock.
var compiling sync.Mutex

// checkSelector compiles the expression by which devices are selected.
func checkSelector(f *valid.Field, s *resourcev1.DeviceSelector, in environment.Type) {
	if s.CEL == nil {
		f.Required("cel", "")
		return
	}
	at, text := f.Child("cel"), s.CEL.Expression
	if len(text) > longestSelector {
		at.TooLong("expression", longestSelector)
		return
	}
	compiling.Lock()
	result := dracel.GetCompiler(dracel.Features{EnableConsumableCapacity: true}).CompileCELExpression(text, dracel.Options{EnvType: &in})
	compiling.Unlock()
	switch err := result.Error; {
	case err == nil && result.MaxCost > mostCost:
		at.Forbidden("expression", "too complex, exceeds cost limit")
	case err == nil:
	case err.Type == apiservercel.ErrorTypeRequired:
		at.Required("expression", err.Detail)
	case err.Type == apiservercel.ErrorTypeInvalid:
		at.Invalid("expression", text, err.Detail)
	default:
		at.Add(field.InternalError(at.PathOf("expression"), err))
	}
}

func (r requests) checkName(f *valid.Field, name *string) {
	const unknown = "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
	parts := strings.Split(*name, "/")
	if len(parts) > 2 {
		f.Invalid(valid.Self, *name, unknown)
		return
	}
	for _, part := range parts {
		f.DNSLabel(valid.Self, part)
	}
	if !r.has(*name) {
		f.Invalid(valid.Self, *name, unknown)
	}
}

func (r requests) checkConstraint(f *valid.Field, c *resourcev1.DeviceConstraint) {
	checkList(f, "requests", c.Requests, mostRequests, r.checkName)
	if c.MatchAttribute == nil && c.DistinctAttribute == nil {
		f.Required(valid.Self, `exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set`)
	}
}

// checkQualified checks a name that may have a domain. More than two parts are not
// looked at, as Kubernetes does not.
func checkQualified(f *valid.Field, field, name string) {
	identifier := func(s string) {
		if len(s) > resourcev1.DeviceMaxIDLength {
			f.TooLong(field, resourcev1.DeviceMaxIDLength)
		}
		f.Problems(field, s, content.IsCIdentifier(s))
	}
	switch parts := strings.Split(name, "/"); len(parts) {
	case 1:
		identifier(name)
	case 2:
		if parts[0] == "" {
			f.Invalid(field, "", "the domain must not be empty")
		} else {
			checkDriver(f, field, parts[0])
		}
		if parts[1] == "" {
			f.Invalid(field, "", "the name must not be empty")
		} else {
			identifier(parts[1])
		}
	}
}

func checkDriver(f *valid.Field, name, driver string) {
	if !f.NonEmpty(name, driver) {
		return
	}
	if len(driver) > longestDriver {
		f.TooLong(name, longestDriver)
	}
	f.Problems(name, driver, validation.IsDNS1123Subdomain(strings.ToLower(driver)))
}

func checkConfig(f *valid.Field, c *resourcev1.DeviceConfiguration) {
	if c.Opaque == nil {
		f.Required("opaque", "")
		return
	}
	at := f.Child("opaque")
	checkParameters(&at, "parameters", c.Opaque.Parameters, longestConfig)
}

// checkParameters checks JSON that is for a driver.
func checkParameters(f *valid.Field, name string, p runtime.RawExtension, longest int) {
	var v any
	switch {
	case len(p.Raw) == 0:
		f.Required(name, "")
		return
	case len(p.Raw) > longest:
		f.TooLong(name, longest)
		return
	}
	if err := json.Unmarshal(p.Raw, &v); err != nil {
		f.Invalid(name, "<value omitted>", "error parsing data as JSON: "+err.Error())
		return
	}
	if v == nil {
		f.Required(name, "")
	} else if _, object := v.(map[string]any); !object {
		f.Invalid(name, "<value omitted>", "must be a valid JSON object")
	}
}

// className is the rule for names of classes; prefixes of generated ones are not
// looked at.
func className(name string, prefix bool) []string {
	if prefix {
		return nil
	}
	return validation.IsDNS1123Subdomain(name)
}

func validateClass(c, old class) field.ErrorList {
	var errs field.ErrorList
	root := valid.Root(&errs)
	f := root.Child("spec")
	in := environment.NewExpressions
	if old != nil && equality.Semantic.DeepEqual(c.Spec.Selectors, old.Spec.Selectors) {
		in = environment.StoredExpressions
	}
	checkList(&f, "selectors", c.Spec.Selectors, mostSelectors, func(at *valid.Field, s *resourcev1.DeviceSelector) { checkSelector(at, s, in) })
	checkList(&f, "config", c.Spec.Config, mostConfigs, func(at *valid.Field, v *resourcev1.DeviceClassConfiguration) {
		checkConfig(at, &v.DeviceConfiguration)
	})
	return errs
}
