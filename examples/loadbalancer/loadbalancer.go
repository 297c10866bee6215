// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package loadbalancer is the part of a cloud provider that gives Services of type
// LoadBalancer an address: the controller of something outside of the cluster, which no
// watch tells about, which is slow, full, behind, and changed by others.
package loadbalancer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/steer-dev/steer"
	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/controller"
	"github.com/steer-dev/steer/examples/loadbalancer/cloud"
	"github.com/steer-dev/steer/manager"
)

// Class is the spec.loadBalancerClass of the Services that are served. Those of other
// classes, and those without one, belong to other controllers.
const Class = "example.com/cloud"

// Finalizer holds a Service back until its balancer is deleted.
const Finalizer = "example.com/balancer"

// Options of [Operator].
type Options struct {
	// Cloud to call. Required.
	Cloud cloud.API
	// Poll is the time between two looks at a balancer that needs nothing: how long a
	// change from outside lasts. 0 means 5 minutes.
	Poll time.Duration
	// Settle is how long the cloud may show an old state after a write. 0 means 5 seconds.
	Settle time.Duration
}

// Operator serves Services.
func Operator(o Options) steer.Operator {
	if o.Poll == 0 {
		o.Poll = 5 * time.Minute
	}
	if o.Settle == 0 {
		o.Settle = 5 * time.Second
	}
	return steer.Operator{
		Name:   "loadbalancer",
		Scheme: steer.Scheme{corev1.AddToScheme},
		Setup: func(_ context.Context, m *manager.Manager) error {
			r := &Reconciler{client: m.Client(), options: o}
			return controller.Add(m, r,
				controller.Where(concerned),
				controller.Watches(controller.Map(r.all), nodesChanged),
				controller.Finalizer(Finalizer, r.Cleanup))
		},
	}
}

// Reconciler keeps the balancers.
type Reconciler struct {
	client  client.Client
	options Options
}

// +kubebuilder:rbac:groups="",resources=services,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups="",resources=services/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconcile makes the balancer of a Service what the Service says.
func (r *Reconciler) Reconcile(ctx context.Context, s *corev1.Service) (controller.Result, error) {
	if !served(s) {
		return r.release(ctx, s)
	}
	want, err := r.desired(ctx, s)
	if err != nil {
		return controller.Result{}, err
	}
	have, err := r.options.Cloud.Get(ctx, name(s))
	switch {
	case errors.Is(err, cloud.ErrNotFound):
		// Not there, or created a moment ago and not visible: the name decides.
		if err = r.options.Cloud.Create(ctx, name(s), want); errors.Is(err, cloud.ErrExists) {
			err = nil
		}
	case err != nil:
	case !have.Spec.Equal(want):
		controller.Emit(ctx, controller.UserEvent{Reason: "UpdatingLoadBalancer", Note: "the load balancer differs from the Service"})
		err = r.options.Cloud.Update(ctx, name(s), want)
	case have.Address != "":
		s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: have.Address}}
		controller.SetReady(s, &s.Status.Conditions, "Provisioned", fmt.Sprintf("it sends to %d nodes", len(want.Nodes)))
		return controller.After(r.options.Poll), nil
	}
	if err != nil {
		return r.failed(s, err)
	}
	// What was written shows after a while.
	controller.SetReconciling(s, &s.Status.Conditions, "Provisioning", "the cloud is at work")
	return controller.After(r.options.Settle), nil
}

// failed sorts errors by what helps: to wait as long as the cloud says, to wait for
// people, to change the Service, or to try again.
func (r *Reconciler) failed(s *corev1.Service, err error) (controller.Result, error) {
	var throttled *cloud.ThrottledError
	switch {
	case errors.As(err, &throttled):
		return controller.After(throttled.After), nil
	case errors.Is(err, cloud.ErrQuota):
		controller.SetStalled(s, &s.Status.Conditions, "QuotaExceeded", err.Error())
		return controller.After(r.options.Poll), nil
	case errors.Is(err, cloud.ErrInvalid):
		controller.SetStalled(s, &s.Status.Conditions, "NotSupported", err.Error())
		return controller.Result{}, controller.Terminal(err)
	}
	return controller.Result{}, err
}

// release deletes the balancer of a Service that is not of our class and type any more.
func (r *Reconciler) release(ctx context.Context, s *corev1.Service) (controller.Result, error) {
	if err := r.options.Cloud.Delete(ctx, name(s)); err != nil && !errors.Is(err, cloud.ErrNotFound) {
		return r.failed(s, err)
	}
	s.Status.LoadBalancer = corev1.LoadBalancerStatus{}
	s.Status.Conditions = nil
	return controller.Done(), nil
}

// Cleanup deletes the balancer before the Service goes.
func (r *Reconciler) Cleanup(ctx context.Context, s *corev1.Service) (controller.FinalizerResult, error) {
	err := r.options.Cloud.Delete(ctx, name(s))
	var throttled *cloud.ThrottledError
	switch {
	case err == nil, errors.Is(err, cloud.ErrNotFound):
		return controller.Finalized(), nil
	case errors.As(err, &throttled):
		return controller.FinalizeAfter(throttled.After), nil
	}
	return controller.FinalizerResult{}, err
}

// desired reads what the balancer should be from the Service and the nodes.
func (r *Reconciler) desired(ctx context.Context, s *corev1.Service) (cloud.Spec, error) {
	var out cloud.Spec
	for _, p := range s.Spec.Ports {
		out.Ports = append(out.Ports, cloud.Port{Protocol: string(p.Protocol), Port: p.Port, NodePort: p.NodePort})
	}
	var nodes corev1.NodeList
	if err := r.client.List(ctx, &nodes); err != nil {
		return out, err
	}
	for i := range nodes.Items {
		if address := target(&nodes.Items[i]); address != "" {
			out.Nodes = append(out.Nodes, address)
		}
	}
	slices.Sort(out.Nodes)
	return out, nil
}

// all requests every Service that is served: a node came, went or changed.
func (r *Reconciler) all(ctx context.Context, _ *corev1.Node) (out []controller.Request) {
	var services corev1.ServiceList
	if err := r.client.List(ctx, &services); err != nil {
		controller.Log(ctx).Error("Services are not reconciled for a change of nodes", "error", err)
		return nil
	}
	for i := range services.Items {
		if served(&services.Items[i]) {
			out = append(out, controller.RequestFor(&services.Items[i]))
		}
	}
	return out
}

// concerned drops the events of Services that neither are served nor were.
func concerned(e controller.Event[*corev1.Service]) bool {
	return served(e.Object) || slices.Contains(e.Object.Finalizers, Finalizer)
}

// nodesChanged drops the heartbeats of nodes.
func nodesChanged(e controller.Event[*corev1.Node]) bool {
	return e.Old == nil || target(e.Old) != target(e.Object)
}

// served reports whether a Service is of our type and class.
func served(s *corev1.Service) bool {
	return s.Spec.Type == corev1.ServiceTypeLoadBalancer && s.Spec.LoadBalancerClass != nil && *s.Spec.LoadBalancerClass == Class
}

// name of the balancer of a Service: it outlives neither, and a creation that is repeated
// meets itself.
func name(s *corev1.Service) string { return "k8s-" + string(s.UID) }

// target returns the address to which a balancer sends for a node; empty if it must not.
func target(n *corev1.Node) string {
	if _, excluded := n.Labels[corev1.LabelNodeExcludeBalancers]; excluded {
		return ""
	}
	if !slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	}) {
		return ""
	}
	for _, a := range n.Status.Addresses {
		if a.Type == corev1.NodeInternalIP {
			return a.Address
		}
	}
	return ""
}
