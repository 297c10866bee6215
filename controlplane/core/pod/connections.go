// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/apiserver/resource"
)

// connections are the subresources that lead to a container: there is none, so
// they say why not. The kinds are those of their options.
func (s Subresources) connections(plural string, kinds ...string) []resource.Subresource {
	names := map[string]string{
		"PodAttachOptions": "attach", "PodExecOptions": "exec", "PodPortForwardOptions": "portforward",
		"PodProxyOptions": "proxy", "ServiceProxyOptions": "proxy", "NodeProxyOptions": "proxy",
	}
	var out []resource.Subresource
	for _, kind := range kinds {
		verbs := []string{"create", "get"}
		if names[kind] == "proxy" {
			verbs = []string{"create", "delete", "get", "patch", "update"}
		}
		out = append(out, resource.Subresource{
			Name: names[kind], Backend: connection{s, plural, names[kind]}, Kind: corev1.SchemeGroupVersion.WithKind(kind), Verbs: verbs,
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
	err := c.refusal(ctx, r, h)
	if err == nil {
		w.WriteHeader(http.StatusNoContent) // a container that has not begun has said nothing
		return
	}
	status := metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: err.Error(), Reason: metav1.StatusReasonInternalError}
	if known, ok := err.(apierrors.APIStatus); ok { //nolint:errorlint // made here
		status = known.Status()
	}
	status.Kind, status.APIVersion = "Status", "v1"
	body, _ := json.Marshal(status) // a Status always encodes
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(int(status.Code))
	_, _ = w.Write(append(body, '\n')) // who has gone is not told
}

// refusal says why there is no connection; nil for an empty log.
func (c connection) refusal(ctx context.Context, r *resource.Request, h *http.Request) error {
	switch c.plural {
	case "nodes":
		n, err := load[corev1.Node](ctx, c.Store, "nodes", "", r.Name)
		if n == nil {
			return missing(err, "nodes", r.Name)
		}
		return nothingRuns("nodes/proxy")
	case "services":
		name := r.Name
		if parts := strings.Split(name, ":"); len(parts) > 1 {
			name = parts[min(1, len(parts)-1)]
			if len(parts) == 2 {
				name = parts[0]
			}
		}
		s, err := load[corev1.Service](ctx, c.Store, "services", r.Namespace, name)
		if s == nil {
			return missing(err, "services", name)
		}
		return apierrors.NewServiceUnavailable(fmt.Sprintf("no endpoints available for service %q", r.Name))
	}
	p, err := load[corev1.Pod](ctx, c.Store, "pods", r.Namespace, strings.Split(r.Name, ":")[0])
	if p == nil {
		return missing(err, "pods", r.Name)
	}
	switch {
	case c.name == "proxy" && p.Status.PodIP == "":
		return apierrors.NewBadRequest("address not allowed")
	case c.name == "log":
		return logOf(p, h)
	case p.Spec.NodeName == "":
		return apierrors.NewBadRequest(fmt.Sprintf("pod %s does not have a host assigned", p.Name))
	}
	return nothingRuns("pods/" + c.name)
}

func missing(err error, plural, name string) error {
	if err != nil {
		return err
	}
	return apierrors.NewNotFound(corev1.Resource(plural), name)
}

func logOf(p *corev1.Pod, h *http.Request) error {
	name := h.URL.Query().Get("container")
	all := slices.Concat(p.Spec.InitContainers, p.Spec.Containers)
	if name != "" && !slices.ContainsFunc(all, func(c corev1.Container) bool { return c.Name == name }) &&
		!slices.ContainsFunc(p.Spec.EphemeralContainers, func(c corev1.EphemeralContainer) bool { return c.Name == name }) {
		return apierrors.NewBadRequest(fmt.Sprintf("container %s is not valid for pod %s", name, p.Name))
	}
	if name == "" && len(p.Spec.Containers) > 1 && p.Annotations["kubectl.kubernetes.io/default-container"] == "" {
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
		return apierrors.NewBadRequest(text)
	}
	if p.Spec.NodeName == "" {
		return nil
	}
	return nothingRuns("pods/log")
}

// nothingRuns is said for what is on a node, where nothing runs.
func nothingRuns(what string) error {
	err := apierrors.NewGenericServerResponse(http.StatusNotImplemented, "", corev1.Resource(""), "", "", 0, false)
	err.ErrStatus.Reason = metav1.StatusReasonUnknown
	err.ErrStatus.Message = what + ": the nodes of this server run no containers, so there is nothing to connect to"
	err.ErrStatus.Details = nil
	return err
}
