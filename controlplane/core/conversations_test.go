// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package core_test

import (
	"context"
	"slices"
	"testing"

	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/controlplane/admission"
	"github.com/steer-dev/steer/controlplane/component"
	"github.com/steer-dev/steer/controlplane/component/componenttest"
	"github.com/steer-dev/steer/controlplane/core"
	"github.com/steer-dev/steer/controlplane/core/pod"
	"github.com/steer-dev/steer/controlplane/core/podspec"
	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/controlplane/kubelet"
	"github.com/steer-dev/steer/controlplane/rbac"
)

// TestCoreAnswersAreThoseOfKubeAPIServer has the kinds whose rules are in this package, not
// in one for their family.
func TestCoreAnswersAreThoseOfKubeAPIServer(t *testing.T) {
	t.Parallel()
	componenttest.Conversations{
		Parts: func(d *component.Deps) component.List {
			roles := rbac.New(d.Store)
			d.Authorizer = auth.Authorizers{auth.AllowMasters{}, roles}
			return slices.Concat(
				component.List{{Name: "kinds", Resources: core.Resources()}, {Name: "reviews", Resources: core.Reviews(d.Authorizer, nil)}},
				admission.Plugins(*d),
				component.List{rbac.EscalationComponent(*d, roles), rbac.BootComponent(*d, false)},
			)
		},
		Of: []string{
			"configmaps", "secrets", "limitranges", "resourcequotas", "serviceaccounts", "events", "events.events.k8s.io", "leases.coordination.k8s.io",
			"poddisruptionbudgets.policy", "namespaces",
			"roles.rbac.authorization.k8s.io", "clusterroles.rbac.authorization.k8s.io",
			"rolebindings.rbac.authorization.k8s.io", "clusterrolebindings.rbac.authorization.k8s.io",
			"subjectaccessreviews.authorization.k8s.io", "localsubjectaccessreviews.authorization.k8s.io", "selfsubjectaccessreviews.authorization.k8s.io",
			"selfsubjectrulesreviews.authorization.k8s.io", "selfsubjectreviews.authentication.k8s.io",
		},
		Names: []string{
			"builtins", "events", "kinds-changes", "kinds-found", "kinds-leases", "kinds-limits", "kinds-metadata",
			"kinds-policy", "kinds-verbs", "rbac", "reviews-negotiated",
		},
		Except: map[string]string{
			"kinds-verbs/namespace-*": "the deletion of namespaces is in package namespace",
			"kinds-verbs/finalized":   "as above",
		},
	}.Run(t)
}

// podParts are the built-in kinds with the subresources and the admission of Pods.
func podParts(d *component.Deps) component.List {
	s := pod.Subresources{Store: d.Store, Authorizer: d.Authorizer, Kubelets: kubelet.New(kubelet.Options{}, nil)}
	s.Send = func(ctx context.Context, method, path string, body []byte) error {
		return d.Send(ctx, step.Request{User: step.APIServer, Method: method, Path: path, ContentType: step.JSON, Body: body})
	}
	return slices.Concat(
		component.List{{Name: "kinds", Resources: core.Resources()}, s.Component()},
		admission.Plugins(*d),
		component.List{{Name: "profiles of AppArmor", Admission: podspec.AppArmor{}, For: []string{"pods"}}},
	)
}

func TestPodAnswersAreThoseOfKubeAPIServer(t *testing.T) {
	t.Parallel()
	componenttest.Conversations{
		Parts: podParts, Of: []string{"pods", "podtemplates", "bindings"},
		Names: []string{
			"evictions", "kinds-boot", "kinds-changes", "kinds-defaults", "kinds-pod-resize", "kinds-pod-status", "kinds-pod-whole", "kinds-pods",
		},
		Except: map[string]string{},
	}.Run(t)
}

// TestPodSpecAnswersAreThoseOfKubeAPIServer has the rules of specifications in Pods, and
// in the templates of workloads.
func TestPodSpecAnswersAreThoseOfKubeAPIServer(t *testing.T) {
	t.Parallel()
	componenttest.Conversations{
		Parts: func(d *component.Deps) component.List {
			return slices.Concat(
				component.List{{Name: "kinds", Resources: core.Resources()}},
				admission.Plugins(*d),
				component.List{{Name: "profiles of AppArmor", Admission: podspec.AppArmor{}, For: []string{"pods"}}},
			)
		},
		Of:     []string{"pods", "podtemplates", "deployments.apps", "jobs.batch"},
		Names:  []string{"kinds-pods", "kinds-pod-resize", "kinds-workloads"},
		Except: map[string]string{"kinds-pods/evicted": "evictions are a part of package pod"},
	}.Run(t)
}
