// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/steer-dev/steer/apiserver/audit"
	"github.com/steer-dev/steer/controlplane"
)

// trail are the events of a plane.
type trail struct {
	t   *testing.T
	mu  sync.Mutex
	all []auditv1.Event
}

// Write implements [io.Writer]: it is called with one event.
func (l *trail) Write(line []byte) (int, error) {
	var e auditv1.Event
	if err := json.Unmarshal(line, &e); err != nil {
		l.t.Errorf("%s: %v", line, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, e)
	return len(line), nil
}

// last returns the event of the last request for a path, which has been answered.
func (l *trail) last(verb, uri string) auditv1.Event {
	l.t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range slices.Backward(l.all) {
		if e.Verb == verb && e.RequestURI == uri && e.Stage != auditv1.StageRequestReceived {
			return e
		}
	}
	l.t.Fatalf("no event of %s %s among %d", verb, uri, len(l.all))
	return auditv1.Event{}
}

func auditedOptions(t *testing.T, rules string) (controlplane.Options, *trail) {
	t.Helper()
	policy, err := audit.ParsePolicy([]byte("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [" + rules + "]"))
	if err != nil {
		t.Fatal(err)
	}
	events := &trail{t: t}
	log, err := audit.NewLog(audit.Options{Policy: policy, Out: events})
	if err != nil {
		t.Fatal(err)
	}
	return controlplane.Options{ManualControllers: true, Audit: log}, events
}

func TestAuditRecordsRequestsWithTheirObjects(t *testing.T) {
	t.Parallel()
	options, events := auditedOptions(t, "{level: RequestResponse}")
	plane, api := planeOf(t, options)
	const one = configMaps + "/a"
	text := func(object any) string {
		t.Helper()
		out, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	api.must("POST", configMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: v}}")
	created := events.last("create", configMaps)
	if ref := created.ObjectRef; ref == nil || ref.Name != "a" || ref.Namespace != "default" || ref.Resource != "configmaps" || created.ResponseStatus.Code != 201 ||
		created.User.Username != "kubernetes-admin" || created.Annotations["authorization.k8s.io/decision"] != "allow" || created.AuditID == "" {
		t.Errorf("the creation: %s", text(created))
	}
	for verb, test := range map[string]struct{ method, uri, body, request, response string }{
		"create": {"POST", configMaps, "", `"data":{"k":"v"}`, `"uid":`},
		"get":    {"GET", one, "", "null", `"kind":"ConfigMap"`},
		"list":   {"GET", configMaps, "", "null", `"kind":"ConfigMapList"`},
		"update": {"PUT", one, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: w}}", `"data":{"k":"w"}`, `"data":{"k":"w"}`},
		"patch":  {"PATCH", one, "{data: {k: x}}", `{"data":{"k":"x"}}`, `"data":{"k":"x"}`},
	} {
		if test.body != "" || test.method == "GET" {
			api.must(test.method, test.uri, test.body)
		}
		e := events.last(verb, test.uri)
		if request, response := text(e.RequestObject), text(e.ResponseObject); !strings.Contains(request, test.request) || !strings.Contains(response, test.response) {
			t.Errorf("%s: sent %s, got %s; want %s and %s", verb, request, response, test.request, test.response)
		}
	}
	// What a client gets as protobuf or as a Table is recorded as JSON, too.
	for accept, want := range map[string]string{"application/vnd.kubernetes.protobuf": `{"kind":"ConfigMapList"`, "application/json;as=Table;v=v1;g=meta.k8s.io": `"kind":"Table"`} {
		if code, answer := api.send("GET", configMaps, "", map[string]string{"Accept": accept}); code != 200 {
			t.Fatalf("%s: %d %s", accept, code, answer)
		}
		if got := text(events.last("list", configMaps).ResponseObject); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", accept, got, want)
		}
	}
	code, _ := api.send("DELETE", one, `{"kind":"DeleteOptions","apiVersion":"v1","propagationPolicy":"Orphan"}`, map[string]string{"Content-Type": "application/json", "Impersonate-User": "jane"})
	e := events.last("delete", one)
	if code != 403 || e.ResponseStatus.Code != 403 || e.ImpersonatedUser == nil || e.ImpersonatedUser.Username != "jane" || e.User.Username != "kubernetes-admin" ||
		e.ResponseStatus.Reason != "Forbidden" || e.Annotations["authorization.k8s.io/decision"] != "forbid" {
		t.Errorf("refused with %d: %s", code, text(e))
	}
	if code, _ := api.send("DELETE", one, `{"kind":"DeleteOptions","apiVersion":"v1","propagationPolicy":"Background"}`, map[string]string{"Content-Type": "application/json"}); code != 200 {
		t.Errorf("the deletion: %d", code)
	}
	if e := events.last("delete", one); !strings.Contains(text(e.RequestObject), `"propagationPolicy":"Background"`) || e.ResponseStatus.Status != "Success" {
		t.Errorf("the deletion: %s", text(e))
	}
	if code, name := whoAmI(t, plane, nil, http.Header{"Authorization": {"Bearer no"}}); code != 401 {
		t.Fatalf("a wrong token is of %s (%d)", name, code)
	}
	if e := events.last("create", "/apis/authentication.k8s.io/v1/selfsubjectreviews"); e.Stage != auditv1.StageResponseStarted || e.ResponseStatus.Code != 401 || e.User.Username != "" {
		t.Errorf("a wrong token: %s", text(e))
	}
}

func TestAuditHasTheAnnotationsOfAdmission(t *testing.T) {
	t.Parallel()
	options, events := auditedOptions(t, "{level: Request, resources: [{group: '', resources: [configmaps, pods]}]}")
	_, api, h := hookedPlaneOf(t, options)
	h.on("/patches", patching(`[{"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}]`))
	h.on("/reads", func(*http.Request, *admissionv1.AdmissionRequest) (any, error) {
		return &admissionv1.AdmissionResponse{Allowed: true, AuditAnnotations: map[string]string{"seen": "yes", "not a name": "x"}}, nil
	})
	h.on("/fails", func(*http.Request, *admissionv1.AdmissionRequest) (any, error) { return nil, errors.New("gone") })
	const onPods = `{operations: ["*"], apiGroups: [""], apiVersions: [v1], resources: [pods]}`
	api.must("POST", mutatingPath, configuration(mutatingKind, "fails", onConfigMaps, "failurePolicy: Ignore"))
	api.must("POST", mutatingPath, configuration(mutatingKind, "others", onPods)) // it has a place, too
	api.must("POST", mutatingPath, configuration(mutatingKind, "patches", onConfigMaps))
	api.must("POST", validatePath, configuration(validatedKind, "reads", onConfigMaps))
	api.must("POST", "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies", `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: audited.example.com}
spec:
  matchConstraints: {resourceRules: [{operations: ["*"], apiGroups: [""], apiVersions: [v1], resources: [configmaps]}]}
  validations: [{expression: "false"}]
  auditAnnotations: [{key: name, valueExpression: "string(object.metadata.name)"}]`)
	api.must("POST", "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings", `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: audited}
spec: {policyName: audited.example.com, validationActions: [Audit]}`)
	api.must("POST", configMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}")
	got := events.last("create", configMaps).Annotations
	want := map[string]string{
		"authorization.k8s.io/decision":                                 "allow",
		"authorization.k8s.io/reason":                                   "",
		"failed-open.mutation.webhook.admission.k8s.io/round_0_index_0": "fails.example.com",
		"mutation.webhook.admission.k8s.io/round_0_index_0":             `{"configuration":"fails","webhook":"fails.example.com","mutated":false}`,
		"mutation.webhook.admission.k8s.io/round_0_index_2":             `{"configuration":"patches","webhook":"patches.example.com","mutated":true}`,
		"patch.webhook.admission.k8s.io/round_0_index_2":                `{"configuration":"patches","webhook":"patches.example.com","patch":[{"op":"add","path":"/metadata/labels","value":{"a":"b"}}],"patchType":"JSONPatch"}`,
		"reads.example.com/seen":                                        "yes",
		"audited.example.com/name":                                      "a",
		"validation.policy.admission.k8s.io/validation_failure":         `[{"message":"failed expression: false","policy":"audited.example.com","binding":"audited","expressionIndex":0,"validationActions":["Audit"]}]`,
	}
	if !maps.Equal(got, want) {
		for key := range want {
			if got[key] != want[key] {
				t.Errorf("%s: %q, want %q", key, got[key], want[key])
			}
		}
		t.Errorf("annotations %q", slices.Sorted(maps.Keys(got)))
	}
	api.must("POST", "/api/v1/namespaces", "{apiVersion: v1, kind: Namespace, metadata: {name: safe, labels: {pod-security.kubernetes.io/audit: baseline}}}")
	api.must("DELETE", mutatingPath+"/others", "")
	const pods = "/api/v1/namespaces/safe/pods"
	api.must("POST", pods, "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {hostNetwork: true, containers: [{name: c, image: i}]}}")
	got = events.last("create", pods).Annotations
	if enforced, violated := got["pod-security.kubernetes.io/enforce-policy"], got["pod-security.kubernetes.io/audit-violations"]; enforced != "privileged:latest" || violated != `would violate PodSecurity "baseline:latest": host namespaces (hostNetwork=true)` {
		t.Errorf("PodSecurity annotates %q and %q", enforced, violated)
	}
}
