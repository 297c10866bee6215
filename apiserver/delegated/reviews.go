// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package delegated

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/internal/answers"
)

// AuthenticateToken implements [auth.TokenAuthenticator] with TokenReviews.
func (d *Delegation) AuthenticateToken(ctx context.Context, token string, audiences []string) (user *auth.User, meant []string, err error) {
	question, err := json.Marshal([]any{token, audiences})
	if err != nil {
		return nil, nil, err
	}
	status, err := d.tokens.Get(ctx, sha256.Sum256(question), func(ctx context.Context) (answers.Answer[*authenticationv1.TokenReviewStatus], error) {
		var none answers.Answer[*authenticationv1.TokenReviewStatus]
		review := &authenticationv1.TokenReview{
			TypeMeta: metav1.TypeMeta{APIVersion: "authentication.k8s.io/v1", Kind: "TokenReview"},
			Spec:     authenticationv1.TokenReviewSpec{Token: token, Audiences: audiences},
		}
		var answer authenticationv1.TokenReview
		if err := d.client.Post(ctx, "/apis/authentication.k8s.io/v1/tokenreviews", review, &answer); err != nil {
			return none, fmt.Errorf("delegated: review a token: %w", err)
		}
		return answers.Answer[*authenticationv1.TokenReviewStatus]{Value: &answer.Status, Good: answer.Status.Authenticated, For: d.options.TokenTTL}, nil
	})
	if err != nil || !status.Authenticated {
		return nil, nil, err
	}
	user = &auth.User{Name: status.User.Username, UID: status.User.UID, Groups: status.User.Groups}
	for name, values := range status.User.Extra {
		if user.Extra == nil {
			user.Extra = map[string][]string{}
		}
		user.Extra[name] = values
	}
	if len(audiences) > 0 && len(status.Audiences) == 0 {
		// A cluster that knows nothing of audiences has reviewed the token for itself.
		return nil, nil, fmt.Errorf("delegated: review a token: the cluster does not say for which audience it is")
	}
	return user, status.Audiences, nil
}

// authorizer is [Delegation.Authorizer].
type authorizer struct{ of *Delegation }

// Authorize implements [auth.Authorizer] with SubjectAccessReviews.
func (z authorizer) Authorize(ctx context.Context, a *auth.Attributes) (auth.Decision, string, error) {
	d := z.of
	spec := specOf(a)
	question, err := json.Marshal(spec)
	if err != nil {
		return auth.NoOpinion, "", err
	}
	status, err := d.decisions.Get(ctx, sha256.Sum256(question), func(ctx context.Context) (answers.Answer[*authorizationv1.SubjectAccessReviewStatus], error) {
		var none answers.Answer[*authorizationv1.SubjectAccessReviewStatus]
		review := &authorizationv1.SubjectAccessReview{
			TypeMeta: metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SubjectAccessReview"}, Spec: spec,
		}
		var answer authorizationv1.SubjectAccessReview
		if err := d.client.Post(ctx, "/apis/authorization.k8s.io/v1/subjectaccessreviews", review, &answer); err != nil {
			return none, fmt.Errorf("delegated: review the access of %q: %w", a.User.Name, err)
		}
		valid := d.options.DeniedTTL
		if answer.Status.Allowed {
			valid = d.options.AllowedTTL
		}
		return answers.Answer[*authorizationv1.SubjectAccessReviewStatus]{Value: &answer.Status, Good: answer.Status.Allowed, For: valid}, nil
	})
	switch {
	case err != nil:
		return auth.NoOpinion, "", err
	case status.Denied:
		return auth.Deny, status.Reason, nil
	case status.Allowed:
		return auth.Allow, status.Reason, nil
	}
	return auth.NoOpinion, status.Reason, nil
}

// specOf returns the review of a request.
func specOf(a *auth.Attributes) authorizationv1.SubjectAccessReviewSpec {
	spec := authorizationv1.SubjectAccessReviewSpec{User: a.User.Name, UID: a.User.UID, Groups: a.User.Groups}
	for name, values := range a.User.Extra {
		if spec.Extra == nil {
			spec.Extra = map[string]authorizationv1.ExtraValue{}
		}
		spec.Extra[name] = values
	}
	if !a.ResourceRequest {
		spec.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Path: a.Path, Verb: a.Verb}
		return spec
	}
	r := &authorizationv1.ResourceAttributes{
		Namespace: a.Namespace, Verb: a.Verb, Group: a.Group, Version: a.Version,
		Resource: a.Resource, Subresource: a.Subresource, Name: a.Name,
	}
	if a.Selected != nil {
		byField, byLabel := a.Selected()
		if required := fieldRequirements(byField); len(required) > 0 {
			r.FieldSelector = &authorizationv1.FieldSelectorAttributes{Requirements: required}
		}
		if required := labelRequirements(byLabel); len(required) > 0 {
			r.LabelSelector = &authorizationv1.LabelSelectorAttributes{Requirements: required}
		}
	}
	spec.ResourceAttributes = r
	return spec
}

// fieldRequirements returns requirements as a review has them. What it cannot say is left
// out: the cluster then decides on more objects than the request is for.
func fieldRequirements(from fields.Requirements) (out []metav1.FieldSelectorRequirement) {
	for _, r := range from {
		switch r.Operator {
		case selection.Equals, selection.DoubleEquals, selection.In:
			out = append(out, metav1.FieldSelectorRequirement{Key: r.Field, Operator: metav1.FieldSelectorOpIn, Values: []string{r.Value}})
		case selection.NotEquals, selection.NotIn:
			out = append(out, metav1.FieldSelectorRequirement{Key: r.Field, Operator: metav1.FieldSelectorOpNotIn, Values: []string{r.Value}})
		}
	}
	return out
}

// labelRequirements does the same for labels.
func labelRequirements(from labels.Requirements) (out []metav1.LabelSelectorRequirement) {
	for _, r := range from {
		one := metav1.LabelSelectorRequirement{Key: r.Key()}
		switch r.Operator() {
		case selection.Equals, selection.DoubleEquals, selection.In:
			one.Operator, one.Values = metav1.LabelSelectorOpIn, r.Values().List()
		case selection.NotEquals, selection.NotIn:
			one.Operator, one.Values = metav1.LabelSelectorOpNotIn, r.Values().List()
		case selection.Exists:
			one.Operator = metav1.LabelSelectorOpExists
		case selection.DoesNotExist:
			one.Operator = metav1.LabelSelectorOpDoesNotExist
		default:
			continue
		}
		out = append(out, one)
	}
	return out
}
