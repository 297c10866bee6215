// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"

	v1 "k8s.io/api/admissionregistration/v1"
)

// audit writes audit annotations to the log: a control plane has no other audit events.
type audit struct{ log *slog.Logger }

// The annotation of a refusal with the action Audit, and how long values may be.
const (
	failureAnnotation   = "validation.policy.admission.k8s.io/validation_failure"
	longestAuditedValue = 10 << 10
)

// annotate logs one annotation of a write.
func (a audit) annotate(ctx context.Context, w *write, key, value string) {
	user := ""
	if w.User != nil {
		user = w.User.Name
	}
	a.log.LogAttrs(ctx, slog.LevelInfo, "audit annotation", slog.String("annotation", key), slog.String("value", value),
		slog.String("user", user), slog.String("verb", w.Verb), slog.String("resource", w.GVR.GroupResource().String()),
		slog.String("subresource", w.Subresource), slog.String("namespace", w.AttributedNamespace), slog.String("name", w.Name))
}

// failure logs a refusal, in the form that kube-apiserver has for it.
func (a audit) failure(ctx context.Context, w *write, p *policy, b *binding, index int, message string) {
	value, err := json.Marshal([]struct {
		Message           string                `json:"message"`
		Policy            string                `json:"policy"`
		Binding           string                `json:"binding"`
		ExpressionIndex   int                   `json:"expressionIndex"`
		ValidationActions []v1.ValidationAction `json:"validationActions"`
	}{{message, p.name, b.name, index, b.actions}})
	if err == nil { // strings and a number: cannot fail
		a.annotate(ctx, w, failureAnnotation, string(value))
	}
}

// annotations are the values of the audit annotations of a policy for all its bindings.
type annotations struct {
	keys   []string
	values map[string][]string
}

// add adds a value; one that the key has already is left out.
func (n *annotations) add(key, value string) {
	if len(value) > longestAuditedValue {
		value = value[:longestAuditedValue]
	}
	if n.values == nil {
		n.values = map[string][]string{}
	}
	if _, known := n.values[key]; !known {
		n.keys = append(n.keys, key)
	}
	if !slices.Contains(n.values[key], value) {
		n.values[key] = append(n.values[key], value)
	}
}

// publish logs the annotations.
func (n *annotations) publish(ctx context.Context, a audit, w *write, policy string) {
	for _, key := range n.keys {
		a.annotate(ctx, w, policy+"/"+key, strings.Join(n.values[key], ", "))
	}
}
