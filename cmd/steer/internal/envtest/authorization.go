// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/apiserver/delegated"
	"github.com/steer-dev/steer/controlplane/rbac"
)

// authorizationFlags are the flags of kube-apiserver that say what users may do.
type authorizationFlags struct {
	modes              []string
	configFile         string
	policyFile         string
	webhook            webhookFlags
	allowed, forbidden time.Duration
	given              func(flag string) bool
}

func (z *authorizationFlags) register(f *pflag.FlagSet) {
	f.StringSliceVar(&z.modes, "authorization-mode", []string{"AlwaysAllow"}, "AlwaysAllow: every user that is known; RBAC: roles and their bindings; ABAC: --authorization-policy-file; Webhook: --authorization-webhook-config-file; Node, AlwaysDeny: no user. The group system:masters may do everything")
	f.StringVar(&z.configFile, "authorization-config", "", "file with an AuthorizationConfiguration, in place of --authorization-mode; it is read once, and may not name webhooks")
	f.StringVar(&z.policyFile, "authorization-policy-file", "", "policies of the mode ABAC, one on each line")
	z.webhook.register(f, "authorization", "SubjectAccessReviews")
	f.DurationVar(&z.allowed, "authorization-webhook-cache-authorized-ttl", 5*time.Minute, "how long the webhook's permissions are remembered")
	f.DurationVar(&z.forbidden, "authorization-webhook-cache-unauthorized-ttl", 30*time.Second, "how long its other answers are")
	z.given = f.Changed
}

// authorizer returns the one for the flags; nil is the plane's own, by roles.
func (z *authorizationFlags) authorizer() (auth.Authorizer, error) {
	if z.configFile != "" {
		if z.given("authorization-mode") || z.policyFile != "" || z.webhook.file != "" {
			return nil, errors.New("--authorization-config says what --authorization-mode and the flags of ABAC and of webhooks would: leave these out")
		}
		modes, err := readModes(z.configFile)
		if err != nil {
			return nil, fmt.Errorf("--authorization-config: %s: %w", z.configFile, err)
		}
		z.modes = modes
	}
	for mode, file := range map[string]string{"ABAC": z.policyFile, "Webhook": z.webhook.file} {
		if slices.Contains(z.modes, mode) != (file != "") {
			return nil, fmt.Errorf("--authorization-mode=%s and %s belong together: give both or none", mode,
				map[string]string{"ABAC": "--authorization-policy-file", "Webhook": "--authorization-webhook-config-file"}[mode])
		}
	}
	out := auth.Authorizers{auth.AllowMasters{}}
	for _, mode := range z.modes {
		switch mode {
		case "Node":
		case "AlwaysDeny":
			out = append(out, alwaysDeny{})
		case "RBAC":
			out = append(out, rbac.ByRoles{})
		case "AlwaysAllow":
			out = append(out, allowKnown{}, auth.AllowPaths(openPaths()))
		case "ABAC":
			lines, err := readPolicies(z.policyFile)
			if err != nil {
				return nil, fmt.Errorf("--authorization-policy-file: %w", err)
			}
			out = append(out, lines)
		case "Webhook":
			options, err := z.webhook.options()
			if err != nil {
				return nil, err
			}
			options.AllowedTTL, options.DeniedTTL = z.allowed, z.forbidden
			hook, err := delegated.NewAccessWebhook(options)
			if err != nil {
				return nil, err
			}
			out = append(out, hook)
		default:
			return nil, fmt.Errorf("--authorization-mode: there is no mode %q: use RBAC, ABAC, Webhook or AlwaysAllow", mode)
		}
	}
	return out, nil
}

// webhookFlags are those of a webhook that reviews.
type webhookFlags struct{ prefix, file, version string }

// register defines the flags of a webhook; prefix begins their names, and reviews are what it gets.
func (w *webhookFlags) register(f *pflag.FlagSet, prefix, reviews string) {
	w.prefix = prefix + "-webhook"
	f.StringVar(&w.file, w.prefix+"-config-file", "", "kubeconfig of a webhook that answers "+reviews)
	f.StringVar(&w.version, w.prefix+"-version", "v1beta1", "version of these reviews: v1 or v1beta1")
}

func (w *webhookFlags) options() (o delegated.WebhookOptions, err error) {
	if w.version != "v1" && w.version != "v1beta1" {
		return o, fmt.Errorf("--%s-version: %q is neither v1 nor v1beta1", w.prefix, w.version)
	}
	o.Version = w.version
	if o.Config, err = clientcmd.BuildConfigFromFlags("", w.file); err != nil {
		return o, fmt.Errorf("--%s-config-file: %w", w.prefix, err)
	}
	o.Config.QPS = -1
	return o, nil
}

// openPaths are those that a request without credentials may ask for in the mode AlwaysAllow.
func openPaths() []string { return []string{"/healthz", "/livez", "/readyz", "/version", "/version/"} }

// alwaysDeny allows nothing, in the words of kube-apiserver.
type alwaysDeny struct{}

// Authorize implements [auth.Authorizer].
func (alwaysDeny) Authorize(context.Context, *auth.Attributes) (auth.Decision, string, error) {
	return auth.NoOpinion, "alwaysdeny: Everything is forbidden.", nil
}

// Rules implements [auth.RuleLister].
func (alwaysDeny) Rules(context.Context, *auth.User, string) (auth.Rules, error) {
	return auth.Rules{}, nil
}

// allowKnown allows everything to users who have shown who they are, and answers a review
// of any other user but the anonymous one alike: a review may name no groups.
type allowKnown struct{}

func known(u *auth.User) bool { return u.Name != auth.Anonymous && !u.In(auth.Unauthenticated) }

// Authorize implements [auth.Authorizer].
func (allowKnown) Authorize(_ context.Context, a *auth.Attributes) (auth.Decision, string, error) {
	if known(a.User) {
		return auth.Allow, "", nil
	}
	return auth.NoOpinion, "", nil
}

// Rules implements [auth.RuleLister].
func (allowKnown) Rules(ctx context.Context, user *auth.User, namespace string) (auth.Rules, error) {
	if known(user) {
		return auth.AllowAll{}.Rules(ctx, user, namespace)
	}
	return auth.Rules{}, nil
}
