// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package admissionregistration_test

import (
	"testing"

	"github.com/steer-dev/steer/controlplane/core/admissionregistration"
	"github.com/steer-dev/steer/controlplane/core/kind/kindtest"
)

func registered(kind, valid string) kindtest.Kind {
	return kindtest.Kind{Resources: admissionregistration.Resources(), APIVersion: "admissionregistration.k8s.io/v1", Kind: kind, Valid: "metadata: {name: a}\n" + valid}
}

// webhook is one that both kinds of configurations may hold.
const webhook = `
webhooks:
- name: a.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  clientConfig: {service: {namespace: default, name: s, path: /a}}
  rules: [{apiGroups: [""], apiVersions: [v1], resources: [pods], operations: [CREATE]}]
  matchConditions: [{name: c, expression: "object.metadata.name != 'a'"}]`

func TestWebhookValidation(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			checkWebhooks(t, registered(kind, webhook))
		})
	}
}

func checkWebhooks(t *testing.T, k kindtest.Kind) {
	t.Helper()
	k.Create(t, []kindtest.Case{
		{"name without a domain", "webhooks.0.name: a", `webhooks[0].name: Invalid value: "a": should be a domain with at least three segments separated by dots`},
		{"no review versions", "webhooks.0.admissionReviewVersions: []", "webhooks[0].admissionReviewVersions: Required value: must specify one of v1, v1beta1"},
		{"review versions that are unknown", "webhooks.0.admissionReviewVersions: [v9]", `webhooks[0].admissionReviewVersions: Invalid value: ["v9"]: must include at least one of v1, v1beta1`},
		{"side effects", "webhooks.0.sideEffects: Some", `webhooks[0].sideEffects: Unsupported value: "Some": supported values: "None", "NoneOnDryRun"`},
		{"failure policy", "webhooks.0.failurePolicy: Moon", `webhooks[0].failurePolicy: Unsupported value: "Moon": supported values: "Fail", "Ignore"`},
		{"match policy", "webhooks.0.matchPolicy: Moon", `webhooks[0].matchPolicy: Unsupported value: "Moon": supported values: "Equivalent", "Exact"`},
		{"timeout", "webhooks.0.timeoutSeconds: 31", "webhooks[0].timeoutSeconds: Invalid value: 31: the timeout value must be between 1 and 30 seconds"},
		{"neither service nor URL", "webhooks.0.clientConfig: {}", "webhooks[0].clientConfig: Required value: exactly one of url or service is required"},
		{"URL without TLS", "webhooks.0.clientConfig: {url: 'http://a.example.com'}", `webhooks[0].clientConfig.url: Invalid value: "http": 'https' is the only allowed URL scheme; desired format: https://host[/path]`},
		{"relative path", "webhooks.0.clientConfig.service.path: a", `
webhooks[0].clientConfig.service.path: Invalid value: "a": must start with a '/'
webhooks[0].clientConfig.service.path: Invalid value: "a": segment[0] may not be empty`},
		{"port", "webhooks.0.clientConfig.service.port: 0", "webhooks[0].clientConfig.service.port: Invalid value: 0: port is not valid: must be between 1 and 65535, inclusive"},
		{"no operations", "webhooks.0.rules.0.operations: []", "webhooks[0].rules[0].operations: Required value"},
		{"every operation and one", "webhooks.0.rules.0.operations: ['*', CREATE]", `webhooks[0].rules[0].operations: Invalid value: ["*","CREATE"]: if '*' is present, must not specify other operations`},
		{"operation", "webhooks.0.rules.0.operations: [MOON]", `webhooks[0].rules[0].operations[0]: Unsupported value: "MOON": supported values: "*", "CONNECT", "CREATE", "DELETE", "UPDATE"`},
		{"no groups", "webhooks.0.rules.0.apiGroups: []", "webhooks[0].rules[0].apiGroups: Required value"},
		{"every version and one", "webhooks.0.rules.0.apiVersions: ['*', v1]", `webhooks[0].rules[0].apiVersions: Invalid value: ["*","v1"]: if '*' is present, must not specify other API versions`},
		{"no resources", "webhooks.0.rules.0.resources: []", "webhooks[0].rules[0].resources: Required value"},
		{"resource twice", "webhooks.0.rules.0.resources: ['*', pods]", `webhooks[0].rules[0].resources: Invalid value: ["*","pods"]: if '*' is present, must not specify other resources without subresources`},
		{"scope", "webhooks.0.rules.0.scope: Moon", `webhooks[0].rules[0].scope: Unsupported value: "Moon": supported values: "*", "Cluster", "Namespaced"`},
		{"selector", "webhooks.0.objectSelector: {matchLabels: {a: -}}", `webhooks[0].objectSelector.matchLabels: Invalid value: "-": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')`},
		{"condition without a name", "webhooks.0.matchConditions.0.name: ''", "webhooks[0].matchConditions[0].name: Required value"},
		{"condition that does not compile", "webhooks.0.matchConditions.0.expression: 'object.'", `webhooks[0].matchConditions[0].expression: Invalid value: "object.": compilation failed: ERROR: <input>:1:8: Syntax error: no viable alternative at input '.'`},
		{"condition of another type", "webhooks.0.matchConditions.0.expression: '1'", `webhooks[0].matchConditions[0].expression: Invalid value: "1": must evaluate to bool but got int`},
	})
	k.Update(t, []kindtest.Case{{"failure policy", "webhooks.0.failurePolicy: Ignore", ""}, {"side effects", "webhooks.0.sideEffects: Some", `webhooks[0].sideEffects: Unsupported value: "Some": supported values: "None", "NoneOnDryRun"`}})
	k.Defaults(t, []kindtest.Case{{"webhook", "", `
webhooks.0.failurePolicy: Fail
webhooks.0.matchPolicy: Equivalent
webhooks.0.namespaceSelector: {}
webhooks.0.objectSelector: {}
webhooks.0.timeoutSeconds: 10
webhooks.0.clientConfig.service.port: 443
webhooks.0.rules.0.scope: '*'`}})
	k.Row(t, []kindtest.Case{{"one webhook", "", "a | 1 | <unknown>"}})
}

func TestMutatingWebhookReinvocation(t *testing.T) {
	t.Parallel()
	k := registered("MutatingWebhookConfiguration", webhook)
	k.Create(t, []kindtest.Case{{"policy", "webhooks.0.reinvocationPolicy: Moon", `webhooks[0].reinvocationPolicy: Unsupported value: "Moon": supported values: "IfNeeded", "Never"`}})
	k.Defaults(t, []kindtest.Case{{"policy", "", "webhooks.0.reinvocationPolicy: Never"}})
}

func validatingPolicies() kindtest.Kind {
	return registered("ValidatingAdmissionPolicy", `
spec:
  paramKind: {apiVersion: v1, kind: ConfigMap}
  matchConstraints: {resourceRules: [{apiGroups: [apps], apiVersions: [v1], resources: [deployments], operations: [CREATE]}]}
  variables: [{name: count, expression: object.spec.replicas}]
  validations: [{expression: variables.count <= 5, messageExpression: "'too many'"}]
  auditAnnotations: [{key: k, valueExpression: "'v'"}]`)
}

func TestPolicyValidation(t *testing.T) {
	t.Parallel()
	validatingPolicies().Create(t, []kindtest.Case{
		{"neither validations nor annotations", "spec.validations: []\nspec.auditAnnotations: []", `
spec.validations: Required value: validations or auditAnnotations must contain at least one item
spec.auditAnnotations: Required value: validations or auditAnnotations must contain at least one item`},
		{"no constraints", "spec.matchConstraints: null", "spec.matchConstraints: Required value"},
		{"constraints without rules", "spec.matchConstraints.resourceRules: []", "spec.matchConstraints.resourceRules: Required value"},
		{"parameter without a kind", "spec.paramKind.kind: ''", "spec.paramKind.kind: Required value"},
		{"parameter without a version", "spec.paramKind.apiVersion: ''", "spec.paramKind.apiVersion: Required value"},
		{"failure policy", "spec.failurePolicy: Moon", `spec.failurePolicy: Unsupported value: "Moon": supported values: "Fail", "Ignore"`},
		{"empty expression", "spec.validations.0.expression: ''", "spec.validations[0].expression: Required value: expression is not specified"},
		{"expression that does not compile", "spec.validations.0.expression: 'object.'", `spec.validations[0].expression: Invalid value: "object.": compilation failed: ERROR: <input>:1:8: Syntax error: no viable alternative at input '.'`},
		{"expression of another type", "spec.validations.0.expression: '1'", `spec.validations[0].expression: Invalid value: "1": must evaluate to bool but got int`},
		{"unknown variable", "spec.validations.0.expression: moon", `spec.validations[0].expression: Invalid value: "moon": compilation failed: ERROR: <input>:1:1: undeclared reference to 'moon' (in container '')`},
		{"message over two lines", `spec.validations.0.message: "a\nb"`, `spec.validations[0].message: Invalid value: "a\nb": must not contain line breaks`},
		{"message of another type", "spec.validations.0.messageExpression: '1'", `spec.validations[0].messageExpression: Invalid value: "1": must evaluate to string but got int`},
		{"reason", "spec.validations.0.reason: Moon", `spec.validations[0].reason: Unsupported value: "Moon": supported values: "Forbidden", "Invalid", "RequestEntityTooLarge"`},
		{"variable that is no name", "spec.variables.0.name: 1a", `
spec.variables[0].name: Invalid value: "1a": must be a valid CEL identifier
spec.validations[0].expression: Invalid value: "variables.count <= 5": compilation failed: ERROR: <input>:1:10: undefined field 'count'`},
		{"annotation twice", "spec.auditAnnotations: [{key: k, valueExpression: \"'v'\"}, {key: k, valueExpression: \"'v'\"}]", `spec.auditAnnotations[1].key: Duplicate value: "k"`},
		{"annotation of another type", "spec.auditAnnotations.0.valueExpression: '1'", `spec.auditAnnotations[0].valueExpression: Invalid value: "1": must evaluate to one of [string null_type] but got int`},
		{"condition that does not compile", "spec.matchConditions: [{name: c, expression: 'object.'}]", `spec.matchConditions[0].expression: Invalid value: "object.": compilation failed: ERROR: <input>:1:8: Syntax error: no viable alternative at input '.'`},
		{"parameters in a condition", "spec.matchConditions: [{name: c, expression: 'params.data.a == \"b\"'}]", ""},
	})
	validatingPolicies().Defaults(t, []kindtest.Case{{"spec", "", `
spec.failurePolicy: Fail
spec.matchConstraints.matchPolicy: Equivalent
spec.matchConstraints.namespaceSelector: {}
spec.matchConstraints.resourceRules.0.scope: '*'
metadata.generation: 1`}})
	validatingPolicies().Row(t, []kindtest.Case{{"with parameters", "", "a | 1 | v1/ConfigMap | <unknown>"}, {"without", "spec.paramKind: null", "a | 1 | <unset> | <unknown>"}})
	status := validatingPolicies()
	status.Subresource = "status"
	status.Update(t, []kindtest.Case{{"warning without a field", "status: {typeChecking: {expressionWarnings: [{fieldRef: '', warning: ''}]}}", `
status.typeChecking.expressionWarnings[0].warning: Required value
status.typeChecking.expressionWarnings[0].fieldRef: Required value`}})
}

func TestPolicyBindingValidation(t *testing.T) {
	t.Parallel()
	k := registered("ValidatingAdmissionPolicyBinding", "spec: {policyName: p, validationActions: [Deny], paramRef: {name: a, parameterNotFoundAction: Deny}}")
	k.Create(t, []kindtest.Case{
		{"no policy", "spec.policyName: ''", "spec.policyName: Required value"},
		{"no actions", "spec.validationActions: []", "spec.validationActions: Required value"},
		{"denial and warning", "spec.validationActions: [Deny, Warn]", `spec.validationActions: Invalid value: ["Deny","Warn"]: must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)`},
		{"unknown action", "spec.validationActions: [Moon]", `spec.validationActions[0]: Unsupported value: "Moon": supported values: "Audit", "Deny", "Warn"`},
		{"action twice", "spec.validationActions: [Audit, Audit]", `spec.validationActions[1]: Duplicate value: "Audit"`},
		{"parameters by name and selector", "spec.paramRef.selector: {}", `
spec.paramRef.name: Forbidden: name and selector are mutually exclusive
spec.paramRef.selector: Forbidden: name and selector are mutually exclusive`},
		{"parameters of no name", "spec.paramRef.name: ''", "spec.paramRef: Required value: one of name or selector must be specified"},
		{"parameters without an action", "spec.paramRef.parameterNotFoundAction: null", "spec.paramRef.parameterNotFoundAction: Required value"},
	})
}

func TestMutatingPolicyValidation(t *testing.T) {
	t.Parallel()
	k := registered("MutatingAdmissionPolicy", `
spec:
  reinvocationPolicy: Never
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], resources: [configmaps], operations: [CREATE]}]}
  mutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: "Object{metadata: Object.metadata{labels: {'a': 'b'}}}"}}]`)
	k.Create(t, []kindtest.Case{
		{"no mutations", "spec.mutations: []", "spec.mutations: Required value: mutations must contain at least one item"},
		{"no constraints", "spec.matchConstraints: null", "spec.matchConstraints: Required value"},
		{"reinvocation policy", "spec.reinvocationPolicy: Moon", `spec.reinvocationPolicy: Unsupported value: "Moon": supported values: "IfNeeded", "Never"`},
		{"patch of an unknown type", "spec.mutations.0.patchType: Moon", `spec.mutations[0].patchType: Unsupported value: "Moon": supported values: "ApplyConfiguration", "JSONPatch"`},
		{"patch of another type", "spec.mutations.0: {patchType: JSONPatch, applyConfiguration: {expression: 'Object{}'}}", `
spec.mutations[0].jsonPatch: Required value: must be specified when patchType is JSONPatch
spec.mutations[0].applyConfiguration: Invalid value: "{applyConfiguration}": must not be specified when patchType is JSONPatch`},
		{"empty expression", "spec.mutations.0.applyConfiguration.expression: ''", "spec.mutations[0].applyConfiguration.expression: Required value"},
		{"expression that does not compile", "spec.mutations.0.applyConfiguration.expression: 'Object{'", `spec.mutations[0].applyConfiguration.expression: Invalid value: "Object{": compilation failed: ERROR: <input>:1:8: Syntax error: mismatched input '<EOF>' expecting {'}', ',', '?', IDENTIFIER, ESC_IDENTIFIER}`},
		{"expression of another type", "spec.mutations.0.applyConfiguration.expression: '1'", `spec.mutations[0].applyConfiguration.expression: Invalid value: "1": must evaluate to Object but got int`},
	})
	binding := registered("MutatingAdmissionPolicyBinding", "spec: {policyName: p}")
	binding.Create(t, []kindtest.Case{{"no policy", "spec.policyName: ''", "spec.policyName: Required value"}, {"parameters of no name", "spec.paramRef: {parameterNotFoundAction: Deny}", "spec.paramRef: Required value: one of name or selector must be specified"}})
}
