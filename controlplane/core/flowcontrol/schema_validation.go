// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package flowcontrol

import (
	"fmt"
	"slices"
	"strings"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/steer-dev/steer/controlplane/core/valid"
)

const all = "*"

func validateSchema(s schema) field.ErrorList {
	const most = 10000
	var errs field.ErrorList
	root, spec := valid.Root(&errs), &s.Spec
	f := root.Child("spec")
	if n := spec.MatchingPrecedence; n <= 0 {
		f.Invalid("matchingPrecedence", n, "must be a positive value")
	} else if n > most {
		f.Invalid("matchingPrecedence", n, fmt.Sprintf("must not be greater than %d", most))
	} else if n == 1 && s.Name != exempt {
		f.Invalid("matchingPrecedence", n, "only the schema named 'exempt' may have matchingPrecedence 1")
	}
	if m := spec.DistinguisherMethod; m != nil {
		known := []flowcontrolv1.FlowDistinguisherMethodType{flowcontrolv1.FlowDistinguisherMethodByNamespaceType, flowcontrolv1.FlowDistinguisherMethodByUserType}
		if !slices.Contains(known, m.Type) {
			at := f.Child("distinguisherMethod")
			at.Add(field.NotSupported(at.PathOf("type"), valid.Untagged(m), known))
		}
	}
	level := f.Child("priorityLevelConfiguration")
	if name := spec.PriorityLevelConfiguration.Name; name == "" {
		level.Required("name", "must reference a priority level")
	} else {
		level.Subdomain("name", name)
	}
	rules := f.Child("rules")
	for i := range spec.Rules {
		at := rules.Index(i)
		checkRules(&at, &spec.Rules[i])
	}
	var fixed flowcontrolv1.FlowSchema
	if mandatory(schemas, s.Name, &fixed) && !equality.Semantic.DeepEqual(fixed.Spec, s.Spec) {
		f.Invalid(valid.Self, valid.Untagged(s.Spec), "spec of '"+s.Name+"' must equal the fixed value")
	}
	return errs
}

func validateSchemaStatus(s schema) field.ErrorList {
	var types []string
	for _, c := range s.Status.Conditions {
		types = append(types, string(c.Type))
	}
	return checkConditions(types)
}

// checkConditions has the rules of conditions of both kinds.
func checkConditions(types []string) field.ErrorList {
	var errs field.ErrorList
	root := valid.Root(&errs)
	status := root.Child("status")
	list, seen := status.Child("conditions"), sets.New[string]()
	for i, t := range types {
		at := list.Index(i)
		if seen.Has(t) {
			at.Duplicate("type", t)
		}
		seen.Insert(t)
		at.NonEmpty("type", t)
	}
	return errs
}

func checkRules(f *valid.Field, r *flowcontrolv1.PolicyRulesWithSubjects) {
	subjects := f.Child("subjects")
	if len(r.Subjects) == 0 {
		subjects.Required(valid.Self, "subjects must contain at least one value")
	}
	for i := range r.Subjects {
		at := subjects.Index(i)
		checkSubject(&at, &r.Subjects[i])
	}
	if len(r.ResourceRules)+len(r.NonResourceRules) == 0 {
		f.Required(valid.Self, "at least one of resourceRules and nonResourceRules has to be non-empty")
	}
	resources := f.Child("resourceRules")
	for i := range r.ResourceRules {
		at := resources.Index(i)
		checkResourceRule(&at, &r.ResourceRules[i])
	}
	others := f.Child("nonResourceRules")
	for i := range r.NonResourceRules {
		at := others.Index(i)
		checkPathRule(&at, &r.NonResourceRules[i])
	}
}

func checkSubject(f *valid.Field, s *flowcontrolv1.Subject) {
	kinds := []struct {
		kind  flowcontrolv1.SubjectKind
		name  string
		is    bool
		check func(at *valid.Field)
	}{
		{flowcontrolv1.SubjectKindServiceAccount, "serviceAccount", s.ServiceAccount != nil, func(at *valid.Field) { checkAccount(at, s.ServiceAccount) }},
		{flowcontrolv1.SubjectKindUser, "user", s.User != nil, func(at *valid.Field) { at.NonEmpty("name", s.User.Name) }},
		{flowcontrolv1.SubjectKindGroup, "group", s.Group != nil, func(at *valid.Field) { at.NonEmpty("name", s.Group.Name) }},
	}
	if !valid.Supported(f, "kind", s.Kind, flowcontrolv1.SubjectKindGroup, flowcontrolv1.SubjectKindServiceAccount, flowcontrolv1.SubjectKindUser) {
		return
	}
	for _, k := range kinds {
		at := f.Child(k.name)
		switch {
		case k.kind != s.Kind && k.is:
			at.Forbidden(valid.Self, fmt.Sprintf("%s is forbidden when subject kind is not '%s'", k.name, k.kind))
		case k.kind == s.Kind && k.is:
			k.check(&at)
		case k.kind == s.Kind:
			at.Required(valid.Self, fmt.Sprintf("%s is required when subject kind is '%s'", k.name, k.kind))
		}
	}
}

func checkAccount(f *valid.Field, s *flowcontrolv1.ServiceAccountSubject) {
	if f.NonEmpty("name", s.Name) && s.Name != all {
		f.Problems("name", s.Name, apivalidation.ValidateServiceAccountName(s.Name, false))
	}
	if s.Namespace == "" {
		f.Required("namespace", "must specify namespace for service account")
	} else {
		f.Namespace("namespace", s.Namespace)
	}
}

// checkVerbs has the rules of verbs of rules of both kinds.
func checkVerbs(f *valid.Field, verbs []string) {
	known := []string{"create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"}
	switch {
	case len(verbs) == 0:
		f.Required("verbs", "verbs must contain at least one value")
	case slices.Contains(verbs, all):
		checkAlone(f, "verbs", "verbs", verbs)
	case !sets.New(known...).HasAll(verbs...):
		f.Add(field.NotSupported(f.PathOf("verbs"), verbs, known))
	}
}

// checkAlone refuses a star among others, and reports whether there is a star.
func checkAlone(f *valid.Field, name, what string, values []string) bool {
	if !slices.Contains(values, all) {
		return false
	}
	if len(values) > 1 {
		f.Invalid(name, values, "if '*' is present, must not specify other "+what)
	}
	return true
}

func checkResourceRule(f *valid.Field, r *flowcontrolv1.ResourcePolicyRule) {
	checkVerbs(f, r.Verbs)
	if len(r.APIGroups) == 0 {
		f.Required("apiGroups", "resource rules must supply at least one api group")
	}
	checkAlone(f, "apiGroups", "api groups", r.APIGroups)
	if len(r.Resources) == 0 {
		f.Required("resources", "resource rules must supply at least one resource")
	}
	checkAlone(f, "resources", "resources", r.Resources)
	if len(r.Namespaces) == 0 && !r.ClusterScope {
		f.Required("namespaces", "resource rules that are not cluster scoped must supply at least one namespace")
	}
	if checkAlone(f, "namespaces", "namespaces", r.Namespaces) {
		return
	}
	list := f.Child("namespaces")
	for i, n := range r.Namespaces {
		at := list.Index(i)
		for _, problem := range apivalidation.ValidateNamespaceName(n, false) {
			at.Invalid(valid.Self, n, "each member of this list must be '*' or a DNS-1123 label; "+problem)
		}
	}
}

func checkPathRule(f *valid.Field, r *flowcontrolv1.NonResourcePolicyRule) {
	checkVerbs(f, r.Verbs)
	if len(r.NonResourceURLs) == 0 {
		f.Required("nonResourceURLs", "nonResourceURLs must contain at least one value")
	}
	if checkAlone(f, "nonResourceURLs", "non-resource URLs", r.NonResourceURLs) {
		return
	}
	list := f.Child("nonResourceURLs")
	for i, path := range r.NonResourceURLs {
		at := list.Index(i)
		if problem := pathProblem(path); problem != "" {
			at.Invalid(valid.Self, path, problem)
		}
	}
}

// pathProblem validates a path that may end in a star; "" if it is valid
// is.
func pathProblem(path string) string {
	stars := strings.Count(path, all)
	switch {
	case path == "":
		return "must not be empty"
	case path == "/":
		return ""
	case path[0] != '/':
		return "must start with slash"
	case strings.Contains(path, " "):
		return "must not contain white-space"
	case strings.Contains(path, "//"):
		return "must not contain double slash"
	case stars > 1, stars == 1 && !strings.HasSuffix(path, "/*"):
		return "wildcard can only do suffix matching"
	}
	return ""
}
