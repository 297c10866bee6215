// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package pod_test

import (
	"context"
	"slices"
	"testing"

	"github.com/steer-dev/steer/controlplane/admission"
	"github.com/steer-dev/steer/controlplane/core"
	"github.com/steer-dev/steer/controlplane/core/pod"
	"github.com/steer-dev/steer/controlplane/core/podspec"
	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/controlplane/kubelet"
	"github.com/steer-dev/steer/controlplane/part"
	"github.com/steer-dev/steer/controlplane/part/parttest"
)

// parts are the built-in kinds with the subresources and the admission of Pods.
func parts(d *part.Deps) part.List {
	s := pod.Subresources{Store: d.Store, Authorizer: d.Authorizer, Kubelets: kubelet.New(kubelet.Options{}, nil)}
	s.Send = func(ctx context.Context, method, path string, body []byte) error {
		return d.Send(ctx, step.Request{User: step.APIServer, Method: method, Path: path, ContentType: step.JSON, Body: body})
	}
	return slices.Concat(
		part.List{{Name: "kinds", Resources: core.Resources()}, s.Part()},
		admission.Plugins(*d),
		part.List{{Name: "profiles of AppArmor", Admission: podspec.AppArmor{}, For: []string{"pods"}}},
	)
}

func TestPodAnswersAreThoseOfKubeAPIServer(t *testing.T) {
	t.Parallel()
	parttest.Conversations{
		Parts: parts, Of: []string{"pods", "podtemplates", "bindings"},
		Names: []string{
			"evictions", "kinds-boot", "kinds-changes", "kinds-defaults", "kinds-pod-resize", "kinds-pod-status", "kinds-pods",
		},
		Except: map[string]string{},
	}.Run(t)
}
