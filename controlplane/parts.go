// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"errors"
	"fmt"
	"net/http"
	"slices"

	apiresource "github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/admission"
	"github.com/steer-dev/steer/controlplane/admission/match"
	"github.com/steer-dev/steer/controlplane/admission/policies"
	"github.com/steer-dev/steer/controlplane/admission/webhooks"
	"github.com/steer-dev/steer/controlplane/apiservice"
	"github.com/steer-dev/steer/controlplane/autoscaling"
	"github.com/steer-dev/steer/controlplane/certificates"
	"github.com/steer-dev/steer/controlplane/component"
	"github.com/steer-dev/steer/controlplane/core"
	"github.com/steer-dev/steer/controlplane/core/admissionregistration"
	"github.com/steer-dev/steer/controlplane/core/flowcontrol"
	"github.com/steer-dev/steer/controlplane/core/node"
	"github.com/steer-dev/steer/controlplane/core/pod"
	"github.com/steer-dev/steer/controlplane/core/podspec"
	"github.com/steer-dev/steer/controlplane/core/resource"
	"github.com/steer-dev/steer/controlplane/core/service"
	"github.com/steer-dev/steer/controlplane/core/service/ranges"
	"github.com/steer-dev/steer/controlplane/crd"
	"github.com/steer-dev/steer/controlplane/crd/cleanup"
	"github.com/steer-dev/steer/controlplane/disruption"
	"github.com/steer-dev/steer/controlplane/expiry"
	"github.com/steer-dev/steer/controlplane/gc"
	"github.com/steer-dev/steer/controlplane/internal/expression"
	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/controlplane/kubelet"
	"github.com/steer-dev/steer/controlplane/kubernetesservice"
	"github.com/steer-dev/steer/controlplane/namespace"
	"github.com/steer-dev/steer/controlplane/protection"
	"github.com/steer-dev/steer/controlplane/quota"
	"github.com/steer-dev/steer/controlplane/rbac"
	"github.com/steer-dev/steer/controlplane/serviceaccount"
	"github.com/steer-dev/steer/controlplane/storagemigration"
	"github.com/steer-dev/steer/controlplane/webhookclient"
	"github.com/steer-dev/steer/controlplane/workloads"
	"github.com/steer-dev/steer/storage"
)

// parts returns all parts of the plane, those that [Options.Disable] names as well, and
// the authenticator of its server, which verifies the tokens of one of them.
func (p *Plane) parts(roles *rbac.Authorizer) (component.List, *authenticator, error) { //nolint:funlen // the list of parts, and what they share
	o, server := &p.options, p.server
	var err error
	p.webhooks, err = webhookclient.New(o.Webhooks, webhookclient.Deps{Store: p.store, Public: o.Listen != "" && !onlyLocal(o.Listen), Simulates: o.Workloads != nil})
	if err != nil {
		return nil, nil, fmt.Errorf("controlplane: Options.Webhooks: %w", err)
	}
	d := component.Deps{
		Store: p.store, Server: server, Catalog: component.NewCatalog(server), Send: p.send, Fetch: p.fetch,
		Authorizer: p.authorizer, Entropy: o.Entropy, Progress: p.stages.Progress(), Upkeep: p.upkeep,
		Metrics: o.Metrics, Log: o.Log, Webhooks: p.webhooks,
	}
	d.Measure(p.webhooks.Collectors()...)
	uses := serviceaccount.NewUses()
	tokens := p.tokens(uses)
	authentication := newAuthenticator(p.keys, o.Authentication, tokens)
	definitions := crd.New(crd.Options{
		Server: server, Store: p.store, Schemas: sharedSchemas(), Transport: server.Reserved(identity(step.APIServer)),
		Webhooks: d.Webhooks, NewUID: o.Entropy.UID, Measure: d.Measure, Upkeep: d.Upkeep, Log: d.Logger(),
	})
	aggregation := apiservice.New(d, apiservice.Identity{
		Certificate: (&clientCertificate{keys: p.keys, issue: forBackends}).get, Proxy: o.Authentication.FrontProxy,
	})
	for _, version := range o.Serve {
		if !slices.Contains(OptionalVersions(), version) {
			return nil, nil, fmt.Errorf("controlplane: Options.Serve: %q: there are %v", version, OptionalVersions())
		}
	}
	if err := service.CheckRanges(o.ServiceRanges); err != nil {
		return nil, nil, fmt.Errorf("controlplane: Options.ServiceRanges: %w", err)
	}
	allocator := service.NewServiceAllocator(p.store, o.ServiceRanges, o.Entropy.UID)
	p.self = &kubernetesservice.Server{
		Store: p.store, NewUID: o.Entropy.UID, Send: p.send,
		Service: kubernetesservice.Service{Ranges: allocator.Ranges(), Listen: o.Listen},
	}
	if o.has(ranges.ControllerName) {
		p.self.RangeFinalizer = ranges.Finalizer
	}
	if err := quota.CheckLimited(o.LimitedResources); err != nil {
		return nil, nil, fmt.Errorf("controlplane: Options.LimitedResources: %w", err)
	}
	quotaPlugin, quotaController := quota.Parts(d, o.LimitedResources)
	matching, expressions := match.NewDeps(d), new(expression.Compiler)
	mutatingPolicies, validatingPolicies := policies.Parts(d, matching, expressions)
	mutatingWebhooks, validatingWebhooks := webhooks.Parts(d, matching, expressions)

	list := slices.Concat(
		p.kinds(d, authentication),
		p.plugins(d),
		// What kube-apiserver does in the kinds themselves comes after the plugins that change
		// objects, and ResourceQuota last: it charges for what all others admit.
		component.List{
			mutatingPolicies,
			mutatingWebhooks,
			allocator.Component(),
			{Name: "profiles of AppArmor", Admission: podspec.AppArmor{}, For: []string{"pods"}},
			kubernetesservice.Leases{}.Component(),
			definitions.TerminationComponent(),
			{Name: "Options.Admission", Admission: p.options.Admission},
			rbac.EscalationComponent(d, roles),
			validatingPolicies,
			validatingWebhooks,
			quotaPlugin,
		},
		p.own(d, definitions, tokens, aggregation),
		component.List{
			gc.New(d.Catalog, step.LifeOf, d.Fetch).Component(),
			component.Controller(namespace.New(d.Catalog, step.LifeOf, d.Fetch)),
			component.ServerController(cleanup.New(d.Catalog, step.LifeOf)),
			component.ServerController(expiry.New()),
			component.Controller(protection.New(step.LifeOf)),
			component.Controller(disruption.New(d.Catalog)),
			component.Controller(autoscaling.NewController(d.Catalog, d.Fetch)),
			component.Controller(ranges.NewController()),
			component.Controller(storagemigration.NewController(d.Catalog)),
			quotaController,
			component.Controller(rbac.NewAggregator()),
			component.ServerController(apiservice.NewController()),
			component.ServerController(apiservice.NewAvailability(aggregation)),
			aggregation.DiscoveryComponent(),
			component.ServerController(flowcontrol.NewController()),
			component.Controller(admissionregistration.NewPolicyController(server.Resources)),
			component.Controller(certificates.NewSigner(p.authority)),
			component.Controller(certificates.NewCleaner()),
			component.Controller(certificates.NewPodCleaner()),
			serviceaccount.NewDefaultAccounts().Component(d),
			serviceaccount.NewRootCAs(p.roots).Component(d),
			component.Controller(serviceaccount.NewTokenSecrets(tokens, p.roots)),
			uses.Component(),
		},
	)
	if o.Workloads != nil {
		simulated, err := workloads.New(*o.Workloads)
		if err != nil {
			return nil, nil, fmt.Errorf("controlplane: %w", err)
		}
		list = append(list, component.ServerController(simulated))
	}
	return list, authentication, nil
}

// kinds are the built-in kinds, without those of the parts in [Plane.own].
func (p *Plane) kinds(d component.Deps, authentication *authenticator) component.List {
	pods := pod.Subresources{
		Store: d.Store, Send: p.sendFor, Authorizer: d.Authorizer,
		Kubelets: kubelet.New(p.options.Kubelets, (&clientCertificate{keys: p.keys, issue: forKubelets}).get),
	}
	return component.List{
		{Name: "kinds", Resources: p.options.resources()},
		{Name: "reviews", Resources: core.Reviews(d.Authorizer, authentication)},
		certificates.Component(d),
		pods.Component(),
		resource.Access{Authorizer: d.Authorizer, Store: d.Store}.Component(),
		admissionregistration.Parameters{Authorizer: d.Authorizer, Store: d.Store, Catalog: d.Catalog}.Component(),
		p.options.components(d.Store).Component(),
	}
}

// plugins are the admission plugins before [Options.Admission], in the order of
// kube-apiserver.
func (p *Plane) plugins(d component.Deps) component.List {
	return slices.Concat(component.List{namespace.Plugin(d)}, admission.Plugins(d).
		After("LimitRanger", serviceaccount.Plugin(d)).
		After("RuntimeClass", certificates.Plugins(d)...))
}

// own are the parts of an API server beside kinds and admission, in the order of the
// health reports of kube-apiserver. What that has beyond them is not listed: its own
// certificate, leases and peers, and the enforcement of flow control.
func (p *Plane) own(d component.Deps, definitions *crd.Definitions, tokens *serviceaccount.Tokens, aggregation *apiservice.Aggregation) component.List {
	is := d.Progress
	return component.List{
		{
			Name: "server",
			Health: slices.Concat(
				component.Hooks(is.Booted, "start-apiserver-admission-initializer", "generic-apiserver-start-informers"),
				component.Hooks(is.Running, "priority-and-fairness-config-consumer"),
				component.Hooks(is.Booted, "storage-object-count-tracker-hook"),
			),
			Handlers: map[string]http.Handler{SnapshotPath: http.HandlerFunc(p.serveSnapshot)},
		},
		definitions.Component(is),
		namespace.SystemComponent(d),
		kubernetesservice.TrustComponent(d),
		{Name: "store", Health: component.Hooks(d.Store.Health, "storage-readiness")},
		tokens.Component(d, p.keySetURL),
		{Name: "allocations of services", Health: service.Allocated(is)},
		rbac.BootComponent(d, p.options.Workloads != nil),
		node.SystemPriorityClasses(d),
		flowcontrol.BootComponent(d),
		p.self.Component(d),
		{Name: "processes behind services", Handlers: p.options.Webhooks.Services.Handlers()},
		aggregation.Component(d),
	}
}

// Plugins returns the names of the admission plugins that a plane has and
// [Options.Disable] can leave out, as --disable-admission-plugins of
// kube-apiserver names them, in the order in which they are called.
func Plugins() []string { return allParts().PluginNames() }

// Controllers returns the names of the controllers that a plane has and
// [Options.Disable] can leave out, as --controllers of kube-controller-manager
// names them. A plane without them is what kube-apiserver is by itself. Nothing
// makes ServiceAccounts then, so that one where Pods are created also wants to be
// without the plugin ServiceAccount.
func Controllers() []string { return allParts().ControllerNames() }

// Versions returns the versions of the API that a plane has by itself, as apiVersions have them.
func Versions() []string { return allParts().Versions() }

// OptionalVersions returns the versions that [Options.Serve] adds.
func OptionalVersions() []string { return []string{admissionregistration.BetaVersion} }

// resources are the built-in kinds in the versions that are served.
func (o *Options) resources() []*apiresource.Resource {
	out := core.Resources()
	if !slices.Contains(o.Serve, admissionregistration.BetaVersion) {
		return out
	}
	for _, r := range admissionregistration.Beta() {
		i := slices.IndexFunc(out, func(other *apiresource.Resource) bool { return other.GroupResource() == r.GroupResource() })
		out[i] = r
	}
	return out
}

// allParts are those of a plane that is not going to serve.
func allParts() component.List {
	p := &Plane{store: storage.NewMemory(storage.MemoryOptions{}), options: Options{}.withDefaults()}
	list, _, err := p.declare()
	if err != nil {
		panic(err) // the zero options are valid
	}
	return list
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

// has reports whether a part is not left out.
func (o *Options) has(name string) bool { return !slices.Contains(o.Disable, name) }
