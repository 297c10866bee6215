// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package match

import (
	"context"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/steer-dev/steer/apiserver/auth"
)

// authorization answers the variable "authorizer" of expressions.
type authorization struct{ auth.Authorizer }

// Authorize is an authorizer.AuthorizerFunc.
func (z authorization) Authorize(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	asked := &auth.Attributes{
		Verb: a.GetVerb(), ResourceRequest: a.IsResourceRequest(), Group: a.GetAPIGroup(), Version: a.GetAPIVersion(),
		Resource: a.GetResource(), Subresource: a.GetSubresource(), Namespace: a.GetNamespace(), Name: a.GetName(), Path: a.GetPath(),
	}
	if u := a.GetUser(); u != nil {
		asked.User = &auth.User{Name: u.GetName(), UID: u.GetUID(), Groups: u.GetGroups(), Extra: u.GetExtra()}
	}
	byField, _ := a.GetFieldSelector()
	byLabel, _ := a.GetLabelSelector()
	if byField != nil || byLabel != nil {
		asked.Selected = func() (fields.Requirements, labels.Requirements) { return byField, byLabel }
	}
	decision, reason, err := z.Authorizer.Authorize(ctx, asked)
	switch decision {
	case auth.Allow:
		return authorizer.DecisionAllow, reason, err
	case auth.Deny:
		return authorizer.DecisionDeny, reason, err
	}
	return authorizer.DecisionNoOpinion, reason, err
}
