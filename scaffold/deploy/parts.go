// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package deploy

import "strings"

const rbacVersion = "rbac.authorization.k8s.io/v1"

// roles takes the generated roles over, and binds them to the operator.
func (b *builder) roles(generated []object) {
	for _, role := range generated {
		metadata := role["metadata"].(object)
		name := b.name(metadata["name"].(string))
		namespace, _ := metadata["namespace"].(string)
		kind := role["kind"].(string)
		if kind == "Role" && namespace == "" { // that of leader election
			namespace = b.settings.Namespace
		}
		b.role(kind, namespace, name, role["rules"].([]any))
	}
}

// role adds a role with its binding.
func (b *builder) role(kind, namespace, name string, rules []any) {
	role := b.global(rbacVersion, kind, name)
	role["rules"] = rules
	if namespace != "" {
		role["metadata"].(object)["namespace"] = namespace
	}
	b.add(role)
	binding := name
	if strings.HasSuffix(name, "role") {
		binding += "binding"
	}
	b.bind(kind, namespace, binding, name)
}

// bind binds a role to the account of the part.
func (b *builder) bind(kind, namespace, name, role string) {
	binding := b.global(rbacVersion, kind+"Binding", name)
	if namespace != "" {
		binding["metadata"].(object)["namespace"] = namespace
	}
	binding["roleRef"] = object{"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role}
	binding["subjects"] = []any{object{"kind": "ServiceAccount", "name": b.name(b.account), "namespace": b.settings.Namespace}}
	b.add(binding)
}

// metricsRoles let the operator ask who may read its metrics, and name the role for
// those who may.
func (b *builder) metricsRoles() {
	b.role("ClusterRole", "", b.name("metrics-auth-role"), rules(
		rule("authentication.k8s.io", "tokenreviews", "create"),
		rule("authorization.k8s.io", "subjectaccessreviews", "create"),
	))
	reader := b.global(rbacVersion, "ClusterRole", b.name("metrics-reader"))
	reader["rules"] = rules(object{"nonResourceURLs": texts("/metrics"), "verbs": texts("get")})
	b.add(reader)
}

// authority lets the operator keep the certificate of its webhooks, and tell the API
// server of it, also in the definitions that are converted.
func (b *builder) authority(converted []string) {
	b.role("Role", b.settings.Namespace, b.name("webhook-ca-role"), rules(
		rule("", "secrets", "create"),
		only(rule("", "secrets", "get", "update"), b.project.Name+"-webhook-ca"),
	))
	// The operator looks for its configurations under the generated names, too.
	var names []string
	for _, name := range []string{"mutating-webhook-configuration", "validating-webhook-configuration"} {
		names = append(names, name, b.name(name))
	}
	both := only(rule("admissionregistration.k8s.io", "mutatingwebhookconfigurations", "get", "patch"), names...)
	both["resources"] = texts("mutatingwebhookconfigurations", "validatingwebhookconfigurations")
	all := []object{both}
	if len(converted) > 0 {
		all = append(all, only(rule("apiextensions.k8s.io", "customresourcedefinitions", "get", "patch"), converted...))
	}
	b.role("ClusterRole", "", b.name("webhook-ca-role"), rules(all...))
}

func (b *builder) service(name, port string, number, target int) {
	service := b.namespaced("v1", "Service", b.name(name))
	service["metadata"].(object)["labels"] = merge(b.labels(), b.selector())
	service["spec"] = object{
		"selector": b.selector(),
		"ports":    []any{object{"name": port, "port": number, "protocol": "TCP", "targetPort": target}},
	}
	b.add(service)
}

// networkPolicy admits scrapers of namespaces with the label metrics: enabled, and
// everyone, since the API server may be anywhere, to the webhooks.
func (b *builder) networkPolicy(webhooks bool) {
	policy := b.namespaced("networking.k8s.io/v1", "NetworkPolicy", b.name("controller-manager"))
	ingress := []any{object{
		"from":  []any{object{"namespaceSelector": object{"matchLabels": object{"metrics": "enabled"}}}},
		"ports": []any{object{"port": metricsPort, "protocol": "TCP"}},
	}}
	if webhooks {
		ingress = append(ingress, object{"ports": []any{object{"port": webhookPort, "protocol": "TCP"}}})
	}
	policy["spec"] = object{"podSelector": object{"matchLabels": b.selector()}, "policyTypes": texts("Ingress"), "ingress": ingress}
	b.add(policy)
}

// disruptionBudget lets nodes be drained one after the other.
func (b *builder) disruptionBudget() {
	budget := b.namespaced("policy/v1", "PodDisruptionBudget", b.name("controller-manager"))
	budget["spec"] = object{"maxUnavailable": 1, "selector": object{"matchLabels": b.selector()}}
	b.add(budget)
}

func (b *builder) deployment(webhooks bool) {
	deployment := b.namespaced("apps/v1", "Deployment", b.name("controller-manager"))
	pod := object{
		"serviceAccountName": b.name("controller-manager"),
		"securityContext":    object{"runAsNonRoot": true, "runAsUser": 65532, "seccompProfile": object{"type": "RuntimeDefault"}},
		// Runnables have 30 seconds to end, and webhooks are served 10 longer.
		"terminationGracePeriodSeconds": 45,
		"containers":                    []any{b.container(webhooks)},
	}
	if b.settings.has(WithRecords) {
		pod["volumes"] = []any{recordsVolume()}
	}
	deployment["spec"] = object{
		"replicas": b.settings.Replicas,
		"selector": object{"matchLabels": b.selector()},
		"strategy": object{"type": "RollingUpdate", "rollingUpdate": object{"maxUnavailable": 0, "maxSurge": 1}},
		"template": object{
			"metadata": object{
				"labels":      merge(b.labels(), b.selector()),
				"annotations": object{"kubectl.kubernetes.io/default-container": "manager"},
			},
			"spec": pod,
		},
	}
	b.add(deployment)
}

func (b *builder) container(webhooks bool) object {
	ports := []any{
		object{"name": "health", "containerPort": healthPort, "protocol": "TCP"},
		object{"name": "metrics", "containerPort": metricsPort, "protocol": "TCP"},
	}
	if webhooks {
		ports = append(ports, object{"name": "webhook", "containerPort": webhookPort, "protocol": "TCP"})
	}
	probe := func(path string, delay, period int) object {
		return object{"httpGet": object{"path": path, "port": healthPort}, "initialDelaySeconds": delay, "periodSeconds": period}
	}
	container := object{
		"name": "manager", "image": b.settings.Image,
		"args": texts("--leader-elect", "--health-probe-bind-address=:8081", "--metrics-bind-address=:8443"),
		"env": []any{object{"name": "POD_NAMESPACE", "valueFrom": object{"fieldRef": object{
			"apiVersion": "v1", "fieldPath": "metadata.namespace",
		}}}},
		"ports":          ports,
		"livenessProbe":  probe("/healthz", 15, 20),
		"readinessProbe": probe("/readyz", 5, 10),
		"resources":      b.settings.Resources.object(),
		"securityContext": object{
			"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true,
			"capabilities": object{"drop": texts("ALL")},
		},
	}
	if b.settings.has(WithRecords) {
		keepRecords(container)
	}
	return container
}

// object is the form of a container.
func (r Resources) object() object {
	out := object{}
	for name, list := range map[string]map[string]string{"limits": r.Limits, "requests": r.Requests} {
		if len(list) > 0 {
			quantities := object{}
			for resource, quantity := range list {
				quantities[resource] = quantity
			}
			out[name] = quantities
		}
	}
	return out
}

// serviceMonitor has the operator scraped, and not the custom API server, whose Service
// has a port of the same name.
func (b *builder) serviceMonitor() {
	monitor := b.namespaced("monitoring.coreos.com/v1", "ServiceMonitor", b.name("controller-manager-metrics-monitor"))
	monitor["spec"] = object{
		"selector": object{"matchLabels": b.selector()},
		"endpoints": []any{object{
			"path": "/metrics", "port": "https", "scheme": "https",
			"bearerTokenFile": "/var/run/secrets/kubernetes.io/serviceaccount/token",
			"tlsConfig":       object{"insecureSkipVerify": true},
		}},
	}
	b.add(monitor)
}

// webhook gives a generated configuration the names of the deployment.
func (b *builder) webhook(o object) {
	metadata := o["metadata"].(object)
	metadata["name"] = b.name(metadata["name"].(string))
	metadata["labels"] = b.labels()
	hooks, _ := o["webhooks"].([]any)
	for _, hook := range hooks {
		b.serve(hook.(object))
	}
	b.add(o)
}

// serve leads a webhook to the Service of the deployment.
func (b *builder) serve(hook object) {
	config, _ := hook["clientConfig"].(object)
	if service, ok := config["service"].(object); ok {
		service["name"], service["namespace"] = b.name("webhook-service"), b.settings.Namespace
	}
}

// conversion is the webhook that converts the versions of a definition; nil: none does.
func conversion(definition object) object {
	spec, _ := definition["spec"].(object)
	conversion, _ := spec["conversion"].(object)
	hook, _ := conversion["webhook"].(object)
	return hook
}
