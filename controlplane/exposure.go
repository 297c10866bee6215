// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/controlplane/namespace"
)

// mayListen refuses addresses that other machines reach while users without
// credentials may read or write objects. Single objects that a rule lets them get
// by name are published on purpose and allowed, Secrets excepted.
func (p *Plane) mayListen(ctx context.Context, address string) error {
	if onlyLocal(address) || p.options.Authentication.NoAnonymous {
		return nil
	}
	view := p.store.Latest()
	namespaces := []string{""}
	for rec := range view.Ascend(namespace.Bucket, "", "") {
		namespaces = append(namespaces, rec.Key.Name)
	}
	exposed, err := exposure(ctx, p.authorizer, namespaces)
	if err != nil {
		return fmt.Errorf("controlplane: ask the authorizer: %w", err)
	}
	if exposed != "" {
		return fmt.Errorf("%w (they may %s)", ErrUnprotected, exposed)
	}
	return nil
}

// exposure returns something that users without credentials may do with objects,
// in words, or an empty string. The namespaces include the empty one, for the rules
// of the whole cluster. An authorizer that does not list its rules is asked about
// the verbs of a few resources.
func exposure(ctx context.Context, authorizer auth.Authorizer, namespaces []string) (string, error) {
	stranger := &auth.User{Name: auth.Anonymous, Groups: []string{auth.Unauthenticated}}
	if what, err := probed(ctx, authorizer, &auth.Attributes{User: stranger, Verb: "get", Path: SnapshotPath}); what != "" || err != nil {
		return what, err
	}
	lister, lists := authorizer.(auth.RuleLister)
	for _, ns := range namespaces {
		if !lists {
			break
		}
		rules, err := lister.Rules(ctx, stranger, ns)
		if err != nil && !rules.Incomplete {
			return "", err
		}
		for i := range rules.Resource {
			if what := exposedBy(&rules.Resource[i]); what != "" {
				return what + within(ns), nil
			}
		}
		lists = !rules.Incomplete
	}
	if lists {
		return "", nil
	}
	for _, verb := range []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"} {
		for _, plural := range []string{"configmaps", "secrets", "pods"} {
			for _, ns := range []string{"", "default", "kube-system", "kube-public"} {
				what, err := probed(ctx, authorizer, &auth.Attributes{User: stranger, Verb: verb, ResourceRequest: true, Version: "v1", Resource: plural, Namespace: ns})
				if what != "" || err != nil {
					return what, err
				}
			}
		}
	}
	return "", nil
}

// exposedBy returns what a rule allows beyond getting single objects by name.
func exposedBy(r *authorizationv1.ResourceRule) string {
	secrets := slices.ContainsFunc(r.Resources, func(plural string) bool { return plural == "*" || plural == "secrets" })
	if len(r.ResourceNames) > 0 && !secrets && slices.Equal(r.Verbs, []string{"get"}) || len(r.Verbs) == 0 || len(r.Resources) == 0 {
		return ""
	}
	return strings.Join(r.Verbs, ", ") + " " + strings.Join(r.Resources, ", ")
}

// probed returns in words what the attributes ask for, if that is allowed.
func probed(ctx context.Context, authorizer auth.Authorizer, a *auth.Attributes) (string, error) {
	decision, _, err := authorizer.Authorize(ctx, a)
	switch {
	case err != nil || decision != auth.Allow:
		return "", err
	case a.ResourceRequest:
		return a.Verb + " " + a.Resource + within(a.Namespace), nil
	}
	return a.Verb + " " + a.Path, nil
}

// within says in words where a rule applies.
func within(ns string) string {
	if ns == "" {
		return ""
	}
	return fmt.Sprintf(" in the namespace %q", ns)
}

// onlyLocal reports whether only this machine reaches an address.
func onlyLocal(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
