// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package delegated

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/rest"

	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/apiserver/internal/cluster"
)

// WebhookOptions of [NewTokenWebhook] and [NewAccessWebhook]. Config and Version are required.
type WebhookOptions struct {
	// Config reaches the webhook, as a kubeconfig says it: Host is its URL.
	Config *rest.Config
	// Version of the reviews: v1 or v1beta1.
	Version string
	// TokenTTL, AllowedTTL and DeniedTTL are how long answers are remembered. 0: they are not.
	TokenTTL, AllowedTTL, DeniedTTL time.Duration
}

func (o *WebhookOptions) reviewer() (*reviewer, error) {
	if o.Config == nil || o.Version != "v1" && o.Version != "v1beta1" {
		return nil, errors.New("delegated: WebhookOptions.Config is required, and Version has to be v1 or v1beta1")
	}
	c, err := cluster.New(o.Config)
	if err != nil {
		return nil, fmt.Errorf("delegated: the webhook: %w", err)
	}
	return newReviewer(reviewer{client: c, version: o.Version, implicit: true, tokenTTL: o.TokenTTL, allowedTTL: o.AllowedTTL, deniedTTL: o.DeniedTTL}), nil
}

// NewTokenWebhook returns an authenticator that sends TokenReviews to a webhook.
func NewTokenWebhook(o WebhookOptions) (auth.TokenAuthenticator, error) { return o.reviewer() }

// NewAccessWebhook returns an authorizer that sends SubjectAccessReviews to a webhook. It has no
// opinion while that does not answer.
func NewAccessWebhook(o WebhookOptions) (auth.Authorizer, error) {
	r, err := o.reviewer()
	if err != nil {
		return nil, err
	}
	return accessWebhook{authorizer{r}}, nil
}

type accessWebhook struct{ authorizer }

// Rules implements [auth.RuleLister], in the words of kube-apiserver.
func (accessWebhook) Rules(context.Context, *auth.User, string) (auth.Rules, error) {
	return auth.Rules{Incomplete: true}, errors.New("webhook authorizer does not support user rule resolution")
}
