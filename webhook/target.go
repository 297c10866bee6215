// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/client"
)

// target is an object that holds caBundles of the operator's webhooks.
type target struct {
	gvk            schema.GroupVersionKind
	resource, name string
	owner          client.FieldOwner
	// ours reports whether a clientConfig, or the spec of an APIService, leads to this
	// operator.
	ours func(clientConfig map[string]any) bool
}

// String implements fmt.Stringer.
func (t target) String() string { return t.gvk.Kind + " " + t.name }

// targetsOf lists the targets of a server: the definitions of the kinds that it
// converts, without which these cannot even be read, then configurations by their names.
func (s *Server) targetsOf(ctx context.Context) (out []target, missing error) {
	a := s.opts.Authority
	owner := client.FieldOwner(a.Secret)
	s.mu.Lock()
	converted := slices.Clone(s.converted)
	s.mu.Unlock()
	for _, gk := range converted {
		resource, err := s.opts.Client.Mapper().ForKind(ctx, gk.WithVersion(""))
		if err != nil {
			missing = fmt.Errorf("find the definition of %s: %w", gk, err)
			continue
		}
		gvk := schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
		out = append(out, target{gvk, "customresourcedefinitions.apiextensions.k8s.io", resource.GVR.Resource + "." + gk.Group, owner, s.leadsHere})
	}
	for _, name := range a.Configurations {
		for _, kind := range []string{"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"} {
			gvk := schema.GroupVersionKind{Group: "admissionregistration.k8s.io", Version: "v1", Kind: kind}
			out = append(out, target{gvk, strings.ToLower(kind) + "s.admissionregistration.k8s.io", name, owner, s.leadsHere})
		}
	}
	for _, name := range a.APIServices {
		gvk := schema.GroupVersionKind{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"}
		out = append(out, target{gvk, "apiservices.apiregistration.k8s.io", name, owner, s.inNamespace})
	}
	return out, missing
}

// inNamespace reports whether the spec of an APIService names a Service of the operator's
// namespace, whose certificate is verified.
func (s *Server) inNamespace(spec map[string]any) bool {
	service, ok := spec["service"].(map[string]any)
	return ok && service["namespace"] == s.opts.Authority.Namespace && spec["insecureSkipTLSVerify"] != true
}

// leadsHere reports whether a clientConfig names a Service of the operator's namespace,
// and a path that is served.
func (s *Server) leadsHere(clientConfig map[string]any) bool {
	service, ok := clientConfig["service"].(map[string]any)
	if !ok || service["namespace"] != s.opts.Authority.Namespace {
		return false
	}
	path, _ := service["path"].(string)
	return slices.Contains(s.Paths(), "/"+strings.TrimPrefix(path, "/"))
}

// inject gives an object the bundle, if it lacks it, and nothing else. An object that
// does not exist, or that cert-manager fills, is left. found is the object as it was.
func (t target) inject(ctx context.Context, c client.Client, bundle string) (found *unstructured.Unstructured, err error) {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(t.gvk)
	if err := c.Get(ctx, client.ObjectKey{Name: t.name}, obj); apierrors.IsNotFound(err) {
		return nil, nil // there is none
	} else if err != nil {
		return nil, err
	}
	for name := range obj.GetAnnotations() {
		if strings.HasPrefix(name, "cert-manager.io/inject-") {
			return obj, nil
		}
	}
	fields, changed := t.fields(obj.Object, bundle)
	if !changed {
		return obj, nil
	}
	want := &unstructured.Unstructured{Object: fields}
	want.SetGroupVersionKind(t.gvk)
	want.SetName(t.name)
	want.SetUID(obj.GetUID()) // what was deleted since is not created
	return obj, c.Apply(ctx, want, t.owner)
}

// ownedByAnother reports whether an apply failed because another manager owns a field.
func ownedByAnother(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsConflict(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	return slices.ContainsFunc(status.Status().Details.Causes, func(c metav1.StatusCause) bool {
		return c.Type == metav1.CauseTypeFieldManagerConflict
	})
}

// fields are those of the object that the operator owns: the caBundles of its webhooks,
// all of them, since what an apply leaves out it gives up.
func (t target) fields(object map[string]any, bundle string) (owned map[string]any, changed bool) {
	if t.gvk.Kind == "APIService" {
		spec, _ := object["spec"].(map[string]any)
		return map[string]any{"spec": map[string]any{"caBundle": bundle}}, t.ours(spec) && spec["caBundle"] != bundle
	}
	if t.gvk.Kind == "CustomResourceDefinition" {
		config, _, err := unstructured.NestedMap(object, "spec", "conversion", "webhook", "clientConfig")
		if err != nil || config == nil || !t.ours(config) || config["caBundle"] == bundle {
			return nil, false
		}
		return map[string]any{"spec": map[string]any{"conversion": map[string]any{"webhook": map[string]any{
			"clientConfig": map[string]any{"caBundle": bundle},
		}}}}, true
	}
	webhooks, _, err := unstructured.NestedSlice(object, "webhooks")
	if err != nil {
		return nil, false
	}
	var ours []any
	for _, item := range webhooks {
		hook, _ := item.(map[string]any)
		config, _ := hook["clientConfig"].(map[string]any)
		if !t.ours(config) {
			continue
		}
		changed = changed || config["caBundle"] != bundle
		ours = append(ours, map[string]any{"name": hook["name"], "clientConfig": map[string]any{"caBundle": bundle}})
	}
	return map[string]any{"webhooks": ours}, changed
}
