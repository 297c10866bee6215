// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package networking_test

import (
	"testing"

	"github.com/steer-dev/steer/controlplane/core/kind/kindtest"
	"github.com/steer-dev/steer/controlplane/core/networking"
)

func ingresses() kindtest.Kind {
	return kindtest.Kind{Resources: networking.Resources(), APIVersion: "networking.k8s.io/v1", Kind: "Ingress", Valid: `
metadata: {name: i, namespace: default}
spec:
  ingressClassName: c
  defaultBackend: {service: {name: web, port: {number: 80}}}
  tls: [{hosts: [example.com], secretName: s}]
  rules:
  - host: example.com
    http: {paths: [{path: /a, pathType: Prefix, backend: {service: {name: web, port: {name: http}}}}]}`}
}

func TestIngressValidation(t *testing.T) {
	t.Parallel()
	ingresses().Create(t, []kindtest.Case{
		{"neither rules nor backend", "spec: {}", "spec: Invalid value: null: either `defaultBackend` or `rules` must be specified"},
		{"backend of two kinds", "spec.defaultBackend.resource: {kind: K, name: params}", `spec.defaultBackend: Invalid value: "": cannot set both resource and service backends`},
		{"backend of no kind", "spec.defaultBackend: {}", `spec.defaultBackend: Invalid value: "": resource or service backend is required`},
		{"backend resource without a name", "spec.defaultBackend: {resource: {kind: K, name: ''}}", "spec.defaultBackend.resource.name: Required value"},
		{"service without a name", "spec.defaultBackend.service.name: ''", "spec.defaultBackend.service.name: Required value"},
		{"service with a wrong name", "spec.defaultBackend.service.name: A", `spec.defaultBackend.service.name: Invalid value: "A": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')`},
		{"service without a port", "spec.defaultBackend.service.port: {}", "spec.defaultBackend: Required value: port name or number is required"},
		{"service with two ports", "spec.defaultBackend.service.port.name: http", `spec.defaultBackend: Invalid value: "": cannot set both port name & port number`},
		{"service port out of range", "spec.defaultBackend.service.port.number: 65536", "spec.defaultBackend.service.port.number: Invalid value: 65536: must be between 1 and 65535, inclusive"},
		{"host that is an address", "spec.rules.0.host: 10.0.0.1", `spec.rules[0].host: Invalid value: "10.0.0.1": must be a DNS name, not an IP address`},
		{"host that is no name", "spec.rules.0.host: A_b", `spec.rules[0].host: Invalid value: "A_b": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`},
		{"host with a wildcard", "spec.rules.0.host: '*.example.com'", ""},
		{"host with a wildcard inside", "spec.rules.0.host: 'a.*.com'", `spec.rules[0].host: Invalid value: "a.*.com": a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', regex used for validation is '\*\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`},
		{"no paths", "spec.rules.0.http.paths: []", "spec.rules[0].http.paths: Required value"},
		{"path without a type", "spec.rules.0.http.paths.0.pathType: null", "spec.rules[0].http.paths[0].pathType: Required value: pathType must be specified"},
		{"path of an unknown type", "spec.rules.0.http.paths.0.pathType: Moon", `spec.rules[0].http.paths[0].pathType: Unsupported value: "Moon": supported values: "Exact", "ImplementationSpecific", "Prefix"`},
		{"path that is relative", "spec.rules.0.http.paths.0.path: a", `spec.rules[0].http.paths[0].path: Invalid value: "a": must be an absolute path`},
		{"path with dots", "spec.rules.0.http.paths.0.path: /a/../b//", `
spec.rules[0].http.paths[0].path: Invalid value: "/a/../b//": must not contain '//'
spec.rules[0].http.paths[0].path: Invalid value: "/a/../b//": must not contain '/../'`},
		{"path that ends in dots", "spec.rules.0.http.paths.0.path: /a/..", `spec.rules[0].http.paths[0].path: Invalid value: "/a/..": cannot end with '/..'`},
		{"path that the controller understands", "spec.rules.0.http.paths.0: {path: /a/../b, pathType: ImplementationSpecific, backend: {service: {name: web, port: {number: 1}}}}", ""},
		{"secret with a wrong name", "spec.tls.0.secretName: A_b", `spec.tls[0].secretName: Invalid value: "A_b": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`},
		{"certificate for a wrong host", "spec.tls.0.hosts: [A_b]", `spec.tls[0].hosts[0]: Invalid value: "A_b": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`},
		{"class with a wrong name", "spec.ingressClassName: A_b", `spec.ingressClassName: Invalid value: "A_b": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`},
		{"class that the annotation contradicts", "metadata.annotations: {kubernetes.io/ingress.class: other}", "annotations.kubernetes.io/ingress.class: Invalid value: \"other\": must match `ingressClassName` when both are specified"},
	})
}

// What an earlier version of Kubernetes has stored may stay.
func TestIngressUpdateValidation(t *testing.T) {
	t.Parallel()
	ingresses().With(t, "spec.tls.0.secretName: A_b").Update(t, []kindtest.Case{
		{"secret name stays wrong", "spec.tls.0.hosts: [other.com]", ""},
		{"annotation is not compared", "metadata.annotations: {kubernetes.io/ingress.class: other}", ""},
	})
	ingresses().With(t, "spec.rules.0.host: '*.com'\nspec.rules.0.http.paths.0.path: a").Update(t, []kindtest.Case{
		{"path below a wildcard stays wrong", "spec.tls.0.hosts: [other.com]", ""},
		{"path below another host", "spec.rules.0.host: b.com", `spec.rules[0].http.paths[0].path: Invalid value: "a": must be an absolute path`},
	})
}

func TestIngressStatusValidation(t *testing.T) {
	t.Parallel()
	k := ingresses()
	k.Subresource = "status"
	k.Update(t, []kindtest.Case{
		{"address", "status.loadBalancer.ingress: [{ip: 10.0.0.256}]", `status.loadBalancer.ingress[0].ip: Invalid value: "10.0.0.256": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)`},
		{"host name", "status.loadBalancer.ingress: [{hostname: 10.0.0.1}]", `status.loadBalancer.ingress[0].hostname: Invalid value: "10.0.0.1": must be a DNS name, not an IP address`},
	})
}

func TestIngressWarnings(t *testing.T) {
	t.Parallel()
	ingresses().Warnings(t, []kindtest.Case{
		{"none", "", ""},
		{"annotation", "spec.ingressClassName: null\nmetadata.annotations: {kubernetes.io/ingress.class: c}", `annotation "kubernetes.io/ingress.class" is deprecated, please use 'spec.ingressClassName' instead`},
	})
}

func TestIngressRow(t *testing.T) {
	t.Parallel()
	ingresses().Row(t, []kindtest.Case{
		{"without an address", "", "i | c | example.com |  | 80, 443 | <unknown>"},
		{"of every host", "spec: {defaultBackend: {resource: {kind: K, name: params}}}\nstatus.loadBalancer.ingress: [{ip: 10.0.0.1}, {hostname: a.com}]", "i | <none> | * | 10.0.0.1,a.com | 80 | <unknown>"},
	})
}

func ingressClasses() kindtest.Kind {
	return kindtest.Kind{Resources: networking.Resources(), APIVersion: "networking.k8s.io/v1", Kind: "IngressClass", Valid: `
metadata: {name: c}
spec:
  controller: example.com/ingress
  parameters: {apiGroup: example.com, kind: K, name: params}`}
}

func TestIngressClassValidation(t *testing.T) {
	t.Parallel()
	ingressClasses().Create(t, []kindtest.Case{
		{"controller without a domain", "spec.controller: ingress", `spec.controller: Invalid value: "ingress": must be a domain-prefixed path (such as "acme.io/foo")`},
		{"parameters without a name", "spec.parameters.name: ''", "spec.parameters.name: Required value"},
		{"parameters of the cluster in a namespace", "spec.parameters.namespace: default", "spec.parameters.namespace: Forbidden: `parameters.scope` is set to 'Cluster'"},
		{"parameters in no namespace", "spec.parameters.scope: Namespace", "spec.parameters.namespace: Required value: `parameters.scope` is set to 'Namespace'"},
		{"parameters in a namespace", "spec.parameters.scope: Namespace\nspec.parameters.namespace: default", ""},
		{"parameters of an unknown scope", "spec.parameters.scope: Moon", `spec.parameters.scope: Unsupported value: "Moon": supported values: "Cluster", "Namespace"`},
	})
	ingressClasses().Update(t, []kindtest.Case{{"controller", "spec.controller: example.com/other", `spec.controller: Invalid value: "example.com/other": field is immutable`}})
	ingressClasses().Defaults(t, []kindtest.Case{{"scope", "", "spec.parameters.scope: Cluster"}})
	ingressClasses().Row(t, []kindtest.Case{
		{"default class", "metadata.annotations: {ingressclass.kubernetes.io/is-default-class: 'true'}", "c (default) | example.com/ingress | K.example.com/params | <unknown>"},
		{"no parameters", "spec.parameters: null", "c | example.com/ingress | <none> | <unknown>"},
	})
}

func policies() kindtest.Kind {
	return kindtest.Kind{Resources: networking.Resources(), APIVersion: "networking.k8s.io/v1", Kind: "NetworkPolicy", Valid: `
metadata: {name: p, namespace: default}
spec:
  podSelector: {matchLabels: {a: b}}
  ingress: [{from: [{podSelector: {}}, {ipBlock: {cidr: 10.0.0.0/8, except: [10.1.0.0/16]}}], ports: [{port: 80, endPort: 90}]}]
  egress: [{to: [{namespaceSelector: {}}], ports: [{port: http, protocol: UDP}]}]`}
}

func TestNetworkPolicyValidation(t *testing.T) {
	t.Parallel()
	policies().Create(t, []kindtest.Case{
		{"selector", "spec.podSelector: {matchExpressions: [{key: a, operator: Moon}]}", `spec.podSelector.matchExpressions[0].operator: Invalid value: "Moon": not a valid selector operator`},
		{"label value", "spec.podSelector: {matchLabels: {a: -}}", `spec.podSelector.matchLabels: Invalid value: "-": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')`},
		{"peer of no kind", "spec.ingress.0.from.0: {}", "spec.ingress[0].from[0]: Required value: must specify a peer"},
		{"peer of two kinds", "spec.ingress.0.from.1.podSelector: {}", "spec.ingress[0].from[1]: Forbidden: may not specify both ipBlock and another peer"},
		{"range without an address", "spec.ingress.0.from.1.ipBlock: {cidr: ''}", "spec.ingress[0].from[1].ipBlock.cidr: Required value"},
		{"range that is none", "spec.ingress.0.from.1.ipBlock: {cidr: moon}", `spec.ingress[0].from[1].ipBlock.cidr: Invalid value: "moon": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)`},
		{"exception outside the range", "spec.ingress.0.from.1.ipBlock.except: [11.0.0.0/8]", "spec.ingress[0].from[1].ipBlock.except[0]: Invalid value: \"11.0.0.0/8\": must be a strict subset of `cidr`"},
		{"exception that is the range", "spec.ingress.0.from.1.ipBlock.except: [10.0.0.0/8]", "spec.ingress[0].from[1].ipBlock.except[0]: Invalid value: \"10.0.0.0/8\": must be a strict subset of `cidr`"},
		{"protocol", "spec.ingress.0.ports.0.protocol: ICMP", `spec.ingress[0].ports[0].protocol: Unsupported value: "ICMP": supported values: "TCP", "UDP", "SCTP"`},
		{"port out of range", "spec.ingress.0.ports.0.port: 0", "spec.ingress[0].ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive"},
		{"last port without a first", "spec.ingress.0.ports.0.port: null", "spec.ingress[0].ports[0].endPort: Invalid value: 90: may not be specified when `port` is not specified"},
		{"last port before the first", "spec.ingress.0.ports.0.endPort: 79", "spec.ingress[0].ports[0].endPort: Invalid value: 79: must be greater than or equal to `port`"},
		{"last port after a name", "spec.egress.0.ports.0.endPort: 80", "spec.egress[0].ports[0].endPort: Invalid value: 80: may not be specified when `port` is non-numeric"},
		{"name of a port", "spec.egress.0.ports.0.port: a_b", `spec.egress[0].ports[0].port: Invalid value: "a_b": must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)`},
		{"type that is unknown", "spec.policyTypes: [Moon]", `spec.policyTypes[0]: Unsupported value: "Moon": supported values: "Ingress", "Egress"`},
		{"three types", "spec.policyTypes: [Ingress, Egress, Ingress]", `spec.policyTypes: Invalid value: ["Ingress","Egress","Ingress"]: may not specify more than two policyTypes`},
	})
	policies().With(t, "spec.ingress.0.from.1.ipBlock: {cidr: 010.0.0.0/8}").Update(t, []kindtest.Case{
		{"range stays as it is", "spec.policyTypes: [Ingress]", ""},
		{"another range", "spec.ingress.0.from.1.ipBlock: {cidr: 011.0.0.0/8}", `spec.ingress[0].from[1].ipBlock.cidr: Invalid value: "011.0.0.0/8": must not have leading 0s in IP or prefix length`},
	})
}

func TestNetworkPolicyDefaults(t *testing.T) {
	t.Parallel()
	policies().Defaults(t, []kindtest.Case{
		{"protocol", "", "spec.ingress.0.ports.0.protocol: TCP"},
		{"types", "", "spec.policyTypes: [Ingress, Egress]"},
		{"types without egress", "spec.egress: null", "spec.policyTypes: [Ingress]"},
	})
}

func TestNetworkPolicyWarnings(t *testing.T) {
	t.Parallel()
	policies().Warnings(t, []kindtest.Case{
		{"none", "", ""},
		{"host bits", "spec.ingress.0.from.1.ipBlock: {cidr: 10.0.0.1/8}", `spec.ingress[0].from[1].ipBlock.cidr: CIDR value "10.0.0.1/8" is ambiguous in this context (should be "10.0.0.0/8" or "10.0.0.1/32"?)`},
	})
}
