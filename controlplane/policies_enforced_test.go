// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/steer-dev/steer/controlplane"
)

const registrations = "/apis/admissionregistration.k8s.io/v1/"

// policy creates a policy and its binding. kind is "validating" or "mutating", spec and
// bound are in JSON or the flow style of YAML, without braces.
func (a *api) policy(kind, name, about, spec, bound string) {
	a.tb.Helper()
	upper := strings.ToUpper(kind[:1]) + kind[1:]
	a.must("POST", registrations+kind+"admissionpolicies", fmt.Sprintf(`{apiVersion: admissionregistration.k8s.io/v1, kind: %sAdmissionPolicy, metadata: {name: %s},
		spec: {matchConstraints: {resourceRules: [{operations: ["*"], apiGroups: ["*"], apiVersions: ["*"], resources: [%s]}]}, %s}}`, upper, name, about, spec))
	a.bind(kind, name, bound)
}

func (a *api) bind(kind, name, bound string) {
	a.tb.Helper()
	upper := strings.ToUpper(kind[:1]) + kind[1:]
	a.must("POST", registrations+kind+"admissionpolicybindings", fmt.Sprintf(
		`{apiVersion: admissionregistration.k8s.io/v1, kind: %sAdmissionPolicyBinding, metadata: {name: %s}, spec: {policyName: %s, %s}}`, upper, name, name, bound))
}

func mapOf(name, rest string) string {
	return fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {name: %s}, %s}`, name, rest)
}

// has fails the test unless an answer contains a text.
func has(t *testing.T, answer, text string) {
	t.Helper()
	if !strings.Contains(answer, text) {
		t.Errorf("answered %s, want one with %q", answer, text)
	}
}

func TestPoliciesAreInForceWithTheAnswerToTheirBinding(t *testing.T) {
	t.Parallel()
	_, api := newPlane(t)
	const deny = "validationActions: [Deny]"
	for i := range 5 {
		name := fmt.Sprint("p", i)
		api.policy("validating", name, "configmaps", fmt.Sprintf(`validations: [{expression: "object.metadata.name != '%s'"}]`, name), deny)
		has(t, api.refused("POST", configMaps, mapOf(name, "data: {}")), "ValidatingAdmissionPolicy '"+name+"' with binding '"+name+"' denied request: failed expression:")
		api.must("DELETE", registrations+"validatingadmissionpolicybindings/"+name, "")
		api.must("POST", configMaps, mapOf(name, "data: {}"))
	}
	// A binding may come before its policy.
	api.bind("validating", "late", deny)
	api.must("POST", configMaps, mapOf("early", "data: {}"))
	api.must("POST", registrations+"validatingadmissionpolicies", `{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy, metadata: {name: late},
		spec: {matchConstraints: {resourceRules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [configmaps]}]}, validations: [{expression: "false", message: "too late"}]}}`)
	has(t, api.refused("POST", configMaps, mapOf("l", "data: {}")), "too late")
	api.must("PATCH", registrations+"validatingadmissionpolicies/late", `{"spec": {"validations": [{"expression": "true"}]}}`)
	api.must("POST", configMaps, mapOf("l", "data: {}"))
}

func TestPoliciesReadParametersAsTheyAre(t *testing.T) {
	t.Parallel()
	_, api := newPlane(t)
	const spec = `paramKind: {apiVersion: v1, kind: ConfigMap}, validations: [{expression: "object.data.n < params.data.most", messageExpression: "'most is ' + params.data.most"}]`
	api.policy("validating", "limit", "secrets", strings.ReplaceAll(spec, "object.data.n", "object.type"),
		`paramRef: {name: limit, namespace: default, parameterNotFoundAction: Deny}, validationActions: [Deny]`)
	secret := func(kind string) string {
		return fmt.Sprintf(`{apiVersion: v1, kind: Secret, metadata: {generateName: s-}, type: %q}`, kind)
	}
	const secrets = "/api/v1/namespaces/default/secrets"
	has(t, api.refused("POST", secrets, secret("a")), "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction")
	api.must("POST", configMaps, mapOf("limit", "data: {most: b}"))
	api.must("POST", secrets, secret("a"))
	has(t, api.refused("POST", secrets, secret("c")), "most is b")
	api.must("PATCH", configMaps+"/limit", `{"data": {"most": "d"}}`)
	api.must("POST", secrets, secret("c"))
	api.must("DELETE", configMaps+"/limit", "")
	has(t, api.refused("POST", secrets, secret("a")), "no params found")
}

func TestPoliciesReadParametersOfKindsThatComeAndGo(t *testing.T) {
	t.Parallel()
	_, api := newPlane(t)
	api.policy("validating", "sized", "configmaps", `paramKind: {apiVersion: example.com/v1, kind: Limit}, validations: [{expression: "size(object.data) <= params.most"}]`,
		`paramRef: {selector: {matchLabels: {use: "yes"}}, parameterNotFoundAction: Allow}, validationActions: [Deny]`)
	has(t, api.refused("POST", configMaps, mapOf("a", "data: {a: b}")), "failed to find resource referenced by paramKind: 'example.com/v1, Kind=Limit'")
	api.must("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: limits.example.com},
		spec: {group: example.com, scope: Namespaced, names: {plural: limits, singular: limit, kind: Limit, listKind: LimitList},
		versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {most: {type: integer, default: 1}}}}}]}}`)
	api.must("POST", configMaps, mapOf("a", "data: {a: b, c: d}")) // no parameters: allowed
	const limits = "/apis/example.com/v1/namespaces/default/limits"
	limit := func(name, use string) string {
		return fmt.Sprintf(`{apiVersion: example.com/v1, kind: Limit, metadata: {name: %s, labels: {use: %q}}}`, name, use)
	}
	api.must("POST", limits, limit("unused", "no"))
	api.must("POST", configMaps, mapOf("b", "data: {a: b, c: d}"))
	api.must("POST", limits, limit("used", "yes"))
	has(t, api.refused("POST", configMaps, mapOf("c", "data: {a: b, c: d}")), "size(object.data) <= params.most")
	api.must("DELETE", limits+"/used", "")
	api.must("POST", configMaps, mapOf("c", "data: {a: b, c: d}"))
}

// The objects of a kind that another API server serves are not in the store.
func TestPoliciesRefuseParametersOfAggregatedKinds(t *testing.T) {
	t.Parallel()
	_, api := newPlane(t)
	api.must("POST", "/apis/apiregistration.k8s.io/v1/apiservices", `{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v1.limits.example.org},
		spec: {group: limits.example.org, version: v1, groupPriorityMinimum: 100, versionPriority: 10, insecureSkipTLSVerify: true, service: {namespace: default, name: limits}}}`)
	api.policy("validating", "aggregated", "configmaps", `paramKind: {apiVersion: limits.example.org/v1, kind: Limit}, validations: [{expression: "params.most > 1"}]`,
		"validationActions: [Deny], paramRef: {name: one, namespace: default, parameterNotFoundAction: Deny}")
	has(t, api.refused("POST", configMaps, mapOf("a", "data: {}")), "failed to find resource referenced by paramKind: 'limits.example.org/v1, Kind=Limit'")
}

func TestPoliciesThatCostTooMuchFollowTheirFailurePolicy(t *testing.T) {
	t.Parallel()
	const costly = `validations: [{expression: "object.data.all(a, object.data.all(b, object.data.all(c, object.data.all(d, a+b+c+d != ''))))"}], failurePolicy: `
	var data []string
	for i := range 60 {
		data = append(data, fmt.Sprintf("key%d: x", i))
	}
	for failure, want := range map[string]string{"Fail": "operation cancelled: actual cost limit exceeded", "Ignore": ""} {
		t.Run(failure, func(t *testing.T) {
			t.Parallel()
			_, api := newPlane(t)
			api.policy("validating", "costly", "configmaps", costly+failure, "validationActions: [Deny]")
			body := mapOf("big", "data: {"+strings.Join(data, ", ")+"}")
			if want == "" {
				api.must("POST", configMaps, body)
				return
			}
			has(t, api.refused("POST", configMaps, body), want)
		})
	}
}

func TestPoliciesChangeObjectsBeforeTheyAreDefaultedAndValidated(t *testing.T) {
	t.Parallel()
	_, api := newPlane(t)
	api.policy("mutating", "ports", "services", `reinvocationPolicy: Never, mutations: [
		{patchType: ApplyConfiguration, applyConfiguration: {expression: "Object{metadata: Object.metadata{labels: {'team': request.userInfo.username}}}"}},
		{patchType: JSONPatch, jsonPatch: {expression: "[JSONPatch{op: 'add', path: '/spec/ports/-', value: Object.spec.ports{name: 'metrics', port: 9090}}]"}}]`, "")
	got := api.must("POST", "/api/v1/namespaces/default/services", `{apiVersion: v1, kind: Service, metadata: {name: s}, spec: {ports: [{name: web, port: 80}]}}`)
	ports, _, _ := unstructured.NestedSlice(got.Object, "spec", "ports")
	if len(ports) != 2 || ports[1].(map[string]any)["protocol"] != "TCP" || ports[1].(map[string]any)["targetPort"] != int64(9090) || got.GetLabels()["team"] == "" {
		t.Errorf("created %v with labels %v", ports, got.GetLabels())
	}
	api.policy("mutating", "wrong", "configmaps", `reinvocationPolicy: Never, mutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: "Object{metadata: Object.metadata{labels: {'a b': 'c'}}}"}}]`, "")
	has(t, api.refused("POST", configMaps, mapOf("a", "data: {}")), "metadata.labels: Invalid value")
}

func TestPoliciesLeaveParametersAsTheyAre(t *testing.T) {
	t.Parallel()
	_, api := newPlane(t)
	api.must("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: boxes.example.com},
		spec: {group: example.com, scope: Namespaced, names: {plural: boxes, singular: box, kind: Box, listKind: BoxList},
		versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {inner: {type: object, properties: {a: {type: string}, b: {type: string, default: set}}}}}}}]}}`)
	const boxes = "/apis/example.com/v1/namespaces/default/boxes"
	api.must("POST", boxes, `{apiVersion: example.com/v1, kind: Box, metadata: {name: model}, inner: {a: x}}`)
	api.policy("mutating", "copied", "boxes", `paramKind: {apiVersion: example.com/v1, kind: Box}, reinvocationPolicy: IfNeeded, mutations: [
		{patchType: JSONPatch, jsonPatch: {expression: "[JSONPatch{op: 'add', path: '/inner', value: params.inner}, JSONPatch{op: 'add', path: '/inner/a', value: object.metadata.name}]"}}]`,
		"paramRef: {name: model, namespace: default, parameterNotFoundAction: Deny}")
	for _, name := range []string{"one", "two"} {
		got := api.must("POST", boxes, `{apiVersion: example.com/v1, kind: Box, metadata: {name: `+name+`}}`)
		if a, _, _ := unstructured.NestedString(got.Object, "inner", "a"); a != name {
			t.Errorf("%s has %q", name, a)
		}
	}
	model := api.must("GET", boxes+"/model", "")
	if a, _, _ := unstructured.NestedString(model.Object, "inner", "a"); a != "x" {
		t.Errorf("the parameter has become %v", model.Object)
	}
}

func TestPoliciesAuditToTheLog(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	_, api := planeOf(t, controlplane.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	api.policy("validating", "watched", "configmaps", `validations: [{expression: "false", message: refused}], auditAnnotations: [{key: name, valueExpression: "string(object.metadata.name)"}]`, "validationActions: [Audit]")
	api.must("POST", configMaps, mapOf("seen", "data: {}"))
	for _, want := range []string{`annotation=validation.policy.admission.k8s.io/validation_failure`, `annotation=watched/name value=seen`, `\"binding\":\"watched\"`} {
		has(t, log.String(), want)
	}
}

func TestPoliciesAreMeasured(t *testing.T) {
	t.Parallel()
	metrics := prometheus.NewRegistry()
	_, api := planeOf(t, controlplane.Options{Metrics: metrics})
	api.policy("validating", "none", "configmaps", `matchConditions: [{name: all, expression: "true"}], validations: [{expression: "false"}]`, "validationActions: [Deny]")
	api.policy("validating", "excluded", "configmaps", `matchConditions: [{name: none, expression: "false"}], validations: [{expression: "false"}]`, "validationActions: [Deny]")
	api.policy("mutating", "label", "secrets", `reinvocationPolicy: Never, mutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: "Object{metadata: Object.metadata{labels: {'a': 'b'}}}"}}]`, "")
	api.refused("POST", configMaps, mapOf("a", "data: {}"))
	api.must("POST", "/api/v1/namespaces/default/secrets", `{apiVersion: v1, kind: Secret, metadata: {name: a}}`)
	families, err := metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				found[f.GetName()+" "+l.GetName()+"="+l.GetValue()] = true
			}
		}
	}
	for _, want := range []string{
		"apiserver_validating_admission_policy_check_total enforcement_action=deny", "apiserver_validating_admission_policy_check_total policy=none",
		"apiserver_validating_admission_policy_check_duration_seconds error_type=invalid_error",
		"apiserver_admission_match_condition_evaluation_seconds kind=policy",
		"apiserver_mutating_admission_policy_check_total policy_binding=label", "apiserver_mutating_admission_policy_check_duration_seconds error_type=no_error",
	} {
		if !found[want] {
			t.Errorf("there is no %s", want)
		}
	}
}

// TestPoliciesAreReplacedWhileWritesAreInFlight checks under the race detector that each
// write is decided by a policy that was in force.
func TestPoliciesAreReplacedWhileWritesAreInFlight(t *testing.T) {
	t.Parallel()
	_, api := newPlane(t)
	api.policy("validating", "turns", "configmaps", `variables: [{name: called, expression: "object.metadata.name"}], validations: [{expression: "variables.called != 'never'", message: zero}]`, "validationActions: [Deny]")
	done := make(chan struct{})
	var writers sync.WaitGroup
	for i := range 2 {
		writers.Go(func() {
			for k := 0; ; k++ {
				select {
				case <-done:
					return
				default:
				}
				if code, body := api.do("POST", configMaps+"?dryRun=All", mapOf(fmt.Sprintf("w%d-%d", i, k), "data: {}")); code != 201 {
					t.Errorf("%d %s", code, body)
					return
				}
				if code, body := api.do("POST", configMaps+"?dryRun=All", mapOf("never", "data: {}")); code != 422 {
					t.Errorf("%d %s", code, body)
					return
				}
			}
		})
	}
	for i := range 20 {
		api.must("PATCH", registrations+"validatingadmissionpolicies/turns", fmt.Sprintf(`{"spec": {"validations": [{"expression": "variables.called != 'never'", "message": "turn %d"}]}}`, i))
	}
	close(done)
	writers.Wait()
}

// Policies are excluded by resource, as in kube-apiserver: the kind TokenRequest is of the
// group of TokenReview, but serviceaccounts/token is evaluated.
func TestPoliciesAreEvaluatedForTokensOfServiceAccounts(t *testing.T) {
	t.Parallel()
	_, api := newPlane(t)
	const (
		tokens = "/api/v1/namespaces/default/serviceaccounts/default/token"
		token  = `{apiVersion: authentication.k8s.io/v1, kind: TokenRequest, spec: {audiences: [a], expirationSeconds: %d}}`
	)
	everything := func(name string) string {
		return `{apiVersion: admissionregistration.k8s.io/v1, kind: ` + name + `, metadata: {name: short}, spec: {matchConstraints: {resourceRules: [
			{operations: ["*"], apiGroups: ["*"], apiVersions: ["*"], resources: ["serviceaccounts/token", "tokenreviews", "selfsubjectreviews", "subjectaccessreviews",
			"localsubjectaccessreviews", "selfsubjectaccessreviews", "selfsubjectrulesreviews"]}]}, `
	}
	api.must("POST", registrations+"validatingadmissionpolicies", everything("ValidatingAdmissionPolicy")+
		`validations: [{expression: "object.kind == 'TokenRequest' && object.spec.expirationSeconds <= 3600", message: "an hour at most"}]}}`)
	api.bind("validating", "short", "validationActions: [Deny]")
	has(t, api.refused("POST", tokens, fmt.Sprintf(token, 7200)), "an hour at most")
	api.must("POST", tokens, fmt.Sprintf(token, 3600))

	api.must("POST", registrations+"mutatingadmissionpolicies", everything("MutatingAdmissionPolicy")+
		`reinvocationPolicy: Never, mutations: [{patchType: JSONPatch, jsonPatch: {expression: "[JSONPatch{op: 'replace', path: '/spec/expirationSeconds', value: 1800}]"}}]}}`)
	api.bind("mutating", "short", "paramRef: null")
	answer := api.must("POST", tokens, fmt.Sprintf(token, 7200))
	seconds, _, err := unstructured.NestedInt64(answer.Object, "spec", "expirationSeconds")
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "seconds of the token", int64(1800), seconds)

	for path, review := range map[string]string{
		"/apis/authentication.k8s.io/v1/tokenreviews":                                "{apiVersion: authentication.k8s.io/v1, kind: TokenReview, spec: {token: x}}",
		"/apis/authentication.k8s.io/v1/selfsubjectreviews":                          "{apiVersion: authentication.k8s.io/v1, kind: SelfSubjectReview}",
		"/apis/authorization.k8s.io/v1/selfsubjectrulesreviews":                      "{apiVersion: authorization.k8s.io/v1, kind: SelfSubjectRulesReview, spec: {namespace: default}}",
		"/apis/authorization.k8s.io/v1/selfsubjectaccessreviews":                     "{apiVersion: authorization.k8s.io/v1, kind: SelfSubjectAccessReview, spec: {nonResourceAttributes: {path: /, verb: get}}}",
		"/apis/authorization.k8s.io/v1/subjectaccessreviews":                         "{apiVersion: authorization.k8s.io/v1, kind: SubjectAccessReview, spec: {user: jane, nonResourceAttributes: {path: /, verb: get}}}",
		"/apis/authorization.k8s.io/v1/namespaces/default/localsubjectaccessreviews": "{apiVersion: authorization.k8s.io/v1, kind: LocalSubjectAccessReview, metadata: {namespace: default}, spec: {user: jane, resourceAttributes: {namespace: default, verb: get, resource: pods}}}",
	} {
		api.must("POST", path, review)
	}
}
