// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"context"
	"fmt"
	"strings"
)

// RefusedError reports that a request is not allowed, with kube-apiserver's message.
type RefusedError struct {
	// Attributes of the request.
	Attributes Attributes
	// Reason of the authorizer; may be empty.
	Reason string
	// Err is set if the authorizer could not decide; it is part of the reason.
	Err error
}

// Unwrap returns the error of the authorizer.
func (e *RefusedError) Unwrap() error { return e.Err }

// Error names the user, the verb and the resource or path.
func (e *RefusedError) Error() string {
	a := &e.Attributes
	var text string
	resource := a.Resource
	if a.Subresource != "" {
		resource += "/" + a.Subresource
	}
	switch {
	case !a.ResourceRequest:
		text = fmt.Sprintf("User %q cannot %s path %q", a.User.Name, a.Verb, a.Path)
	case a.Namespace != "":
		text = fmt.Sprintf("User %q cannot %s resource %q in API group %q in the namespace %q", a.User.Name, a.Verb, resource, a.Group, a.Namespace)
	default:
		text = fmt.Sprintf("User %q cannot %s resource %q in API group %q at the cluster scope", a.User.Name, a.Verb, resource, a.Group)
	}
	text = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(text)
	if e.Reason != "" {
		text += ": " + e.Reason
	}
	return text
}

// Check returns nil if an authorizer allows a request, and a [*RefusedError] otherwise.
func Check(ctx context.Context, authorizer Authorizer, a *Attributes) error {
	decision, reason, err := authorizer.Authorize(ctx, a)
	return Refusal(a, decision, reason, err)
}

// Refusal is what [Check] returns for the decision of an authorizer.
func Refusal(a *Attributes, decision Decision, reason string, err error) error {
	switch {
	case decision == Allow:
		return nil
	case err != nil && reason != "":
		reason = err.Error() + ": " + reason
	case err != nil:
		reason = err.Error()
	}
	return &RefusedError{Attributes: *a, Reason: reason, Err: err}
}
