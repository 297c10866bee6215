// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/steer-dev/steer/controlplane/admission"
	"github.com/steer-dev/steer/controlplane/certificates"
	"github.com/steer-dev/steer/controlplane/core/autoscaling"
	"github.com/steer-dev/steer/controlplane/core/registration"
	"github.com/steer-dev/steer/controlplane/core/service"
	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/controlplane/kubernetesservice"
	"github.com/steer-dev/steer/storage"
)

// Plugins returns the names of the admission plugins that a plane has and
// [Options.Disable] can leave out, as --disable-admission-plugins of
// kube-apiserver names them.
func Plugins() []string {
	return slices.Concat([]string{"NamespaceLifecycle", "ServiceAccount"}, admission.Names(),
		[]string{certificates.ApprovalPlugin, certificates.SigningPlugin, certificates.SubjectPlugin, "ResourceQuota"})
}

// Controllers returns the names of the controllers that a plane has and
// [Options.Disable] can leave out, as --controllers of kube-controller-manager
// names them. A plane without them is what kube-apiserver is by itself. Nothing
// makes ServiceAccounts then, so that one where Pods are created also wants to be
// without the plugin ServiceAccount.
func Controllers() []string {
	return []string{
		"garbage-collector-controller", "namespace-controller", "persistentvolumeclaim-protection-controller", "disruption-controller", autoscaling.ControllerName, "resourcequota-controller", service.RangeControllerName,
		"clusterrole-aggregation-controller", registration.PolicyControllerName,
		"serviceaccount-controller", "root-ca-certificate-publisher-controller", "serviceaccount-token-controller",
		"certificatesigningrequest-signing-controller", "certificatesigningrequest-cleaner-controller",
	}
}

// Why a part of a control plane does not run in this one.
var (
	errNoScheduler   = errors.New("this control plane has no scheduler: nothing runs Pods here, unless workloads are simulated")
	errNoControllers = errors.New("the built-in controllers act on demand only")
)

// components returns the parts of a plane by the names of those of a cluster.
func (o *Options) components(store storage.Store) kubernetesservice.Components {
	c := kubernetesservice.Components{Store: store.Health}
	if o.ManualControllers {
		c.ControllerManager = errNoControllers
	}
	if c.Scheduler = c.ControllerManager; o.Workloads == nil {
		c.Scheduler = errNoScheduler
	}
	return c
}

// checkDisabled refuses names of what there is not.
func (o *Options) checkDisabled() error {
	for _, name := range o.Disable {
		if all := slices.Concat(Plugins(), Controllers()); !slices.Contains(all, name) {
			return fmt.Errorf("controlplane: Options.Disable: there is no %q; there are %s", name, strings.Join(all, ", "))
		}
	}
	return nil
}

// has reports whether a part is not left out.
func (o *Options) has(name string) bool { return !slices.Contains(o.Disable, name) }

// controllers returns those that are not left out, in order.
func (o *Options) controllers(all ...step.Controller) []step.Controller {
	return slices.DeleteFunc(all, func(c step.Controller) bool { return !o.has(c.Name()) })
}
