// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package deploy

import "strconv"

const (
	serverPort = 6443
	serverData = "/data"
	// serverGrace is for ten seconds of draining and thirty for requests in flight.
	serverGrace = 45
)

// server adds the custom API server of the project, which embeds the definitions. It
// completes the APIServices with its authority.
func (b *builder) server(definitions []object) {
	const server = "server"
	b.account = server
	b.add(b.namespaced("v1", "ServiceAccount", b.name(server)))
	services := b.apiServices(definitions)
	b.role("ClusterRole", "", b.name("server-role"), rules(
		rule("", "namespaces", "get"),
		only(rule("apiregistration.k8s.io", "apiservices", "get", "patch"), services...),
	))
	b.role("Role", b.settings.Namespace, b.name("server-role"), rules(
		rule("", "secrets", "create"),
		only(rule("", "secrets", "get", "update"), b.name("server-ca")),
	))
	b.bind("ClusterRole", "", b.name("server-auth-delegator"), "system:auth-delegator")
	b.bind("Role", "kube-system", b.name("server-auth-reader"), "extension-apiserver-authentication-reader")
	b.service(server, "https", 443, serverPort)
	policy := b.namespaced("networking.k8s.io/v1", "NetworkPolicy", b.name(server))
	policy["spec"] = object{
		"podSelector": object{"matchLabels": b.selector()}, "policyTypes": texts("Ingress"),
		"ingress": []any{object{"ports": []any{object{"port": serverPort, "protocol": "TCP"}}}}, // the API server may be anywhere
	}
	b.add(policy)
	b.serverDeployment()
}

// apiServices adds an APIService for each version that the definitions have, and returns
// their names. The priorities are those that the server applies.
func (b *builder) apiServices(definitions []object) (names []string) {
	seen := map[string]bool{}
	for _, definition := range definitions {
		spec, _ := definition["spec"].(object)
		group, _ := spec["group"].(string)
		versions, _ := spec["versions"].([]any)
		for i, v := range versions {
			version, _ := v.(object)["name"].(string)
			name := version + "." + group
			if served, _ := v.(object)["served"].(bool); !served || seen[name] {
				continue
			}
			seen[name] = true
			names = append(names, name)
			service := b.global("apiregistration.k8s.io/v1", "APIService", name)
			service["spec"] = object{
				"group": group, "version": version, "groupPriorityMinimum": 1000, "versionPriority": max(100-i, 1),
				"service": object{"namespace": b.settings.Namespace, "name": b.name("server"), "port": 443},
			}
			b.add(service)
		}
	}
	return names
}

// serverDeployment adds the Deployment of the server. One Pod at a time has the objects: a
// new one starts when the former one has ended.
func (b *builder) serverDeployment() {
	s := b.settings.Server
	probe := func(path string, delay, period int) object {
		return object{
			"httpGet":             object{"path": path, "port": serverPort, "scheme": "HTTPS"},
			"initialDelaySeconds": delay, "periodSeconds": period,
		}
	}
	args := texts("--bind-address=:" + strconv.Itoa(serverPort))
	container := object{
		"name": "server", "image": s.Image,
		"env": []any{object{"name": "POD_NAMESPACE", "valueFrom": object{"fieldRef": object{
			"apiVersion": "v1", "fieldPath": "metadata.namespace",
		}}}},
		"ports":         []any{object{"name": "https", "containerPort": serverPort, "protocol": "TCP"}},
		"livenessProbe": probe("/livez", 15, 20), "readinessProbe": probe("/readyz", 5, 10),
		"resources": s.Resources.object(),
		"securityContext": object{
			"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true,
			"capabilities": object{"drop": texts("ALL")},
		},
	}
	pod := object{
		"serviceAccountName": b.name("server"),
		"securityContext": object{
			"runAsNonRoot": true, "runAsUser": 65532, "fsGroup": 65532, "seccompProfile": object{"type": "RuntimeDefault"},
		},
		"terminationGracePeriodSeconds": serverGrace,
		"containers":                    []any{container},
	}
	if s.Storage != noStorage {
		claim := b.namespaced("v1", "PersistentVolumeClaim", b.name("server-data"))
		claim["spec"] = object{"accessModes": texts("ReadWriteOnce"), "resources": object{"requests": object{"storage": s.Storage}}}
		b.add(claim)
		args = append(args, "--data-dir="+serverData)
		container["volumeMounts"] = []any{object{"name": "data", "mountPath": serverData}}
		pod["volumes"] = []any{object{"name": "data", "persistentVolumeClaim": object{"claimName": b.name("server-data")}}}
	}
	container["args"] = args
	deployment := b.namespaced("apps/v1", "Deployment", b.name("server"))
	deployment["spec"] = object{
		"replicas": 1,
		"selector": object{"matchLabels": b.selector()},
		"strategy": object{"type": "Recreate"},
		"template": object{"metadata": object{"labels": merge(b.labels(), b.selector())}, "spec": pod},
	}
	b.add(deployment)
}
