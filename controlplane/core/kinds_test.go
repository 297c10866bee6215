// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package core_test

import (
	"testing"

	"github.com/steer-dev/steer/controlplane/core"
	"github.com/steer-dev/steer/controlplane/core/kind/kindtest"
)

func builtin(apiVersion, kind, valid string) kindtest.Kind {
	return kindtest.Kind{Resources: core.Resources(), APIVersion: apiVersion, Kind: kind, Valid: "metadata: {name: a, namespace: default}\n" + valid}
}

func TestNamespaceValidation(t *testing.T) {
	t.Parallel()
	k := kindtest.Kind{Resources: core.Resources(), APIVersion: "v1", Kind: "Namespace", Valid: "metadata: {name: a}"}
	k.Create(t, []kindtest.Case{{"finalizer without a domain", "spec.finalizers: [moon]", `spec.finalizers: Invalid value: "moon": name is neither a standard finalizer name nor is it fully qualified`}})
	k.Update(t, []kindtest.Case{{"finalizers are kept", "spec.finalizers: []", ""}})
	k.Defaults(t, []kindtest.Case{{"label, finalizer and phase", "", "metadata.labels: {kubernetes.io/metadata.name: a}\nspec.finalizers: [kubernetes]\nstatus.phase: Active"}})
	k.Row(t, []kindtest.Case{{"active", "status.phase: Active", "a | Active | <unknown>"}})
	status := k
	status.Subresource = "status"
	status.Update(t, []kindtest.Case{{"phase without a deletion", "status.phase: Terminating", "status.Phase: Invalid value: \"Terminating\": may only be 'Active' if `deletionTimestamp` is empty"}})
	finalize := k
	finalize.Subresource = "finalize"
	finalize.Update(t, []kindtest.Case{{"finalizers", "spec.finalizers: []", ""}})
	finalize.Defaults(t, []kindtest.Case{{"status stays", "status.phase: Terminating\nspec.finalizers: []", "status.phase: Active\nspec: {}"}})
}

func TestConfigMapValidation(t *testing.T) {
	t.Parallel()
	k := builtin("v1", "ConfigMap", "data: {a: b}\nbinaryData: {c: ZA==}")
	k.Create(t, []kindtest.Case{
		{"key with a space", "data: {'a b': c}", `data[a b]: Invalid value: "a b": a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')`},
		{"key twice", "binaryData: {a: ZA==}", `data[a]: Invalid value: "a": duplicate of key present in binaryData`},
	})
	k.With(t, "immutable: true").Update(t, []kindtest.Case{
		{"data", "data.a: c", "data: Forbidden: field is immutable when `immutable` is set"},
		{"binary data", "binaryData: null", "binaryData: Forbidden: field is immutable when `immutable` is set"},
		{"mutable again", "immutable: false", "immutable: Forbidden: field is immutable when `immutable` is set"},
		{"labels", "metadata.labels: {a: b}", ""},
	})
	k.Row(t, []kindtest.Case{{"two keys", "", "a | 2 | <unknown>"}})
}

func TestSecretValidation(t *testing.T) {
	t.Parallel()
	k := builtin("v1", "Secret", "data: {a: ZA==}")
	k.Create(t, []kindtest.Case{
		{"key with a space", "data: {'a b': ZA==}", `data[a b]: Invalid value: "a b": a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')`},
		{"token of no account", "type: kubernetes.io/service-account-token", "metadata.annotations[kubernetes.io/service-account.name]: Required value"},
		{"registry without a config", "type: kubernetes.io/dockerconfigjson", "data[.dockerconfigjson]: Required value"},
		{"registry that is no JSON", "type: kubernetes.io/dockercfg\ndata: {.dockercfg: ZA==}", `data[.dockercfg]: Invalid value: "<secret contents redacted>": invalid character 'd' looking for beginning of value`},
		{"neither user nor password", "type: kubernetes.io/basic-auth", `
data[username]: Required value
data[password]: Required value`},
		{"user alone", "type: kubernetes.io/basic-auth\ndata: {username: ZA==}", ""},
		{"no SSH key", "type: kubernetes.io/ssh-auth", "data[ssh-privatekey]: Required value"},
		{"certificate without a key", "type: kubernetes.io/tls\ndata: {tls.crt: ZA==}", "data[tls.key]: Required value"},
	})
	k.Update(t, []kindtest.Case{{"type", "type: example.com/a", `type: Invalid value: "example.com/a": field is immutable`}, {"data", "data: {b: ZA==}", ""}})
	k.With(t, "immutable: true").Update(t, []kindtest.Case{{"data of an immutable Secret", "data: {b: ZA==}", "data: Forbidden: field is immutable when `immutable` is set"}, {"mutable again", "immutable: null", "immutable: Forbidden: field is immutable when `immutable` is set"}})
	k.Defaults(t, []kindtest.Case{{"strings become data", "stringData: {b: c}", "type: Opaque\ndata: {a: ZA==, b: Yw==}\nstringData: null"}})
	k.Row(t, []kindtest.Case{{"one key", "type: Opaque", "a | Opaque | 1 | <unknown>"}})
}

func TestServiceAccountRules(t *testing.T) {
	t.Parallel()
	k := builtin("v1", "ServiceAccount", "secrets: [{name: s, namespace: other, kind: Secret}]")
	k.Defaults(t, []kindtest.Case{{"secrets are names", "", "secrets: [{name: s}]"}})
	k.Warnings(t, []kindtest.Case{{"annotation", "metadata.annotations: {kubernetes.io/enforce-mountable-secrets: 'true'}", "metadata.annotations[kubernetes.io/enforce-mountable-secrets]: deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets"}, {"none", "", ""}})
}

func TestLeaseValidation(t *testing.T) {
	t.Parallel()
	k := builtin("coordination.k8s.io/v1", "Lease", "spec: {holderIdentity: h, leaseDurationSeconds: 15, leaseTransitions: 0}")
	k.Create(t, []kindtest.Case{
		{"duration", "spec.leaseDurationSeconds: 0", "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0"},
		{"transitions", "spec.leaseTransitions: -1", "spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0"},
	})
	k.Defaults(t, []kindtest.Case{{"coordination is off", "spec.strategy: OldestEmulationVersion", "spec.strategy: null"}})
	k.Row(t, []kindtest.Case{{"held", "", "a | h | <unknown>"}})
}

func TestDisruptionBudgetValidation(t *testing.T) {
	t.Parallel()
	k := builtin("policy/v1", "PodDisruptionBudget", "spec: {minAvailable: 1, selector: {matchLabels: {a: b}}}")
	k.Create(t, []kindtest.Case{
		{"both bounds", "spec.maxUnavailable: 1", `spec: Invalid value: {"MinAvailable":1,"Selector":{"matchLabels":{"a":"b"}},"MaxUnavailable":1,"UnhealthyPodEvictionPolicy":null}: minAvailable and maxUnavailable cannot be both set`},
		{"negative bound", "spec.minAvailable: -1", "spec.minAvailable: Invalid value: -1: must be greater than or equal to 0"},
		{"more than all", "spec.minAvailable: 101%", `spec.minAvailable: Invalid value: "101%": must not be greater than 100%`},
		{"bound that is no number", "spec.minAvailable: moon", `spec.minAvailable: Invalid value: "moon": a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')`},
		{"selector", "spec.selector: {matchExpressions: [{key: a, operator: In}]}", "spec.selector.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'"},
		{"policy for unhealthy Pods", "spec.unhealthyPodEvictionPolicy: Moon", `spec.unhealthyPodEvictionPolicy: Unsupported value: "Moon": supported values: "AlwaysAllow", "IfHealthyBudget"`},
	})
	status := k
	status.Subresource = "status"
	status.Update(t, []kindtest.Case{{"negative counts", "status: {disruptionsAllowed: -1, currentHealthy: -1, desiredHealthy: -1, expectedPods: -1}", `
status.disruptionsAllowed: Invalid value: -1: must be greater than or equal to 0
status.currentHealthy: Invalid value: -1: must be greater than or equal to 0
status.desiredHealthy: Invalid value: -1: must be greater than or equal to 0
status.expectedPods: Invalid value: -1: must be greater than or equal to 0`}})
	k.Row(t, []kindtest.Case{{"lower bound", "status: {disruptionsAllowed: 2}", "a | 1 | N/A | 2 | <unknown>"}})
}

func TestResourceQuotaValidation(t *testing.T) {
	t.Parallel()
	k := builtin("v1", "ResourceQuota", "spec: {hard: {pods: 1, requests.cpu: 100m, count/jobs.batch: 1}}")
	k.Create(t, []kindtest.Case{
		{"unknown resource", "spec.hard: {moons: 1}", `
spec.hard[moons]: Invalid value: "moons": must be a standard resource type or fully qualified
spec.hard[moons]: Invalid value: "moons": must be a standard resource for quota`},
		{"negative amount", "spec.hard: {pods: -1}", `spec.hard[pods]: Invalid value: "-1": must be greater than or equal to 0`},
		{"count in part", "spec.hard: {pods: 500m}", `spec.hard[pods]: Invalid value: "500m": must be an integer`},
		{"unknown scope", "spec.scopes: [Moon]", `spec.scopes: Invalid value: ["Moon"]: unsupported scope`},
		{"scope of another resource", "spec.scopes: [BestEffort]", `
spec.scopes: Invalid value: ["BestEffort"]: unsupported scope applied to resource
spec.scopes: Invalid value: ["BestEffort"]: unsupported scope applied to resource`},
		{"scopes that exclude each other", "spec.hard: {pods: 1}\nspec.scopes: [Terminating, NotTerminating]", `spec.scopes: Invalid value: ["Terminating","NotTerminating"]: conflicting scopes`},
		{"selector without values", "spec.hard: {pods: 1}\nspec.scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: In}]}", "spec.scopeSelector.matchExpressions.values: Required value: must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"},
		{"selector with values", "spec.hard: {pods: 1}\nspec.scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: Exists, values: [a]}]}", "spec.scopeSelector.matchExpressions.values: Invalid value: [\"a\"]: must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"},
	})
	k.Update(t, []kindtest.Case{{"scopes", "spec.hard: {pods: 1}\nspec.scopes: [Terminating]", `spec.scopes: Invalid value: ["Terminating"]: field is immutable`}, {"amounts", "spec.hard.pods: 2", ""}})
	status := k
	status.Subresource = "status"
	status.Update(t, []kindtest.Case{{"negative use", "status.used: {pods: -1}", `status.used[pods]: Invalid value: "-1": must be greater than or equal to 0`}})
	k.Row(t, []kindtest.Case{{"used", "status: {hard: {pods: 2, limits.cpu: 1}, used: {pods: 1, limits.cpu: 500m}}", "a | pods: 1/2 | limits.cpu: 500m/1 | <unknown>"}})
}

func TestLimitRangeValidation(t *testing.T) {
	t.Parallel()
	k := builtin("v1", "LimitRange", "spec: {limits: [{type: Container, min: {cpu: 1}, max: {cpu: 4}}]}")
	k.Create(t, []kindtest.Case{
		{"type twice", "spec.limits: [{type: Pod}, {type: Pod}]", `spec.limits[1].type: Duplicate value: "Pod"`},
		{"least above most", "spec.limits.0.min.cpu: 5", `
spec.limits[0].min[cpu]: Invalid value: "5": min value 5 is greater than max value 4
spec.limits[0].defaultRequest[cpu]: Invalid value: "4": min value 5 is greater than default request value 4
spec.limits[0].default[cpu]: Invalid value: "5": min value 5 is greater than default value 4`},
		{"default above most", "spec.limits.0.default: {cpu: 5}", `
spec.limits[0].defaultRequest[cpu]: Invalid value: "5": default request value 5 is greater than max value 4
spec.limits[0].default[cpu]: Invalid value: "4": default value 5 is greater than max value 4`},
		{"request above the default", "spec.limits.0.default: {cpu: 1}\nspec.limits.0.defaultRequest: {cpu: 2}", `spec.limits[0].defaultRequest[cpu]: Invalid value: "2": default request value 2 is greater than default limit value 1`},
		{"ratio below one", "spec.limits.0.maxLimitRequestRatio: {cpu: 500m}", `spec.limits[0].maxLimitRequestRatio[cpu]: Invalid value: "500m": ratio 500m is less than 1`},
		{"defaults of Pods", "spec.limits: [{type: Pod, default: {cpu: 1}, defaultRequest: {cpu: 1}}]", "spec.limits[0].default: Forbidden: may not be specified when `type` is 'Pod'\nspec.limits[0].defaultRequest: Forbidden: may not be specified when `type` is 'Pod'"},
		{"claims without bounds", "spec.limits: [{type: PersistentVolumeClaim}]", "spec.limits[0].limits: Required value: either minimum or maximum storage value is required, but neither was provided"},
		{"unknown resource", "spec.limits.0.max.moons: 1", `
spec.limits[0].max[moons]: Invalid value: "moons": must be a standard resource type or fully qualified
spec.limits[0].max[moons]: Invalid value: "moons": must be a standard resource for containers
spec.limits[0].default[moons]: Invalid value: "moons": must be a standard resource type or fully qualified
spec.limits[0].default[moons]: Invalid value: "moons": must be a standard resource for containers
spec.limits[0].defaultRequest[moons]: Invalid value: "moons": must be a standard resource type or fully qualified
spec.limits[0].defaultRequest[moons]: Invalid value: "moons": must be a standard resource for containers`},
	})
	k.Defaults(t, []kindtest.Case{{"default and request", "", "spec.limits.0.default: {cpu: '4'}\nspec.limits.0.defaultRequest: {cpu: '4'}"}})
}

func TestRoleValidation(t *testing.T) {
	t.Parallel()
	role := builtin("rbac.authorization.k8s.io/v1", "Role", "rules: [{verbs: [get], apiGroups: [''], resources: [pods]}]")
	role.Create(t, []kindtest.Case{
		{"no verbs", "rules.0.verbs: []", "rules[0].verbs: Required value"},
		{"no groups", "rules.0.apiGroups: []", "rules[0].apiGroups: Required value: resource rules must supply at least one api group"},
		{"no resources", "rules.0.resources: []", "rules[0].resources: Required value: resource rules must supply at least one resource"},
		{"paths in a namespace", "rules: [{verbs: [get], nonResourceURLs: [/healthz]}]", `rules[0].nonResourceURLs: Invalid value: ["/healthz"]: namespaced rules cannot apply to non-resource URLs`},
	})
	cluster := kindtest.Kind{Resources: core.Resources(), APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Valid: "metadata: {name: a}\nrules: [{verbs: [get], nonResourceURLs: [/healthz]}]"}
	cluster.Create(t, []kindtest.Case{
		{"paths and resources", "rules.0.resources: [pods]", `rules[0].nonResourceURLs: Invalid value: ["/healthz"]: rules cannot apply to both regular resources and non-resource URLs`},
		{"no selectors", "aggregationRule: {clusterRoleSelectors: []}", "aggregationRule.clusterRoleSelectors: Required value: at least one clusterRoleSelector required if aggregationRule is non-nil"},
	})
	binding := builtin("rbac.authorization.k8s.io/v1", "RoleBinding", "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: r}\nsubjects: [{kind: ServiceAccount, name: s, namespace: default}]")
	binding.Create(t, []kindtest.Case{
		{"role without a name", "roleRef.name: ''", "roleRef.name: Required value"},
		{"role of an unknown kind", "roleRef.kind: Moon", `roleRef.kind: Unsupported value: "Moon": supported values: "Role", "ClusterRole"`},
		{"role of another group", "roleRef.apiGroup: example.com", `roleRef.apiGroup: Unsupported value: "example.com": supported values: "rbac.authorization.k8s.io"`},
		{"account of the same namespace", "subjects.0.namespace: ''", ""},
		{"subject of an unknown kind", "subjects.0.kind: Moon", `subjects[0].kind: Unsupported value: "Moon": supported values: "ServiceAccount", "User", "Group"`},
		{"user of another group", "subjects.0: {kind: User, name: u, apiGroup: example.com}", `subjects[0].apiGroup: Unsupported value: "example.com": supported values: "rbac.authorization.k8s.io"`},
	})
	binding.Update(t, []kindtest.Case{{"role", "roleRef.name: other", `roleRef: Invalid value: {"APIGroup":"rbac.authorization.k8s.io","Kind":"ClusterRole","Name":"other"}: field is immutable`}, {"subjects", "subjects: []", ""}})
	binding.Defaults(t, []kindtest.Case{{"groups", "roleRef.apiGroup: ''\nsubjects: [{kind: User, name: u}]", "roleRef.apiGroup: rbac.authorization.k8s.io\nsubjects.0.apiGroup: rbac.authorization.k8s.io"}})
	binding.Row(t, []kindtest.Case{{"account", "", "a | ClusterRole/r | <unknown> |  |  | default/s"}})
}

func TestEventValidation(t *testing.T) {
	t.Parallel()
	old := builtin("v1", "Event", "involvedObject: {namespace: default, name: p}\ntype: Normal")
	old.Create(t, []kindtest.Case{{"another namespace", "involvedObject.namespace: other", `involvedObject.namespace: Invalid value: "other": does not match event.namespace`}, {"no type", "type: ''", ""}})
	k := builtin("events.k8s.io/v1", "Event", `
regarding: {namespace: default, name: p}
eventTime: "2026-01-01T00:00:00.000000Z"
reportingController: example.com/c
reportingInstance: c-1
action: Run
reason: Started
type: Normal`)
	k.Create(t, []kindtest.Case{
		{"no time", "eventTime: null", "eventTime: Required value"},
		{"no action", "action: ''", "action: Required value"},
		{"no reason", "reason: ''", "reason: Required value"},
		{"no controller", "reportingController: ''", `
reportingController: Required value
reportingController: Invalid value: "": name part must be non-empty
reportingController: Invalid value: "": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')`},
		{"no instance", "reportingInstance: ''", "reportingInstance: Required value"},
		{"unknown type", "type: Moon", `type: Invalid value: "": has invalid value: Moon`},
		{"series of one", "series: {count: 1, lastObservedTime: '2026-01-01T00:00:00.000000Z'}", `series.count: Invalid value: "": should be at least 2`},
	})
	k.Update(t, []kindtest.Case{{"reason", "reason: Other", `
reason: Invalid value: "Other": field is immutable
reason: Invalid value: "Other": field is immutable`}, {"series", "series: {count: 2, lastObservedTime: '2026-01-01T00:01:00.000000Z'}", ""}})
}
