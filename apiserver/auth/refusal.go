// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"context"
	"fmt"
	"strings"
)

// RefusedError tells that something is not allowed, in the words that clients
// show.
type RefusedError struct {
	// Attributes of what was asked for.
	Attributes Attributes
	// Reason of the authorizer; may be empty.
	Reason string
	// Err tells that the authorizer could not decide; part of the reason. nil: it
	// could.
	Err error
}

// Unwrap returns why the authorizer could not decide.
func (e *RefusedError) Unwrap() error { return e.Err }

// Error names the user, the verb and what it was about.
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

// Check returns nil for what an authorizer allows, and a [*RefusedError] for
// anything else.
func Check(ctx context.Context, authorizer Authorizer, a *Attributes) error {
	decision, reason, err := authorizer.Authorize(ctx, a)
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
