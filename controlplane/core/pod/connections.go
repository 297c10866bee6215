// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/kubelet"
)

// connections are the subresources that lead to a container: by the kubelet of its node where that
// states one; where none runs they say why not. The kinds are those of their options.
func (s Subresources) connections(plural string, kinds ...string) []resource.Subresource {
	type way struct {
		name    string
		options func() runtime.Object
	}
	ways := map[string]way{
		"PodAttachOptions":      {"attach", func() runtime.Object { return &corev1.PodAttachOptions{} }},
		"PodExecOptions":        {"exec", func() runtime.Object { return &corev1.PodExecOptions{} }},
		"PodPortForwardOptions": {"portforward", func() runtime.Object { return &corev1.PodPortForwardOptions{} }},
		"PodProxyOptions":       {"proxy", func() runtime.Object { return &corev1.PodProxyOptions{} }},
		"ServiceProxyOptions":   {"proxy", func() runtime.Object { return &corev1.ServiceProxyOptions{} }},
		"NodeProxyOptions":      {"proxy", func() runtime.Object { return &corev1.NodeProxyOptions{} }},
	}
	var out []resource.Subresource
	for _, kind := range kinds {
		verbs, to := []string{"create", "get"}, ways[kind]
		if to.name == "proxy" {
			verbs = []string{"create", "delete", "get", "patch", "update"}
		}
		out = append(out, resource.Subresource{
			Name: to.name, Backend: connection{s, plural, to.name}, Kind: corev1.SchemeGroupVersion.WithKind(kind), Verbs: verbs, Options: to.options,
		})
	}
	if plural == "pods" {
		out = append(out, resource.Subresource{
			Name: "log", Backend: connection{s, plural, "log"}, Kind: corev1.SchemeGroupVersion.WithKind("Pod"), Verbs: []string{"get"},
		})
	}
	return out
}

// connection is a way to what runs on a node.
type connection struct {
	Subresources
	plural, name string
}

// Connect implements resource.Connecter.
func (c connection) Connect(ctx context.Context, r *resource.Request, w http.ResponseWriter, h *http.Request) {
	err := c.serve(ctx, r, w, h)
	if err == nil {
		return
	}
	status := metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: err.Error(), Reason: metav1.StatusReasonInternalError}
	if known, ok := err.(apierrors.APIStatus); ok {
		status = known.Status()
	}
	status.Kind, status.APIVersion = "Status", "v1"
	body, _ := json.Marshal(status) // a Status always encodes
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(int(status.Code))
	_, _ = w.Write(append(body, '\n')) // who has gone is not told
}

// serve passes the request on to a kubelet, or says why there is no connection. An error is
// returned before anything was written.
func (c connection) serve(ctx context.Context, r *resource.Request, w http.ResponseWriter, h *http.Request) error {
	switch c.plural {
	case "nodes":
		n, err := load[corev1.Node](c.Store, "nodes", "", r.Name)
		if n == nil {
			return missing(err, "nodes", r.Name)
		}
		return nothingRuns("nodes/proxy")
	case "services":
		return c.serveService(r)
	}
	p, err := load[corev1.Pod](c.Store, "pods", r.Namespace, strings.Split(r.Name, ":")[0])
	if p == nil {
		return missing(err, "pods", r.Name)
	}
	if c.name == "proxy" {
		if p.Status.PodIP == "" {
			return apierrors.NewBadRequest("address not allowed")
		}
		return nothingRuns("pods/proxy")
	}
	if c.name == "log" {
		return c.serveLog(ctx, p, w, h)
	}
	return c.serveStream(ctx, r, p, w, h)
}

// serveService says why there is no connection to what is behind a Service, which is named
// "NAME", "NAME:PORT" or "SCHEME:NAME:PORT": nothing runs in the Pods of its EndpointSlices.
func (c connection) serveService(r *resource.Request) error {
	_, name, port, ok := utilnet.SplitSchemeNamePort(r.Name)
	if !ok {
		return apierrors.NewBadRequest(fmt.Sprintf("invalid service request %q", r.Name))
	}
	if number, err := strconv.ParseInt(port, 10, 64); err == nil {
		s, err := load[corev1.Service](c.Store, "services", r.Namespace, name)
		if s == nil {
			return missing(err, "services", name)
		}
		if !slices.ContainsFunc(s.Spec.Ports, func(p corev1.ServicePort) bool { return int64(p.Port) == number }) {
			return apierrors.NewServiceUnavailable(fmt.Sprintf("no service port %d found for service %q", number, name))
		}
	}
	return apierrors.NewServiceUnavailable(fmt.Sprintf("no endpoints available for service %q", name))
}

// target is where the kubelet of a Pod is; nil if its node states none.
func (c connection) target(p *corev1.Pod) (*kubelet.Target, error) {
	n, err := load[corev1.Node](c.Store, "nodes", "", p.Spec.NodeName)
	if n == nil {
		return nil, missing(err, "nodes", p.Spec.NodeName)
	}
	host := kubelet.Endpoint(n)
	if host == "" {
		return nil, nothingRuns("pods/" + c.name)
	}
	return &kubelet.Target{Node: n.Name, Host: host, What: "pods/" + c.name, Name: p.Name}, nil
}

// serveStream passes exec, attach and port-forward on. A client that opens one with GET, as WebSockets
// do, needs the right to create it as well.
func (c connection) serveStream(ctx context.Context, r *resource.Request, p *corev1.Pod, w http.ResponseWriter, h *http.Request) error {
	if r.Verb != "create" {
		if err := c.mayCreate(ctx, r); err != nil {
			return err
		}
	}
	asked := h.URL.Query()
	query := url.Values{}
	path := "/portForward/" + p.Namespace + "/" + p.Name
	if c.name == "portforward" {
		if ports := asked["ports"]; len(ports) > 0 {
			query.Set("port", strings.Join(ports, ","))
		}
	} else {
		container, err := containerOf(p, asked.Get("container"))
		if err != nil {
			return err
		}
		path = "/" + c.name + "/" + p.Namespace + "/" + p.Name + "/" + container
		for option, called := range map[string]string{"stdin": "input", "stdout": "output", "stderr": "error", "tty": "tty"} {
			if on, err := strconv.ParseBool(asked.Get(option)); err == nil && on {
				query.Set(called, "1")
			}
		}
		if c.name == "exec" {
			query["command"] = asked["command"]
		}
	}
	if p.Spec.NodeName == "" {
		return apierrors.NewBadRequest(fmt.Sprintf("pod %s does not have a host assigned", p.Name))
	}
	t, err := c.target(p)
	if err != nil {
		return err
	}
	t.Path, t.Query = path, query
	return c.Kubelets.Upgrade(ctx, w, h, t)
}

// mayCreate refuses users who may not create what they ask for.
func (c connection) mayCreate(ctx context.Context, r *resource.Request) error {
	asked := &auth.Attributes{
		User: r.User, Verb: "create", ResourceRequest: true, Version: "v1", Resource: "pods", Subresource: c.name, Namespace: r.Namespace, Name: r.Name,
	}
	decision, why, err := c.Authorizer.Authorize(ctx, asked)
	switch {
	case err != nil:
		return err
	case decision == auth.Allow:
		return nil
	}
	return apierrors.NewForbidden(corev1.Resource("pods"), r.Name, fmt.Errorf("user %q cannot create resource %q in API group \"\" in the namespace %q%s", r.User.Name, "pods/"+c.name, r.Namespace, why))
}

func missing(err error, plural, name string) error {
	if err != nil {
		return err
	}
	return apierrors.NewNotFound(corev1.Resource(plural), name)
}

// serveLog passes on what a container has written; nothing for one that has no node.
func (c connection) serveLog(ctx context.Context, p *corev1.Pod, w http.ResponseWriter, h *http.Request) error {
	query, err := logQuery(p.Name, h.URL.Query())
	if err != nil {
		return err
	}
	container, err := containerOf(p, h.URL.Query().Get("container"))
	if err != nil {
		return err
	}
	if p.Spec.NodeName == "" {
		w.WriteHeader(http.StatusNoContent) // a container that has not begun has said nothing
		return nil
	}
	t, err := c.target(p)
	if err != nil {
		return err
	}
	t.Path, t.Query = "/containerLogs/"+p.Namespace+"/"+p.Name+"/"+container, query
	t.Unverified, _ = strconv.ParseBool(h.URL.Query().Get("insecureSkipTLSVerifyBackend")) // false unless it is said
	return c.Kubelets.Logs(ctx, w, t, query.Has("follow"))
}

// logQuery checks the options of a log, and returns those that a kubelet gets.
func logQuery(name string, asked url.Values) (url.Values, error) {
	out, errs := url.Values{}, field.ErrorList{}
	for _, option := range []string{"follow", "previous", "timestamps"} {
		if on, err := strconv.ParseBool(asked.Get(option)); err == nil && on {
			out.Set(option, "true")
		}
	}
	for option, least := range map[string]int64{"tailLines": 0, "sinceSeconds": 1, "limitBytes": 1} {
		text := asked.Get(option)
		if text == "" {
			continue
		}
		n, err := strconv.ParseInt(text, 10, 64)
		switch {
		case err != nil:
			return nil, apierrors.NewBadRequest(fmt.Sprintf("%s: %q is no number", option, text))
		case n < least && least == 0:
			errs = append(errs, field.Invalid(field.NewPath(option), n, "must be greater than or equal to 0"))
		case n < least:
			errs = append(errs, field.Invalid(field.NewPath(option), n, "must be greater than 0"))
		}
		out.Set(option, text)
	}
	if since := asked.Get("sinceTime"); since != "" {
		if _, err := time.Parse(time.RFC3339, since); err != nil {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("sinceTime: %q is no time such as 2006-01-02T15:04:05Z", since))
		}
		if out.Has("sinceSeconds") {
			errs = append(errs, field.Forbidden(field.NewPath(""), "at most one of `sinceTime` or `sinceSeconds` may be specified"))
		}
		out.Set("sinceTime", since)
	}
	if len(errs) > 0 {
		return nil, apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("PodLogOptions").GroupKind(), name, errs)
	}
	return out, nil
}

// containerOf is the container of a Pod that is meant by a name, or by none.
func containerOf(p *corev1.Pod, name string) (string, error) {
	all := slices.Concat(p.Spec.InitContainers, p.Spec.Containers)
	if name == "" {
		name = p.Annotations["kubectl.kubernetes.io/default-container"]
	}
	if name != "" {
		if !slices.ContainsFunc(all, func(c corev1.Container) bool { return c.Name == name }) &&
			!slices.ContainsFunc(p.Spec.EphemeralContainers, func(c corev1.EphemeralContainer) bool { return c.Name == name }) {
			return "", apierrors.NewBadRequest(fmt.Sprintf("container %s is not valid for pod %s", name, p.Name))
		}
		return name, nil
	}
	if len(p.Spec.Containers) == 1 {
		return p.Spec.Containers[0].Name, nil
	}
	var names []string
	for _, c := range p.Spec.Containers {
		names = append(names, c.Name)
	}
	text := fmt.Sprintf("a container name must be specified for pod %s, choose one of: [%s]", p.Name, strings.Join(names, " "))
	if len(p.Spec.InitContainers) > 0 {
		var inits []string
		for _, c := range p.Spec.InitContainers {
			inits = append(inits, c.Name)
		}
		text += fmt.Sprintf(" or one of the init containers: [%s]", strings.Join(inits, " "))
	}
	return "", apierrors.NewBadRequest(text)
}

// nothingRuns is said for what is on a node, where nothing runs.
func nothingRuns(what string) error {
	err := apierrors.NewGenericServerResponse(http.StatusNotImplemented, "", corev1.Resource(""), "", "", 0, false)
	err.ErrStatus.Reason = metav1.StatusReasonUnknown
	err.ErrStatus.Message = what + ": the nodes of this server run no containers, so there is nothing to connect to"
	err.ErrStatus.Details = nil
	return err
}
