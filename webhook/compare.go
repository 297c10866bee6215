// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Compare compares what is served with what API servers are told to call: objects are the
// webhook configurations, and the CustomResourceDefinitions of kinds with several versions,
// in any order; others are left out. It returns what only one side has, in a sentence each
// that says what to add: unserved is what API servers call and nothing serves, which is so
// too while a part of an operator runs, as in a test of one controller; unconfigured is what
// is served and never called. Both are nil when the sides agree. Configurations that name a
// URL, or a Service in another namespace than that of [Authority] where there is one,
// are not the operator's.
func (s *Server) Compare(objects ...*unstructured.Unstructured) (unserved, unconfigured []string) {
	c := comparison{server: s, served: s.Paths(), configured: map[string]bool{conversionPath: true}}
	for _, obj := range objects {
		switch obj.GetKind() {
		case "MutatingWebhookConfiguration":
			c.hooks(obj, "webhook.AddDefaulter")
		case "ValidatingWebhookConfiguration":
			c.hooks(obj, "webhook.AddValidator")
		case "CustomResourceDefinition":
			c.conversion(obj)
		}
	}
	for _, path := range c.served {
		if !c.configured[path] {
			c.never("%s is served, but no webhook configuration has it, so nothing calls it: the marker +kubebuilder:webhook:path=%s is missing, or steer generate has to run", path, path)
		}
	}
	return c.unserved, c.unconfigured
}

// comparison is one call of Compare.
type comparison struct {
	server                 *Server
	served                 []string
	configured             map[string]bool
	unserved, unconfigured []string
}

// lacks notes what nothing serves.
func (c *comparison) lacks(format string, args ...any) {
	c.unserved = append(c.unserved, fmt.Sprintf(format, args...))
}

// never notes what nothing calls.
func (c *comparison) never(format string, args ...any) {
	c.unconfigured = append(c.unconfigured, fmt.Sprintf(format, args...))
}

// hooks compares a webhook configuration.
func (c *comparison) hooks(obj *unstructured.Unstructured, add string) {
	hooks, _, _ := unstructured.NestedSlice(obj.Object, "webhooks")
	for _, item := range hooks {
		hook, _ := item.(map[string]any)
		config, _ := hook["clientConfig"].(map[string]any)
		path, ours := c.pathOf(config)
		if !ours {
			continue
		}
		c.configured[path] = true
		if slices.Contains(c.served, path) {
			continue
		}
		c.lacks("%s is in %s %s (webhook %v), but %s", path, obj.GetKind(), obj.GetName(), hook["name"], nothingServes(add, c.served))
	}
}

// pathOf returns the path of a clientConfig that leads to this operator.
func (c *comparison) pathOf(config map[string]any) (path string, ours bool) {
	service, ok := config["service"].(map[string]any)
	namespace := c.server.opts.Authority.Namespace
	if !ok || namespace != "" && service["namespace"] != namespace {
		return "", false
	}
	path, _ = service["path"].(string)
	return "/" + strings.TrimPrefix(path, "/"), true
}

// conversion compares the definition of a kind.
func (c *comparison) conversion(obj *unstructured.Unstructured) {
	group, _, _ := unstructured.NestedString(obj.Object, "spec", "group")
	name, _, _ := unstructured.NestedString(obj.Object, "spec", "names", "kind")
	kind := schema.GroupKind{Group: group, Kind: name}
	config, _, _ := unstructured.NestedMap(obj.Object, "spec", "conversion", "webhook", "clientConfig")
	path, ours := c.pathOf(config)
	converts := c.server.Converts(kind)
	switch {
	case ours && (!converts || path != conversionPath):
		c.lacks("%s is in the conversion of CustomResourceDefinition %s, but nothing serves it for %s: webhook.AddConversion is missing in Setup, which serves %s", path, obj.GetName(), name, conversionPath)
	case config == nil && converts:
		versions, _, _ := unstructured.NestedSlice(obj.Object, "spec", "versions")
		c.never("%s is converted by the operator, but CustomResourceDefinition %s does not say so, so its %d versions have the same content under other names: the marker +kubebuilder:conversion:webhook is missing, or steer generate has to run", name, obj.GetName(), len(versions))
	}
}

// NotServedError reports a call at a path that nothing serves.
type NotServedError struct {
	Path string
	// Served are the paths that are, in order.
	Served []string
}

func (e *NotServedError) Error() string {
	return fmt.Sprintf("an API server calls %s, but %s", e.Path, nothingServes("webhook.AddDefaulter, AddValidator or AddConversion", e.Served))
}

// nothingServes says what to add for a path that is not served, beside those that are.
func nothingServes(add string, served []string) string {
	is := "none"
	if len(served) > 0 {
		is = strings.Join(served, ", ")
	}
	return fmt.Sprintf("nothing serves it: %s for that kind and version is missing in Setup, or its path is another one; served is %s", add, is)
}
