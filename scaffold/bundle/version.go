// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/steer-dev/steer/scaffold/deploy"
	"github.com/steer-dev/steer/scaffold/project"
)

// version is a ClusterServiceVersion that is being made.
type version struct {
	project     *project.Project
	options     Options
	image       string
	system      string // namespace of the objects of package deploy
	content     object
	spec        object
	annotations object

	deployment, account      string
	template                 any
	cluster, namespaced      []any // rules by the kind of role
	owned, hooks, conversion []any
	failed                   error
	notes                    []string
}

// take takes an object over. It reports whether the object is a manifest of its own in
// the bundle, too, in no namespace: OLM adds the one that it installs the bundle into.
func (v *version) take(o deploy.Object, content object) bool {
	if o.Namespace != "" && o.Namespace != v.system {
		v.failed = cmp.Or(v.failed, project.Usagef("%s %s is in the namespace %s, and a bundle is installed into one namespace: use steer package yaml or helm", o.Kind, o.Name, o.Namespace))
	}
	if metadata, _ := content["metadata"].(object); metadata != nil {
		delete(metadata, "namespace")
	}
	switch o.Part {
	case deploy.UserRoles, deploy.Records:
		return true
	case deploy.Extras:
		return v.extra(o)
	}
	switch o.Kind {
	case "Namespace", "RoleBinding", "ClusterRoleBinding":
		return false
	case "ServiceAccount": // OLM makes it
		v.account = o.Name
		return false
	case "CustomResourceDefinition":
		v.definition(o.Name, content)
		return true
	case "Deployment":
		v.deployment, v.template = o.Name, content["spec"]
		return false
	case "Role", "ClusterRole":
		return v.role(o, content)
	case "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration":
		v.webhooks(o.Kind, content)
		return false
	}
	return o.Part != deploy.Webhook // OLM makes the Service of webhooks
}

// extra reports whether a bundle may have a manifest of the project's own.
// https://github.com/operator-framework/operator-registry/blob/master/pkg/lib/bundle/supported_resources.go
func (v *version) extra(o deploy.Object) bool {
	supported := slices.Contains([]string{
		"ClusterRole", "ClusterRoleBinding", "ConfigMap", "ConsoleCLIDownload", "ConsoleLink", "ConsolePlugin", "ConsoleQuickStart", "ConsoleYAMLSample",
		"CustomResourceDefinition", "NetworkPolicy", "PodDisruptionBudget", "PodMonitor", "PriorityClass", "PrometheusRule", "Role", "RoleBinding", "Secret",
		"Service", "ServiceAccount", "ServiceMonitor", "VerticalPodAutoscaler",
	}, o.Kind)
	if !supported {
		v.notes = append(v.notes, fmt.Sprintf("%s %s of config/extras is left out, since OLM has no such kind in bundles: steer package yaml and helm have it", o.Kind, o.Name))
	}
	return supported
}

// role takes the rules of the roles of the operator over. The role of readers of metrics
// is one for others.
func (v *version) role(o deploy.Object, content object) bool {
	if strings.HasSuffix(o.Name, "-metrics-reader") {
		return true
	}
	rules, _ := content["rules"].([]any)
	switch {
	case o.Part == deploy.Webhook:
	case o.Kind == "Role":
		v.namespaced = append(v.namespaced, rules...)
	default:
		v.cluster = append(v.cluster, rules...)
	}
	return false
}

// definition takes the versions of a CRD over.
func (v *version) definition(name string, content object) {
	spec, _ := content["spec"].(object)
	names, _ := spec["names"].(object)
	kind, _ := names["kind"].(string)
	versions, _ := spec["versions"].([]any)
	for _, item := range versions {
		served, _ := item.(object)
		schema, _ := served["schema"].(object)
		open, _ := schema["openAPIV3Schema"].(object)
		description, _ := open["description"].(string)
		v.owned = append(v.owned, object{
			"name": name, "kind": kind, "version": served["name"], "displayName": kind,
			"description": cmp.Or(strings.Join(strings.Fields(description), " "), "The kind "+kind+"."),
		})
	}
	if conversion, _ := spec["conversion"].(object); conversion["strategy"] == "Webhook" {
		v.conversion = append(v.conversion, name)
	}
}

// owns reports whether a CRD of the bundle has a kind.
func (v *version) owns(kind string) bool {
	return slices.ContainsFunc(v.owned, func(item any) bool { return item.(object)["kind"] == kind })
}

// webhooks takes the webhooks of a configuration over.
func (v *version) webhooks(kind string, content object) {
	list, _ := content["webhooks"].([]any)
	for _, item := range list {
		hook, _ := item.(object)
		config, _ := hook["clientConfig"].(object)
		service, _ := config["service"].(object)
		made := object{
			"type": strings.Replace(kind, "WebhookConfiguration", "AdmissionWebhook", 1), "generateName": hook["name"],
			"containerPort": 443, "targetPort": 9443, "webhookPath": cmp.Or(text(service["path"]), "/"),
		}
		for _, key := range []string{"rules", "failurePolicy", "matchPolicy", "objectSelector", "sideEffects", "timeoutSeconds", "admissionReviewVersions", "reinvocationPolicy"} {
			if hook[key] != nil {
				made[key] = hook[key]
			}
		}
		v.hooks = append(v.hooks, made)
	}
}

func text(value any) string { s, _ := value.(string); return s }

// finish is the ClusterServiceVersion.
func (v *version) finish() object {
	if len(v.conversion) > 0 {
		v.hooks = append(v.hooks, object{
			"type": "ConversionWebhook", "generateName": "c" + strings.ToLower(v.project.Name) + ".kb.io", "conversionCRDs": v.conversion,
			"containerPort": 443, "targetPort": 9443, "webhookPath": "/convert", "sideEffects": "None", "admissionReviewVersions": []any{"v1", "v1beta1"},
		})
	}
	for _, item := range v.hooks {
		item.(object)["deploymentName"] = v.deployment
	}
	v.content["apiVersion"], v.content["kind"] = "operators.coreos.com/v1alpha1", "ClusterServiceVersion"
	metadata, _ := v.content["metadata"].(object)
	if metadata == nil {
		metadata = object{}
	}
	metadata["name"], metadata["namespace"] = fmt.Sprintf("%s.v%s", v.project.Name, v.options.Version), "placeholder"
	annotations, _ := metadata["annotations"].(object)
	if annotations == nil {
		annotations = object{}
	}
	annotations["alm-examples"] = v.annotations["alm-examples"]
	annotations["containerImage"] = v.image
	if annotations["capabilities"] == nil {
		annotations["capabilities"] = v.annotations["capabilities"]
	}
	metadata["annotations"] = annotations
	v.content["metadata"] = metadata
	v.spec["version"] = v.options.Version
	delete(v.spec, "replaces")
	if v.options.Replaces != "" {
		v.spec["replaces"] = v.options.Replaces
	}
	required, _ := v.spec["customresourcedefinitions"].(object)
	definitions := object{"owned": v.owned}
	if required["required"] != nil {
		definitions["required"] = required["required"]
	}
	v.spec["customresourcedefinitions"] = definitions
	delete(v.spec, "webhookdefinitions")
	if len(v.hooks) > 0 {
		v.spec["webhookdefinitions"] = v.hooks
	}
	strategy := object{
		"deployments":        []any{object{"name": v.deployment, "spec": v.template}},
		"clusterPermissions": []any{object{"serviceAccountName": v.account, "rules": v.cluster}},
		"permissions":        []any{object{"serviceAccountName": v.account, "rules": v.namespaced}},
	}
	v.spec["install"] = object{"strategy": "deployment", "spec": strategy}
	return v.content
}
