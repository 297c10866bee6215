// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package core

import (
	"cmp"
	"context"
	"errors"
	"reflect"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/core/kind"
)

// Reviews returns the kinds by which clients ask who they are and what a user
// may do. Nothing of them is stored.
//
// Nil tokens leave TokenReview out.
func Reviews(authorizer auth.Authorizer, tokens TokenReviewer) []*resource.Resource {
	a := reviewer{authorizer, tokens}
	out := []*resource.Resource{
		review("authentication.k8s.io", "selfsubjectreviews", false, a.self, nil),
		review("authorization.k8s.io", "subjectaccessreviews", false, a.subject, validateSubject),
		review("authorization.k8s.io", "localsubjectaccessreviews", true, a.localSubject, validateLocalSubject),
		review("authorization.k8s.io", "selfsubjectaccessreviews", false, a.selfSubject, validateSelfSubject),
		review("authorization.k8s.io", "selfsubjectrulesreviews", false, a.selfRules, nil),
	}
	if tokens != nil {
		out = append(out, review("authentication.k8s.io", "tokenreviews", false, a.token, nil))
	}
	return out
}

// review describes a kind whose objects are answered and not stored. answer
// fills in the status.
func review[T any, P kind.Object[T]](group, plural string, namespaced bool,
	answer func(context.Context, *resource.Request, P) error, validate func(P) field.ErrorList) *resource.Resource {
	name := reflect.TypeFor[T]().Name()
	k := kind.Definition[T, P]{Group: group, Version: "v1", Plural: plural, Metadata: kind.Metadata{ErrorsOnce: true}}
	return &resource.Resource{
		Names: resource.Names{
			Group: group, Plural: plural, Singular: strings.ToLower(name), Kind: name, ListKind: name + "List", Namespaced: namespaced,
		},
		Versions: []resource.Version{{
			Name: "v1", New: func() resource.Object { return P(new(T)) }, Strategy: k.Strategy(),
			FieldManager: k.FieldManager(""),
		}},
		Backend: answerer[T, P]{group, answer, validate},
	}
}

// answerer is the backend of a review.
type answerer[T any, P kind.Object[T]] struct {
	group    string
	answer   func(context.Context, *resource.Request, P) error
	validate func(P) field.ErrorList
}

// Create implements resource.Creater. A refusal names the group only, as that of
// kube-apiserver does.
func (a answerer[T, P]) Create(ctx context.Context, r *resource.Request, obj resource.Object, _ *metav1.CreateOptions) (resource.Object, error) {
	if a.validate != nil {
		if errs := a.validate(obj.(P)); len(errs) > 0 {
			return nil, apierrors.NewInvalid(schema.GroupKind{Group: a.group}, "", errs)
		}
	}
	if err := a.answer(ctx, r, obj.(P)); err != nil {
		return nil, err
	}
	return obj, nil
}

// errNoRules: the authorizer can only be asked.
var errNoRules = errors.New("the authorizer of this server does not list rules: ask with a SelfSubjectAccessReview")

// reviewer answers reviews.
type reviewer struct {
	authorizer auth.Authorizer
	tokens     TokenReviewer
}

// TokenReviewer finds out about tokens; see [auth.Bearer].
type TokenReviewer interface {
	// Review returns the user of a token that is meant for one of the audiences,
	// and for which of them. Without audiences the server's own are meant.
	Review(ctx context.Context, token string, audiences []string) (*auth.User, []string, error)
}

func (reviewer) self(_ context.Context, r *resource.Request, obj *authenticationv1.SelfSubjectReview) error {
	obj.ObjectMeta = metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(time.Now())} // nothing else of it is answered
	obj.Status.UserInfo = r.User.Info()
	return nil
}

func (a reviewer) subject(ctx context.Context, _ *resource.Request, obj *authorizationv1.SubjectAccessReview) error {
	a.decide(ctx, subjectOf(&obj.Spec), obj.Spec.ResourceAttributes, obj.Spec.NonResourceAttributes, &obj.Status)
	return nil
}

func (a reviewer) localSubject(ctx context.Context, _ *resource.Request, obj *authorizationv1.LocalSubjectAccessReview) error {
	a.decide(ctx, subjectOf(&obj.Spec), obj.Spec.ResourceAttributes, nil, &obj.Status)
	return nil
}

func (a reviewer) selfSubject(ctx context.Context, r *resource.Request, obj *authorizationv1.SelfSubjectAccessReview) error {
	a.decide(ctx, r.User, obj.Spec.ResourceAttributes, obj.Spec.NonResourceAttributes, &obj.Status)
	return nil
}

func subjectOf(s *authorizationv1.SubjectAccessReviewSpec) *auth.User {
	u := &auth.User{Name: s.User, UID: s.UID, Groups: s.Groups, Extra: map[string][]string{}}
	for key, values := range s.Extra {
		u.Extra[key] = values
	}
	return u
}

// decide asks the authorizer. What it could not find, or what of the selectors
// could not be read, is in the status beside the decision.
func (a reviewer) decide(ctx context.Context, user *auth.User, r *authorizationv1.ResourceAttributes,
	n *authorizationv1.NonResourceAttributes, status *authorizationv1.SubjectAccessReviewStatus) {
	attributes := &auth.Attributes{User: user}
	var ignored []string
	if r != nil {
		attributes.ResourceRequest = true
		attributes.Verb, attributes.Group, attributes.Version = r.Verb, r.Group, cmp.Or(r.Version, "*")
		attributes.Resource, attributes.Subresource = r.Resource, r.Subresource
		attributes.Namespace, attributes.Name = r.Namespace, r.Name
		ignored = selectors(attributes, r)
	} else {
		attributes.Verb, attributes.Path = n.Verb, n.Path
	}
	decision, reason, err := a.authorizer.Authorize(ctx, attributes)
	if err != nil {
		ignored = append([]string{err.Error()}, ignored...)
	}
	*status = authorizationv1.SubjectAccessReviewStatus{
		Allowed: decision == auth.Allow, Denied: decision == auth.Deny, Reason: reason,
		EvaluationError: strings.Join(ignored, "; "),
	}
}

// selfRules answers with the rules that the authorizer lists. Of the question
// nothing is repeated.
func (a reviewer) selfRules(ctx context.Context, r *resource.Request, obj *authorizationv1.SelfSubjectRulesReview) error {
	namespace := obj.Spec.Namespace
	if namespace == "" {
		return apierrors.NewBadRequest("no namespace on request")
	}
	rules := auth.Rules{Incomplete: true}
	err := errNoRules
	if lister, ok := a.authorizer.(auth.RuleLister); ok {
		rules, err = lister.Rules(ctx, r.User, namespace)
	}
	*obj = authorizationv1.SelfSubjectRulesReview{TypeMeta: obj.TypeMeta, Status: authorizationv1.SubjectRulesReviewStatus{
		ResourceRules:    append([]authorizationv1.ResourceRule{}, rules.Resource...),
		NonResourceRules: append([]authorizationv1.NonResourceRule{}, rules.NonResource...),
		Incomplete:       rules.Incomplete,
	}}
	if err != nil {
		obj.Status.EvaluationError = err.Error()
	}
	return nil
}

func (a reviewer) token(ctx context.Context, _ *resource.Request, obj *authenticationv1.TokenReview) error {
	if obj.Spec.Token == "" {
		return apierrors.NewBadRequest("token is required for TokenReview in authentication")
	}
	user, audiences, err := a.tokens.Review(ctx, obj.Spec.Token, obj.Spec.Audiences)
	obj.Status = authenticationv1.TokenReviewStatus{}
	if err != nil {
		obj.Status.Error = err.Error()
		return nil //nolint:nilerr // that a token is wrong is the answer
	}
	obj.Status = authenticationv1.TokenReviewStatus{Authenticated: true, User: user.Info(), Audiences: audiences}
	return nil
}
