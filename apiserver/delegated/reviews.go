// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package delegated

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/apiserver/internal/cluster"
	"github.com/steer-dev/steer/internal/answers"
)

// reviewer asks another server about tokens and access, and remembers its answers. It is safe for
// concurrent use.
type reviewer struct {
	client *cluster.Client
	// tokenPath and accessPath are where reviews are sent, and version is theirs: v1 or v1beta1.
	tokenPath, accessPath, version  string
	tokenTTL, allowedTTL, deniedTTL time.Duration
	// implicit reports that a reviewed token for which no audience is named is for this server.
	implicit bool

	tokens    *answers.Cache[key, *authenticationv1.TokenReviewStatus]
	decisions *answers.Cache[key, *authorizationv1.SubjectAccessReviewStatus]
}

func newReviewer(r reviewer) *reviewer {
	r.tokens = answers.New[key, *authenticationv1.TokenReviewStatus](kept)
	r.decisions = answers.New[key, *authorizationv1.SubjectAccessReviewStatus](kept)
	return &r
}

// AuthenticateToken implements [auth.TokenAuthenticator] with TokenReviews.
func (d *reviewer) AuthenticateToken(ctx context.Context, token string, audiences []string) (user *auth.User, meant []string, err error) {
	question, err := json.Marshal([]any{token, audiences})
	if err != nil {
		return nil, nil, err
	}
	status, err := d.tokens.Get(ctx, sha256.Sum256(question), func(ctx context.Context) (answers.Answer[*authenticationv1.TokenReviewStatus], error) {
		var none answers.Answer[*authenticationv1.TokenReviewStatus]
		review := &authenticationv1.TokenReview{
			TypeMeta: metav1.TypeMeta{APIVersion: "authentication.k8s.io/" + d.version, Kind: "TokenReview"},
			Spec:     authenticationv1.TokenReviewSpec{Token: token, Audiences: audiences},
		}
		var answer authenticationv1.TokenReview
		if err := d.client.Post(ctx, d.tokenPath, review, &answer); err != nil {
			return none, fmt.Errorf("delegated: review a token: %w", err)
		}
		return answers.Answer[*authenticationv1.TokenReviewStatus]{Value: &answer.Status, Good: answer.Status.Authenticated, For: d.tokenTTL}, nil
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
	if len(audiences) > 0 && len(status.Audiences) == 0 && !d.implicit {
		// A cluster that knows nothing of audiences has reviewed the token for itself.
		return nil, nil, fmt.Errorf("delegated: review a token: the cluster does not say for which audience it is")
	}
	return user, status.Audiences, nil
}

// authorizer asks a reviewer.
type authorizer struct{ *reviewer }

// Authorize implements [auth.Authorizer] with SubjectAccessReviews.
func (d authorizer) Authorize(ctx context.Context, a *auth.Attributes) (auth.Decision, string, error) {
	spec := specOf(a)
	question, err := json.Marshal(spec)
	if err != nil {
		return auth.NoOpinion, "", err
	}
	status, err := d.decisions.Get(ctx, sha256.Sum256(question), func(ctx context.Context) (answers.Answer[*authorizationv1.SubjectAccessReviewStatus], error) {
		var none answers.Answer[*authorizationv1.SubjectAccessReviewStatus]
		var answer authorizationv1.SubjectAccessReview
		if err := d.client.Post(ctx, d.accessPath, accessReview(d.version, spec), &answer); err != nil {
			return none, fmt.Errorf("delegated: review the access of %q: %w", a.User.Name, err)
		}
		valid := d.deniedTTL
		if answer.Status.Allowed {
			valid = d.allowedTTL
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

// accessReview returns a review in a version. In v1beta1 the groups have another name.
func accessReview(version string, spec authorizationv1.SubjectAccessReviewSpec) any {
	meta := metav1.TypeMeta{APIVersion: "authorization.k8s.io/" + version, Kind: "SubjectAccessReview"}
	review := &authorizationv1.SubjectAccessReview{TypeMeta: meta, Spec: spec}
	if version == "v1" {
		return review
	}
	groups := spec.Groups
	review.Spec.Groups = nil
	return &struct {
		metav1.TypeMeta
		Spec any `json:"spec"`
	}{meta, struct {
		authorizationv1.SubjectAccessReviewSpec
		Group []string `json:"group,omitempty"`
	}{review.Spec, groups}}
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
