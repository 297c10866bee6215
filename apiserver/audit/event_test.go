// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package audit_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/steer-dev/steer/apiserver/audit"
	"github.com/steer-dev/steer/apiserver/auth"
)

// stages are those of events, with their codes.
func stages(all []auditv1.Event) []string {
	var out []string
	for i := range all {
		code := 0
		if s := all[i].ResponseStatus; s != nil {
			code = int(s.Code)
		}
		out = append(out, fmt.Sprint(all[i].Stage, " ", code))
	}
	return out
}

func TestEventHasTheStagesOfItsRequest(t *testing.T) {
	t.Parallel()
	answered := func(w http.ResponseWriter, _ *audit.Event) {
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write([]byte("a"))
	}
	for _, test := range []struct {
		verb, policy string
		answer       func(http.ResponseWriter, *audit.Event)
		want         []string
	}{
		{"get", "", answered, []string{"RequestReceived 0", "ResponseComplete 201"}},
		{"watch", "", answered, []string{"RequestReceived 0", "ResponseStarted 201", "ResponseComplete 201"}},
		{"get", "omitStages: [RequestReceived]\n", answered, []string{"ResponseComplete 201"}},
		{"watch", "", func(w http.ResponseWriter, _ *audit.Event) { _, _ = w.Write(nil) }, []string{"RequestReceived 0", "ResponseStarted 200", "ResponseComplete 200"}},
		{"watch", "", func(http.ResponseWriter, *audit.Event) {}, []string{"RequestReceived 0", "ResponseStarted 200", "ResponseComplete 200"}},
		{"get", "", func(_ http.ResponseWriter, e *audit.Event) { e.Panicked("oh") }, []string{"RequestReceived 0", "Panic 500"}},
		{"watch", "", func(w http.ResponseWriter, e *audit.Event) { w.WriteHeader(http.StatusSwitchingProtocols) }, []string{"RequestReceived 0", "ResponseStarted 101", "ResponseComplete 101"}},
	} {
		l, out := logOf(t, test.policy+"rules: [{level: Metadata}]")
		record(t, l, &auth.Attributes{User: &auth.User{Name: "jane"}, Verb: test.verb, ResourceRequest: true, Resource: "pods"}, test.answer)
		if got := stages(events(t, out)); !slices.Equal(got, test.want) {
			t.Errorf("%s with %q: %q, want %q", test.verb, test.policy, got, test.want)
		}
	}
	l, out := logOf(t, "rules: [{level: Metadata}]")
	w, _, e := l.Receive(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/api", nil), time.Now())
	e.Refuse(&auth.Attributes{Verb: "get", Path: "/api"})
	w.WriteHeader(http.StatusUnauthorized)
	e.Complete()
	if got, want := stages(events(t, out)), []string{"ResponseStarted 401"}; !slices.Equal(got, want) {
		t.Errorf("without a user: %q, want %q", got, want)
	}
}

func TestEventHasAsMuchAsItsLevelSays(t *testing.T) {
	t.Parallel()
	const object = `{"metadata":{"name":"a","managedFields":[{"manager":"m"}]},"n":12345678901234567890}`
	const bare = `{"metadata":{"name":"a"},"n":12345678901234567890}`
	for _, test := range []struct{ policy, sent, got string }{
		{"rules: [{level: Metadata}]", "", ""},
		{"rules: [{level: Request}]", object, ""},
		{"rules: [{level: RequestResponse}]", object, object},
		{"omitManagedFields: true\nrules: [{level: RequestResponse}]", bare, bare},
		{"omitManagedFields: true\nrules: [{level: RequestResponse, omitManagedFields: false}]", object, object},
	} {
		l, out := logOf(t, test.policy)
		record(t, l, &auth.Attributes{Verb: "create"}, func(w http.ResponseWriter, e *audit.Event) {
			e.Request([]byte(object))
			e.Response([]byte(object))
			w.WriteHeader(http.StatusOK)
		})
		all := events(t, out)
		last := all[len(all)-1]
		var sent, got string
		if last.RequestObject != nil {
			sent = string(last.RequestObject.Raw)
		}
		if last.ResponseObject != nil {
			got = string(last.ResponseObject.Raw)
		}
		if sent != test.sent || got != test.got {
			t.Errorf("%s: sent %s, got %s; want %s and %s", test.policy, sent, got, test.sent, test.got)
		}
	}
}

func TestEventNamesWhoDidWhat(t *testing.T) {
	t.Parallel()
	l, out := logOf(t, "rules: [{level: Metadata}]")
	r := httptest.NewRequest(http.MethodPost, "/api/v1/namespaces/n/pods?dryRun=All", nil)
	r.Header.Set("User-Agent", "kubectl")
	r.Header.Set("X-Forwarded-For", "10.0.0.1")
	w, _, e := l.Receive(httptest.NewRecorder(), r, time.Now())
	e.SetID("id")
	if err := e.Decide(&auth.Attributes{
		User: &auth.User{Name: "jane", UID: "7", Groups: []string{"dev"}, Extra: map[string][]string{"k": {"v"}}},
		Verb: "create", ResourceRequest: true, Version: "v1", Resource: "pods", Namespace: "n",
	}, false); err != nil {
		t.Fatal(err)
	}
	e.Impersonates(&auth.User{Name: "joe"}, "impersonate:user-info")
	e.Authorized(auth.Allow, "by a role", nil)
	e.Authorized(auth.NoOpinion, "of the creation", nil) // it stays as it was
	w.WriteHeader(http.StatusCreated)
	e.Complete()
	all := events(t, out)
	got := all[len(all)-1]
	want := got // with its times
	want.Level, want.AuditID, want.Stage, want.Verb = auditv1.LevelMetadata, "id", auditv1.StageResponseComplete, "create"
	want.RequestURI, want.UserAgent, want.SourceIPs = "/api/v1/namespaces/n/pods?dryRun=All", "kubectl", []string{"10.0.0.1", "192.0.2.1"}
	want.User = authenticationv1.UserInfo{Username: "jane", UID: "7", Groups: []string{"dev"}, Extra: map[string]authenticationv1.ExtraValue{"k": {"v"}}}
	want.ImpersonatedUser = &authenticationv1.UserInfo{Username: "joe"}
	want.AuthenticationMetadata = &auditv1.AuthenticationMetadata{ImpersonationConstraint: "impersonate:user-info"}
	want.ObjectRef = &auditv1.ObjectReference{Resource: "pods", Namespace: "n", APIVersion: "v1"}
	want.Annotations = map[string]string{"authorization.k8s.io/decision": "allow", "authorization.k8s.io/reason": "by a role"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("event (-want +got):\n%s", diff)
	}
	if got.RequestReceivedTimestamp.IsZero() || got.StageTimestamp.Before(&got.RequestReceivedTimestamp) {
		t.Errorf("the request came at %v and ended at %v", got.RequestReceivedTimestamp, got.StageTimestamp)
	}
}

// full is a disk that is.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

func TestStrictLogRefusesWhatItCannotRecord(t *testing.T) {
	t.Parallel()
	p, err := audit.ParsePolicy([]byte(header + "rules: [{level: Metadata, verbs: [get]}]"))
	if err != nil {
		t.Fatal(err)
	}
	for _, strict := range []bool{false, true} {
		l, err := audit.NewLog(audit.Options{Policy: p, Out: full{}, Strict: strict})
		if err != nil {
			t.Fatal(err)
		}
		for verb, refuses := range map[string]bool{"get": strict, "list": false} {
			_, _, e := l.Receive(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil), time.Now())
			if err := e.Decide(&auth.Attributes{Verb: verb}, false); (err != nil) != refuses {
				t.Errorf("strict %t, %s: %v", strict, verb, err)
			}
		}
	}
}

func TestNilEventRecordsNothing(t *testing.T) {
	t.Parallel()
	e := audit.From(t.Context())
	e.SetID("id")
	e.Annotate("a/b", "c")
	e.Authorized(auth.Allow, "", nil)
	e.Panicked("oh")
	e.Complete()
	if e != nil || e.WantsRequest() || e.WantsResponse() || e.Decide(nil, false) != nil {
		t.Error("no event wants to be recorded")
	}
}
