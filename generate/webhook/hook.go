// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	admission "k8s.io/api/admissionregistration/v1"
)

// configuration names the object that holds the webhooks of a sort.
type configuration struct {
	Mutating bool   `help:"Whether it holds the mutating webhooks or the validating ones."`
	Name     string `marker:",optional" help:"The object's name."`
}

// hook is one webhook.
type hook struct {
	Mutating                bool     `help:"Whether the webhook changes objects, or only refuses them."`
	FailurePolicy           string   `help:"What happens when it cannot be reached: fail (refuse the object) or ignore."`
	MatchPolicy             string   `marker:",optional" help:"Exact, or Equivalent (default): also for the same kind in other versions."`
	SideEffects             string   `marker:",optional" help:"None, or NoneOnDryRun. Required."`
	TimeoutSeconds          int      `marker:",optional" help:"How long to wait for it: 1 to 30. Default: the API server's, 10."`
	Groups                  []string `help:"The API groups it is called for; core or \"\" is the core group, * all."`
	Resources               []string `help:"The resources it is called for."`
	Verbs                   []string `help:"create, update, delete, connect or *."`
	Versions                []string `help:"The API versions it is called for."`
	Name                    string   `help:"A domain name with at least three parts."`
	ServiceName             string   `marker:",optional" help:"The service that serves it. Default: webhook-service."`
	ServiceNamespace        string   `marker:",optional" help:"The service's namespace. Default: system."`
	Path                    string   `marker:",optional" help:"The path it is served under."`
	ServicePort             *int32   `help:"The service's port. Default: the API server's, 443."`
	WebhookVersions         []string `marker:",optional" help:"The API versions of the configuration itself; v1 is the only one left."`
	AdmissionReviewVersions []string `help:"The AdmissionReview versions it understands, preferred first."`
	ReinvocationPolicy      string   `marker:",optional" help:"Never (default) or IfNeeded: call it again when a later webhook changed the object."`
	URL                     string   `marker:"url,optional" help:"Where it is, instead of a service and a path."`
	Patch                   string   `marker:",optional" help:"A strategic merge patch (JSON) for all that has no argument here, such as namespaceSelector."`
}

// build makes the webhook for the configuration of its sort. It returns all that
// is wrong, not only the first.
func (h hook) build() ([]admission.MutatingWebhook, []admission.ValidatingWebhook, error) {
	var errs []error
	for _, v := range h.WebhookVersions {
		if v != "v1" {
			errs = append(errs, fmt.Errorf("webhookVersions can only be v1, not %s", v))
		}
	}
	match, err := h.matchPolicy()
	errs = append(errs, err)
	client, err := h.client()
	errs = append(errs, err)
	common := admission.ValidatingWebhook{
		Name:                    h.Name,
		ClientConfig:            client,
		Rules:                   h.rules(),
		FailurePolicy:           h.failurePolicy(),
		MatchPolicy:             match,
		SideEffects:             h.sideEffects(),
		AdmissionReviewVersions: h.AdmissionReviewVersions,
	}
	if h.TimeoutSeconds != 0 {
		seconds := int32(h.TimeoutSeconds)
		common.TimeoutSeconds = &seconds
	}
	var mutating []admission.MutatingWebhook
	var validating []admission.ValidatingWebhook
	final := common
	if h.Mutating {
		m := admission.MutatingWebhook{
			Name: common.Name, ClientConfig: common.ClientConfig, Rules: common.Rules, FailurePolicy: common.FailurePolicy,
			MatchPolicy: common.MatchPolicy, SideEffects: common.SideEffects, TimeoutSeconds: common.TimeoutSeconds,
			AdmissionReviewVersions: common.AdmissionReviewVersions, ReinvocationPolicy: h.reinvocation(),
		}
		errs = append(errs, patch(&m, h.Patch))
		mutating = append(mutating, m)
		final.SideEffects, final.TimeoutSeconds, final.AdmissionReviewVersions = m.SideEffects, m.TimeoutSeconds, m.AdmissionReviewVersions
	} else {
		errs = append(errs, patch(&final, h.Patch))
		validating = append(validating, final)
	}
	errs = append(errs, check(&final))
	return mutating, validating, errors.Join(errs...)
}

// check says what the API server would refuse.
func check(w *admission.ValidatingWebhook) error {
	var errs []error
	switch {
	case w.SideEffects == nil:
		errs = append(errs, errors.New("sideEffects is required: None or NoneOnDryRun"))
	case *w.SideEffects == admission.SideEffectClassUnknown, *w.SideEffects == admission.SideEffectClassSome:
		errs = append(errs, fmt.Errorf("sideEffects must be None or NoneOnDryRun, not %s", *w.SideEffects))
	}
	if s := w.TimeoutSeconds; s != nil && (*s < 1 || *s > 30) {
		errs = append(errs, fmt.Errorf("timeoutSeconds must be between 1 and 30, not %d", *s))
	}
	if len(w.AdmissionReviewVersions) == 0 {
		errs = append(errs, errors.New("admissionReviewVersions is required, for example v1"))
	}
	return errors.Join(errs...)
}

func (h hook) rules() []admission.RuleWithOperations {
	groups := slices.Clone(h.Groups)
	for i, group := range groups {
		if group == "core" {
			groups[i] = ""
		}
	}
	operations := make([]admission.OperationType, len(h.Verbs))
	for i, verb := range h.Verbs {
		operations[i] = oneOf(verb, admission.Create, admission.Update, admission.Delete, admission.Connect, admission.OperationAll)
		if operations[i] == "" {
			operations[i] = admission.OperationType(verb)
		}
	}
	return []admission.RuleWithOperations{{
		Rule:       admission.Rule{APIGroups: groups, APIVersions: h.Versions, Resources: h.Resources},
		Operations: operations,
	}}
}

// oneOf returns the value that a text is, whatever its case, "" if it is none.
func oneOf[T ~string](text string, values ...T) T {
	for _, value := range values {
		if strings.EqualFold(text, string(value)) {
			return value
		}
	}
	return ""
}

func (h hook) failurePolicy() *admission.FailurePolicyType {
	policy := cmp.Or(oneOf(h.FailurePolicy, admission.Ignore, admission.Fail), admission.FailurePolicyType(h.FailurePolicy))
	return &policy
}

func (h hook) matchPolicy() (*admission.MatchPolicyType, error) {
	if h.MatchPolicy == "" {
		return nil, nil
	}
	policy := oneOf(h.MatchPolicy, admission.Exact, admission.Equivalent)
	if policy == "" {
		return nil, fmt.Errorf("matchPolicy must be Exact or Equivalent, not %s", h.MatchPolicy)
	}
	return &policy, nil
}

func (h hook) sideEffects() *admission.SideEffectClass {
	class := oneOf(h.SideEffects, admission.SideEffectClassNone, admission.SideEffectClassNoneOnDryRun, admission.SideEffectClassSome)
	if class == "" {
		return nil
	}
	return &class
}

func (h hook) reinvocation() *admission.ReinvocationPolicyType {
	policy := oneOf(h.ReinvocationPolicy, admission.NeverReinvocationPolicy, admission.IfNeededReinvocationPolicy)
	if policy == "" {
		return nil
	}
	return &policy
}

func (h hook) client() (admission.WebhookClientConfig, error) {
	switch {
	case (h.Path == "") == (h.URL == ""):
		return admission.WebhookClientConfig{}, errors.New("give either path or url")
	case h.URL != "":
		return admission.WebhookClientConfig{URL: &h.URL}, nil
	}
	return admission.WebhookClientConfig{Service: &admission.ServiceReference{
		Name:      cmp.Or(h.ServiceName, "webhook-service"),
		Namespace: cmp.Or(h.ServiceNamespace, "system"),
		Path:      &h.Path,
		Port:      h.ServicePort,
	}}, nil
}
