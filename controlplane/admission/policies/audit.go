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

// The annotation of a refusal with the action Audit, and how long values may be.
const (
	failureAnnotation   = "validation.policy.admission.k8s.io/validation_failure"
	longestAuditedValue = 10 << 10
)

// annotateFailure logs a refusal, in the form that kube-apiserver has for it.
func annotateFailure(ctx context.Context, log *slog.Logger, w *write, p *policy, b *binding, index int, message string) {
	value, err := json.Marshal([]struct {
		Message           string                `json:"message"`
		Policy            string                `json:"policy"`
		Binding           string                `json:"binding"`
		ExpressionIndex   int                   `json:"expressionIndex"`
		ValidationActions []v1.ValidationAction `json:"validationActions"`
	}{{message, p.name, b.name, index, b.actions}})
	if err == nil { // strings and a number: cannot fail
		w.Annotate(ctx, log, failureAnnotation, string(value))
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
func (n *annotations) publish(ctx context.Context, log *slog.Logger, w *write, policy string) {
	for _, key := range n.keys {
		w.Annotate(ctx, log, policy+"/"+key, strings.Join(n.values[key], ", "))
	}
}
