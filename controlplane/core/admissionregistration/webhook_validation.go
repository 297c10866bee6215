// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package admissionregistration

import (
	"slices"
	"strings"

	v1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/steer-dev/steer/controlplane/core/valid"
	"github.com/steer-dev/steer/crdvalidation"
)

// mutatingHooks returns what webhooks of both kinds have in common, and which of
// them are called again after others.
func mutatingHooks(c *v1.MutatingWebhookConfiguration) (hooks []v1.ValidatingWebhook, again []*v1.ReinvocationPolicyType) {
	if c == nil {
		return nil, nil
	}
	for _, h := range c.Webhooks {
		hooks = append(hooks, v1.ValidatingWebhook{
			Name: h.Name, ClientConfig: h.ClientConfig, Rules: h.Rules, FailurePolicy: h.FailurePolicy, MatchPolicy: h.MatchPolicy,
			NamespaceSelector: h.NamespaceSelector, ObjectSelector: h.ObjectSelector, SideEffects: h.SideEffects,
			TimeoutSeconds: h.TimeoutSeconds, AdmissionReviewVersions: h.AdmissionReviewVersions, MatchConditions: h.MatchConditions,
		})
		again = append(again, h.ReinvocationPolicy)
	}
	return hooks, again
}

func (c *rules) validateMutating(now, old *v1.MutatingWebhookConfiguration) field.ErrorList {
	hooks, again := mutatingHooks(now)
	before, _ := mutatingHooks(old)
	return c.validateHooks(hooks, again, before)
}

func (c *rules) validateValidating(now, old *v1.ValidatingWebhookConfiguration) field.ErrorList {
	var before []v1.ValidatingWebhook
	if old != nil {
		before = old.Webhooks
	}
	return c.validateHooks(now.Webhooks, nil, before)
}

// leniency is what webhooks may have wrong, as some had it wrong before.
type leniency struct {
	sideEffects, versions, names bool
	selectors                    metavalidation.LabelSelectorValidationOptions
	conditions                   bool // are as they were
	expressions                  sets.Set[string]
}

func leniencyOf(hooks, before []v1.ValidatingWebhook) leniency {
	l := leniency{expressions: sets.New[string]()}
	names := sets.New[string]()
	l.conditions = len(before) > 0 && len(hooks) == len(before)
	for i, h := range before {
		l.sideEffects = l.sideEffects || h.SideEffects == nil || !harmless(*h.SideEffects)
		l.versions = l.versions || len(h.AdmissionReviewVersions) > 0 && !slices.ContainsFunc(h.AdmissionReviewVersions, isReview)
		l.names = l.names || names.Has(h.Name)
		names.Insert(h.Name)
		for _, s := range []*metav1.LabelSelector{h.NamespaceSelector, h.ObjectSelector} {
			if len(metavalidation.ValidateLabelSelector(s, metavalidation.LabelSelectorValidationOptions{}, nil)) > 0 {
				l.selectors.AllowInvalidLabelValueInSelector = true
			}
		}
		l.expressions = l.expressions.Union(expressionsOf(h.MatchConditions))
		l.conditions = l.conditions && equality.Semantic.DeepEqual(hooks[i].MatchConditions, h.MatchConditions)
	}
	return l
}

func harmless(s v1.SideEffectClass) bool {
	return s == v1.SideEffectClassNone || s == v1.SideEffectClassNoneOnDryRun
}

// isReview reports whether a version of AdmissionReview is one that is spoken.
func isReview(version string) bool { return version == "v1" || version == "v1beta1" }

func (c *rules) validateHooks(hooks []v1.ValidatingWebhook, again []*v1.ReinvocationPolicyType, before []v1.ValidatingWebhook) field.ErrorList {
	var errs field.ErrorList
	root := valid.Root(&errs)
	list, names, l := root.Child("webhooks"), sets.New[string](), leniencyOf(hooks, before)
	for i := range hooks {
		h, f := &hooks[i], list.Index(i)
		f.Add(validation.IsFullyQualifiedName(f.PathOf("name"), h.Name)...)
		rules := f.Child("rules")
		for j := range h.Rules {
			at := rules.Index(j)
			checkRule(&at, &h.Rules[j])
		}
		checkHook(&f, h, &l)
		if again != nil && again[i] != nil {
			valid.Supported(&f, "reinvocationPolicy", *again[i], v1.IfNeededReinvocationPolicy, v1.NeverReinvocationPolicy)
		}
		checkClient(&f, &h.ClientConfig)
		if !l.conditions {
			c.checkConditions(&f, conditions{list: h.MatchConditions, before: l.expressions})
		}
		versions := f.Child("admissionReviewVersions")
		checkReviews(&versions, h.AdmissionReviewVersions, !l.versions)
		if names.Has(h.Name) && h.Name != "" && !l.names {
			f.Duplicate("name", h.Name)
		}
		names.Insert(h.Name)
	}
	return errs
}

// checkHook has the rules of how a webhook is called.
func checkHook(f *valid.Field, h *v1.ValidatingWebhook, l *leniency) {
	const shortest, longest = 1, 30 // seconds
	if h.FailurePolicy != nil {
		valid.Supported(f, "failurePolicy", *h.FailurePolicy, v1.Fail, v1.Ignore)
	}
	if h.MatchPolicy != nil {
		valid.Supported(f, "matchPolicy", *h.MatchPolicy, v1.Equivalent, v1.Exact)
	}
	allowed := []v1.SideEffectClass{v1.SideEffectClassNone, v1.SideEffectClassNoneOnDryRun}
	if l.sideEffects {
		allowed = append(allowed, v1.SideEffectClassSome, v1.SideEffectClassUnknown)
	}
	if h.SideEffects == nil {
		var words []string
		for _, a := range allowed {
			words = append(words, string(a))
		}
		f.Required("sideEffects", "must specify one of "+strings.Join(words, ", "))
	} else {
		valid.Supported(f, "sideEffects", *h.SideEffects, allowed...)
	}
	if t := h.TimeoutSeconds; t != nil && (*t < shortest || *t > longest) {
		f.Invalid("timeoutSeconds", *t, "the timeout value must be between 1 and 30 seconds")
	}
	f.Add(metavalidation.ValidateLabelSelector(h.NamespaceSelector, l.selectors, f.PathOf("namespaceSelector"))...)
	f.Add(metavalidation.ValidateLabelSelector(h.ObjectSelector, l.selectors, f.PathOf("objectSelector"))...)
}

func checkClient(in *valid.Field, c *v1.WebhookClientConfig) {
	f := in.Child("clientConfig")
	switch {
	case (c.URL == nil) == (c.Service == nil):
		f.Required(valid.Self, "exactly one of url or service is required")
	case c.URL != nil:
		f.Add(crdvalidation.WebhookURL(f.PathOf("url"), *c.URL)...)
	default:
		s := c.Service
		f.Add(crdvalidation.WebhookService(f.PathOf("service"), crdvalidation.Service{Name: s.Name, Namespace: s.Namespace, Path: s.Path, Port: *s.Port})...)
	}
}

func checkReviews(f *valid.Field, versions []string, known bool) {
	const accepted = "v1, v1beta1"
	if len(versions) == 0 {
		f.Required(valid.Self, "must specify one of "+accepted)
		return
	}
	seen := sets.New[string]()
	for i, v := range versions {
		at := f.Index(i)
		if seen.Has(v) {
			at.Invalid(valid.Self, v, "duplicate version")
			continue
		}
		seen.Insert(v)
		at.Problems(valid.Self, v, validation.IsDNS1035Label(v))
	}
	if known && !slices.ContainsFunc(versions, isReview) {
		f.Invalid(valid.Self, versions, "must include at least one of "+accepted)
	}
}
