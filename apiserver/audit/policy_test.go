// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package audit_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/steer-dev/steer/apiserver/audit"
	"github.com/steer-dev/steer/apiserver/auth"
)

// header begins the policies of tests.
const header = "apiVersion: audit.k8s.io/v1\nkind: Policy\n"

// logOf returns a log whose lines go to a buffer.
func logOf(t *testing.T, policy string) (*audit.Log, *bytes.Buffer) {
	t.Helper()
	p, err := audit.ParsePolicy([]byte(header + policy))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	l, err := audit.NewLog(audit.Options{Policy: p, Out: &out})
	if err != nil {
		t.Fatal(err)
	}
	return l, &out
}

// events reads the lines of a log.
func events(t *testing.T, out *bytes.Buffer) []auditv1.Event {
	t.Helper()
	var all []auditv1.Event
	for line := range strings.Lines(out.String()) {
		var e auditv1.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		all = append(all, e)
	}
	return all
}

// record sends a request of a user through the stages of an event.
func record(t *testing.T, l *audit.Log, a *auth.Attributes, answer func(w http.ResponseWriter, e *audit.Event)) {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, "/api/v1/namespaces/n/pods?limit=1", nil)
	w, r, e := l.Receive(httptest.NewRecorder(), r, time.Now())
	if audit.From(r.Context()) != e {
		t.Error("the context of the request has another event")
	}
	if err := e.Decide(a, a.Verb == "watch"); err != nil {
		t.Fatal(err)
	}
	answer(w, e)
	e.Complete()
}

func TestPolicyDecidesByTheFirstRuleThatFits(t *testing.T) {
	t.Parallel()
	jane := &auth.User{Name: "jane", Groups: []string{"dev"}}
	pods := auth.Attributes{User: jane, Verb: "get", ResourceRequest: true, Version: "v1", Resource: "pods", Namespace: "team", Name: "p", Path: "/api/v1/namespaces/n/pods/p"}
	with := func(edit func(*auth.Attributes)) *auth.Attributes {
		a := pods
		edit(&a)
		return &a
	}
	status := with(func(a *auth.Attributes) { a.Subresource = "status" })
	deployments := with(func(a *auth.Attributes) { a.Group, a.Resource = "apps", "deployments" })
	metrics := &auth.Attributes{User: jane, Verb: "get", Path: "/metrics/slis"}
	for _, test := range []struct {
		rule string
		of   *auth.Attributes
		want bool
	}{
		{"", &pods, true},
		{"", metrics, true},
		{"users: [jane]", &pods, true},
		{"users: [joe]", &pods, false},
		{"users: [jane]", with(func(a *auth.Attributes) { a.User = nil }), false},
		{"userGroups: [ops, dev]", &pods, true},
		{"userGroups: [ops]", &pods, false},
		{"verbs: [get]", &pods, true},
		{"verbs: [list]", &pods, false},
		{"namespaces: [team]", &pods, true},
		{"namespaces: ['']", &pods, false},
		{"namespaces: ['']", with(func(a *auth.Attributes) { a.Namespace = "" }), true},
		{"namespaces: ['']", metrics, false},
		{"resources: [{group: ''}]", &pods, true},
		{"resources: [{group: ''}]", deployments, false},
		{"resources: [{group: '*', resources: [deployments]}]", deployments, true},
		{"resources: [{group: '', resources: [pods]}]", &pods, true},
		{"resources: [{group: '', resources: [pods]}]", status, false},
		{"resources: [{group: '', resources: [pods/status]}]", status, true},
		{"resources: [{group: '', resources: [pods/log]}]", status, false},
		{"resources: [{group: '', resources: ['pods/*']}]", status, true},
		{"resources: [{group: '', resources: ['nodes/*']}]", status, false},
		{"resources: [{group: '', resources: ['*/status']}]", status, true},
		{"resources: [{group: '', resources: ['*/status']}]", &pods, false},
		{"resources: [{group: '', resources: ['*']}]", status, true},
		{"resources: [{group: '', resources: [pods], resourceNames: [p]}]", &pods, true},
		{"resources: [{group: '', resources: [pods], resourceNames: [q]}]", &pods, false},
		{"resources: [{group: ''}]", metrics, false},
		{"nonResourceURLs: ['/metrics*']", metrics, true},
		{"nonResourceURLs: [/metrics]", metrics, false},
		{"nonResourceURLs: ['*']", &pods, false},
	} {
		l, out := logOf(t, "rules:\n- {level: Metadata, "+test.rule+"}\n")
		record(t, l, test.of, func(w http.ResponseWriter, _ *audit.Event) { w.WriteHeader(http.StatusOK) })
		if got := out.Len() > 0; got != test.want {
			t.Errorf("{%s} of %+v: recorded %t, want %t", test.rule, test.of, got, test.want)
		}
	}
	l, out := logOf(t, "rules: [{level: None, users: [jane]}, {level: Metadata}]")
	record(t, l, &pods, func(http.ResponseWriter, *audit.Event) {})
	if out.Len() > 0 {
		t.Errorf("the second rule decides: %s", out)
	}
}

func TestPolicyNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                      `it is a "" of "", want a Policy of audit.k8s.io/v1`,
		"kind: Policy\napiVersion: v1":          `it is a "Policy" of "v1"`,
		header:                                  "rules: there are none",
		header + "rules: [{}]":                  "rules[0].level: Required value",
		header + "rules: [{level: All}]":        `rules[0].level: Unsupported value: "All"`,
		header + "rules: [{level: None}]\nx: 1": `unknown field "x"`,
		header + "rules: [{level: None, nonResourceURLs: [/x], namespaces: [team]}]": "rules cannot apply to both regular resources and non-resource URLs",
		header + "omitStages: [Late]\nrules: [{level: None}]":                        "allowed stages are RequestReceived,ResponseStarted,ResponseComplete,Panic",
	} {
		if _, err := audit.ParsePolicy([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
