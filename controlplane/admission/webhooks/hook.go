// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"fmt"
	"time"

	v1 "k8s.io/api/admissionregistration/v1"
	admissioncel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/utils/ptr"

	"github.com/steer-dev/steer/controlplane/admission/match"
	"github.com/steer-dev/steer/controlplane/webhookclient"
)

// hook is one webhook of a configuration, compiled. It is immutable.
type hook struct {
	// configuration and name of the webhook; id names it among all, also if another one
	// of the configuration has the same name.
	configuration, name, id string
	// position among the webhooks of all configurations.
	position int

	constraints *match.Constraints
	conditions  *match.Conditions
	target      webhookclient.Target
	// review is the version of AdmissionReview that it is sent; empty: it knows none.
	review string
	// ignore reports that failures to call it do not matter.
	ignore bool
	// effects on other things than the object; a dry run may not have any.
	effects *v1.SideEffectClass
	timeout time.Duration
	// reinvoke reports that it is called again after later changes of the object.
	reinvoke bool
}

// compiler makes hooks of the webhooks of configurations.
type compiler struct {
	expressions admissioncel.Compiler
	// plugin that calls the webhooks, and step as the metrics name it.
	plugin, step string
}

func (c *compiler) hook(configuration string, w *v1.ValidatingWebhook, twins map[string]int) *hook {
	h := &hook{
		configuration: configuration, name: w.Name, id: fmt.Sprintf("%s/%s/%d", configuration, w.Name, twins[w.Name]),
		constraints: match.NewConstraints(w.Rules, w.MatchPolicy, w.NamespaceSelector, w.ObjectSelector),
		target:      c.target(&w.ClientConfig),
		ignore:      w.FailurePolicy != nil && *w.FailurePolicy == v1.Ignore,
		effects:     w.SideEffects,
		timeout:     time.Duration(ptr.Deref(w.TimeoutSeconds, 0)) * time.Second,
	}
	twins[w.Name]++
	h.review = webhookclient.ReviewVersion(w.AdmissionReviewVersions)
	h.conditions = match.NewConditions(w.MatchConditions, match.ConditionOptions{
		Name: w.Name, Kind: "webhook", Type: c.step, FailurePolicy: w.FailurePolicy, Compiler: c.expressions,
	})
	return h
}

func (c *compiler) target(at *v1.WebhookClientConfig) webhookclient.Target {
	t := webhookclient.Target{URL: ptr.Deref(at.URL, ""), CABundle: at.CABundle, Plugin: c.plugin}
	if s := at.Service; s != nil {
		t.Service = &webhookclient.Service{Namespace: s.Namespace, Name: s.Name, Port: ptr.Deref(s.Port, 443)}
		t.Path = ptr.Deref(s.Path, "")
	}
	return t
}

// validating returns the hooks of a configuration.
func (c *compiler) validating(of *v1.ValidatingWebhookConfiguration) []*hook {
	twins := map[string]int{}
	var out []*hook
	for i := range of.Webhooks {
		out = append(out, c.hook(of.Name, &of.Webhooks[i], twins))
	}
	return out
}

// mutating returns the hooks of a configuration.
func (c *compiler) mutating(of *v1.MutatingWebhookConfiguration) []*hook {
	twins := map[string]int{}
	var out []*hook
	for i := range of.Webhooks {
		w := &of.Webhooks[i]
		h := c.hook(of.Name, &v1.ValidatingWebhook{
			Name: w.Name, ClientConfig: w.ClientConfig, Rules: w.Rules, FailurePolicy: w.FailurePolicy, MatchPolicy: w.MatchPolicy,
			NamespaceSelector: w.NamespaceSelector, ObjectSelector: w.ObjectSelector, SideEffects: w.SideEffects,
			TimeoutSeconds: w.TimeoutSeconds, AdmissionReviewVersions: w.AdmissionReviewVersions, MatchConditions: w.MatchConditions,
		}, twins)
		h.reinvoke = w.ReinvocationPolicy != nil && *w.ReinvocationPolicy == v1.IfNeededReinvocationPolicy
		out = append(out, h)
	}
	return out
}
